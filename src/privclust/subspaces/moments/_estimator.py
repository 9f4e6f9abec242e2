"""Private unions of subspaces from one noisy sketch of harmonic moments."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from privclust.core.grassmann import residuals
from privclust.core.hints import RandomState
from privclust.core.validation import DELTA, check_integer
from privclust.core.warn import warn_caller
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.bounds import directions
from privclust.privacy.estimator import PrivateEstimator, caveats_of_bounds, validated
from privclust.privacy.groups import unit_of
from privclust.privacy.hidden import noise_message, warn_of_noise
from privclust.privacy.noise import is_seeded, noise_source, unprotected_generator
from privclust.privacy.sensitivity import check_neighbours
from privclust.sketches._moment_sketch import MomentSketch
from privclust.sketches.moment_release import check_size, default_degree, measurement
from privclust.sketches.moment_sums import group_sums
from privclust.subspaces._subspace_clusterer import SubspaceClusterer
from privclust.subspaces.moments._decoding import (
    DecodedSubspaces,
    decode,
    misfit_message,
)
from privclust.subspaces.moments._selection import choose_sizes
from privclust.subspaces.moments.last_round import (
    ROUND_SHARE,
    combined,
    is_detected,
    plan_round,
    released,
)

_AUTO = "auto"
_ROUND = "rows outside decoded subspaces, one round"


@dataclass(eq=False, repr=False)
class MomentSubspaceClustering(PrivateEstimator, SubspaceClusterer):
    r"""Subspace clustering from one noisy sketch of harmonic moments, and a last noisy round.

    Each row is scaled to norm 1. The sums of their moments of degree 2 and 4 (and 6, with up to 6
    features) are released once, with Gaussian noise (`MomentSketch`). Subspaces are decoded from
    these sums only, with any number of random starts at no privacy loss (`decode`). If all are
    detected, a third of the budget is spent on a round that measures the deviation of rows from
    them, clipped to a small angle, which needs little noise
    (``privclust.subspaces.moments.last_round``). Otherwise it is spent on the sketch, too.

    After scaling, short rows carry as much weight as long ones: leave out rows of pure noise, by a
    rule that depends only on each row. Subspaces go through the origin: subtract an offset that is
    known without the data. To find affine subspaces, append a constant column of a public size and
    ask for one more dimension. `predict` and `transform` scale rows to norm 1, too.

    With groups, such as persons with several rows each, each of the n rows of a group has weight
    1 / n. All groups then weigh the same, and the change by one group is bounded like that by a row
    (``privclust.privacy.groups``). Errors treat groups as rows.

    Parameters
    ----------
    n_clusters : int or "auto"
        k. ``"auto"`` chooses from 1 to 6, from the sketch, see `choose_sizes`.
    subspace_dimension : int or "auto"
        q of each subspace, from 1 to n_features - 1. ``"auto"`` chooses from 1 to 6.
    epsilon, delta : float
        Budget of all releases; epsilon in nats, positive, delta in (0, 1).
    neighbours : {"replace_one", "add_remove"}
        Neighbouring relation. With ``"add_remove"`` any number of rows is accepted, up to 2^26, the
        limit of exact sums.
    last_round : {"auto"} or bool
        Whether there is a last round: if all subspaces are detected in the sketch, always or never.
    missing : {"drop", "middle"}
        Treatment of a row with an entry that is missing (NaN, None) or is not a number. ``"drop"``:
        the row contributes nothing, and `left_out_` is the number of such rows. ``"middle"``: the
        entry counts as the middle of the bounds, and all rows count.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Attributes
    ----------
    subspaces_ : ndarray of shape (n_clusters, n_features, subspace_dimension)
        Orthonormal bases, as columns; the subspace with most rows first.
    weights_ : ndarray of shape (n_clusters,)
        Share of the rows near each subspace.
    errors_ : ndarray of shape (n_clusters,)
        Expected distance of each subspace from the true one, the root of the mean of
        :math:`\|U U' - V V'\|_F^2`: from noise and sampling, computed from released values.
    is_detected_ : ndarray of shape (n_clusters,)
        Which subspaces are distinguishable from noise.
    has_last_round_ : bool
    decoded_ : DecodedSubspaces
        With the covariance of the subspaces' errors.
    sketch_ : MomentSketch
    labels_ : ndarray of shape (n_samples,)
        Nearest subspace of each row of X. Not released: `released()` and pickles leave them out.
    left_out_ : privclust.privacy.NoisyCount or None
        The noisy number of rows (with `groups`, of persons) left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
    n_features_in_ : int

    Warns
    -----
    NoiseWarning
        If the released values show that subspaces cannot be distinguished from noise.
    UserWarning
        If they show that rows do not lie near such a union (``decoded_.misfit``).

    See Also
    --------
    decode : other numbers of subspaces from `sketch_`, at no privacy loss.

    References
    ----------
    Rounds on second moments: A. Blum, C. Dwork, F. McSherry and K. Nissim, "Practical privacy: the
    SuLQ framework", PODS 2005. The sketch, its decoder and the last round are this project's.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.synthetic.subspaces import subspace_mixture
    >>> from privclust.metrics import wasserstein_distance
    >>> X, _, truth = subspace_mixture(3000, 2, 4, 2, np.random.default_rng(0), noise=0.01)
    >>> model = MomentSubspaceClustering(2, 2, epsilon=1.0, random_state=0).fit(X)
    >>> bool(wasserstein_distance(model.subspaces_, truth) < 0.1)
    True
    >>> model.guarantee_.definition, round(model.guarantee_.epsilon, 3)
    ('approximate', 1.0)
    """

    weights_: np.ndarray = field(init=False)
    errors_: np.ndarray = field(init=False)
    is_detected_: np.ndarray = field(init=False)
    has_last_round_: bool = field(init=False)
    decoded_: DecodedSubspaces = field(init=False)
    sketch_: MomentSketch = field(init=False)

    _SCALES_ROWS: ClassVar = True
    _constraints: ClassVar = {"delta": DELTA, "neighbours": check_neighbours}

    n_clusters: int | Literal["auto"] = 2
    subspace_dimension: int | Literal["auto"] = 1
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    neighbours: Literal["replace_one", "add_remove"] = "replace_one"
    last_round: bool | Literal["auto"] = "auto"
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        records = self._checked_records(X, groups)
        X = records.rows
        degree = self._checked_degree(X.shape[1])
        source = noise_source(self.random_state)
        rng = unprotected_generator(source)
        sums = group_sums(X, records.groups, degree)
        exact, unit = MomentSketch.from_sums(sums), unit_of(records.groups)
        shares = [1.0 - ROUND_SHARE, ROUND_SHARE] if self.last_round else [1.0]
        relation, budget = self._relation(), (self.epsilon, self.delta)
        noises = [measurement(X.shape[1], degree, relation, *budget, share) for share in shares]
        # a round and a second sketch have the same privacy loss
        left_out = self._charged(self._promise(noises, source, unit), records, source)
        known = None  # number of records: it needs no noise, or has that of the sketch
        if self.left_out_ is not None and relation is not Neighbours.ADD_REMOVE:
            known = left_out.n_counted(self.left_out_, self.neighbours)
        self.sketch_ = self._noisy(exact, noises[0], source, known)
        decoded = self._decode(rng)
        self.has_last_round_ = bool(
            self.last_round and (self.last_round != _AUTO or is_detected(decoded).all())
        )
        if self.has_last_round_:
            # the number of records may be a noisy one, below 1 for few records
            n_samples = max(self.sketch_.n_samples, 1.0)
            plan = plan_round(decoded, n_samples, relation, *budget, rng)
            line = plan.noise.statement(_ROUND, units="rows of norm 1")
            promise = self._promise(noises[:1], source, unit, line)
            self.guarantee_ = left_out.stated(promise)
            noisy = released(X, decoded, plan, source, records.groups)
            decoded = combined(decoded, plan, *noisy, n_samples, rng)
        elif self.last_round:
            rest = self._noisy(exact, noises[1], source, known)
            self.sketch_ = self.sketch_.averaged(rest, ROUND_SHARE)
            decoded = self._decode(rng)
        self._keep(decoded)
        labels = residuals(directions(X), self.subspaces_).argmin(axis=1)
        self.labels_ = records.labels(labels)
        return self

    def _checked(self, X):
        """Return rows at norm 1, as `fit` counts them, for `predict` and `transform`."""
        check_is_fitted(self)
        how = {"dtype": np.float64, "order": "C", "reset": False}
        return directions(validated(self, X, **how, ensure_all_finite=False))

    def _noisy(self, exact, noise, source, n_samples):
        """Return a sketch with noise, and with the number of records that may be used."""
        sketch = exact.with_noise(noise, source, self.guarantee_)
        return sketch if n_samples is None else replace(sketch, n_samples=n_samples)

    def _decode(self, rng):
        given = [
            None if isinstance(size, str) else size
            for size in (self.n_clusters, self.subspace_dimension)
        ]
        k, q = choose_sizes(self.sketch_, *given, random_state=rng)
        return decode(self.sketch_, k, q, random_state=rng)

    def _keep(self, decoded):
        """Set the decoded attributes, and warn of subspaces that may be noise."""
        self.decoded_, self.subspaces_ = decoded, decoded.subspaces
        self.weights_, self.errors_ = decoded.weights, decoded.errors
        self.is_detected_ = is_detected(decoded)
        warn_of_noise(noise_message(self.is_detected_, of="subspaces"))
        if message := misfit_message(decoded):
            warn_caller(message)

    def _promise(self, noises, source, unit, *lines: Any) -> Guarantee:
        relation = self._relation()
        promised = [noise.promise(seeded=is_seeded(source)) for noise in noises]
        return Guarantee.of(
            [*(line for one in promised for line in one.releases), *lines],
            "approximate",
            relation,
            delta=self.delta,
            seeded=is_seeded(source),
            caveats=(*promised[0].caveats, *caveats_of_bounds(self)),
            unit=unit,
        )

    def _checked_degree(self, n_features):
        """Return the degree of the moments, after a check of sizes and of the last round."""
        degree = default_degree(n_features)
        check_size(n_features, degree)
        if self.last_round not in (True, False, _AUTO):
            raise ValueError(f"last_round must be 'auto', True or False, got {self.last_round!r}")
        for name in ("n_clusters", "subspace_dimension"):
            value = getattr(self, name)
            if value != _AUTO:
                check_integer(name, value, minimum=1)
        if self.subspace_dimension != _AUTO and self.subspace_dimension >= n_features:
            raise ValueError(
                f"subspace_dimension must be less than the number of features, got "
                f"subspace_dimension={self.subspace_dimension} for n_features={n_features}"
            )
        return degree
