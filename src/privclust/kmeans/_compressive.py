"""k-means from a sketch of the data, private or not."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from privclust.core.hints import Bounds, RandomState
from privclust.core.lloyd import nearest_center
from privclust.core.validation import GROUPS, Integer, Real, Unless, as_generator, check_parameters
from privclust.decoding._cluster_count import MOST_CLUSTERS, ClusterCount, count_clusters
from privclust.decoding._density import MOST_NUMBERS
from privclust.decoding._ellipsoids import n_numbers
from privclust.decoding._mixture_fit import cell_variance
from privclust.decoding._moments import Moments
from privclust.decoding._sizes import (
    PILOT_SHARE,
    box_of_fit,
    cluster_frequencies,
    number_of_directions,
    number_of_frequencies,
    number_under_laplace_noise,
    pilot_frequencies,
    pilot_size,
    sketch_frequencies,
)
from privclust.decoding._sketch_decoding import (
    decode,
    hidden_by_noise,
    leaves_box,
    moments_of_pilot,
)
from privclust.decoding._standard_errors import StandardErrors, standard_errors
from privclust.kmeans._fit_budget import FitBudget
from privclust.kmeans._lloyd import CenterClusterer
from privclust.kmeans._noise_check import detected_clusters
from privclust.kmeans._projection import Projection
from privclust.kmeans._round_errors import errors_after_rounds, mean_inertia_of, widths_of_rounds
from privclust.kmeans._rounds import centers_by_rounds, parts_of_rounds
from privclust.kmeans.last_rounds import pays
from privclust.privacy import Neighbours, noise_source
from privclust.privacy.bounds import bounds_of
from privclust.privacy.budget import charge
from privclust.privacy.estimator import PrivateEstimator, private_records
from privclust.privacy.groups import unit_of
from privclust.privacy.hidden import warn_of_noise
from privclust.privacy.left_out import LeftOutCount, with_left_out
from privclust.privacy.noise import unprotected_generator
from privclust.privacy.sensitivity import check_neighbours
from privclust.sketches._base import check_alike
from privclust.sketches._feature_sums import FeatureSums
from privclust.sketches._sketch import Sketch

_ROUND_SHARE, _PROJECTED_ROUND_SHARE = 0.5, 0.6  # of the budget
_CAUTION = 2.0  # standard deviations of a noisy number of rows; benchmarks/few_rows.py
_AUTO = "auto"


@dataclass(eq=False, repr=False)
class CompressiveKMeans(PrivateEstimator, CenterClusterer):
    r"""k-means from the mean of random Fourier features: one pass, any number of devices.

    Rows are seen once, to add up :math:`\exp(i \omega_j' x)` for m random frequencies; noise on
    these sums makes them private, and centers are decoded from them, see `decode`. A row moves
    each sum by a bounded amount wherever it lies, so nothing is clipped; bounds only say where to
    look. With declared bounds any row is taken: an entry that is too large for phases counts as the
    largest that is not.

    Laplace noise, the default, grows with m, Gaussian noise with its root: at 100 frequencies and
    epsilon 1 Laplace noise has 4.7 times the deviation of Gaussian noise with a delta of 1e-6. In a
    box 20 wide it hides what a thousand rows tell of two clusters 0.6 apart. Give a delta, narrow
    bounds or more rows.

    Frequencies need a scale. Without `variance` a part of the budget (10 %) buys a small sketch at
    frequencies of all scales from which mean and variances of the data are estimated.

    With Gaussian noise a further part of the budget may pay for rounds: eight times the rows of
    each cluster are added up with noise, and its center moves (`privclust.kmeans.last_rounds`).
    Rows of many features are then sketched along a few random directions only. Noise hides far less
    of the clusters there than in all features, and the rounds find the centers.

    Parameters
    ----------
    n_clusters : int or "auto"
        k. ``"auto"`` chooses from the sketch, at no budget, see `count_clusters`.
    epsilon : float or None
        Budget in nats; None, which has to be asked for, adds no noise, and nothing is private.
    delta : float
        From 0 to less than 1. 0: pure differential privacy, by Laplace noise. A positive delta
        allows Gaussian noise, of which far less is needed (see `release`).
    noise : {"auto", "laplace", "gaussian"}
        ``"auto"`` takes what has the smaller variance.
    neighbours : {"replace_one", "add_remove"}
        Which change of the rows is hidden: one of n exchanged, and n public; or one more or less.
    bounds : (low, high), mapping or None
        Box in which the data are known to lie, each a number or an array of shape (n_features,);
        or (low, high) for each column of a frame, by its name.
        It may be generous. None with an epsilon takes it from the data, warns, and leaves no
        guarantee.
    n_frequencies : int or None
        m; None for 10 k d, at least 500, and beyond 5000 for 3 k d if that is more; with Laplace
        noise, which grows with m, for max(5 k d, 100).
    variance : float or None
        Scale of the frequencies, in squared units of the data: about four times the variance of a
        cluster per feature. Must not come from private data. None as described above.
    decoder : {"gaussian", "clompr"}
        How centers are found: clusters with a spread, or points, as published; see `decode`.
    spread : {"per_cluster", "shared"}
        Whether clusters have a spread each.
    last_round : {"auto", True, False}
        Whether `fit` takes rounds, with 50 % of the budget, or 60 % after a projection. ``"auto"``:
        with Gaussian noise, the Gaussian decoder and `variance` None, always after a projection,
        else where their noise adds less than 5 % to the loss that k clusters are expected to leave,
        as far as the first small sketch tells. `partial_fit` takes none.
    n_directions : int or None
        Random directions that rows are sketched along where there is a last round. None: all
        features up to 16, else 2 log(k), at least 8.
    max_clusters : int
        The most that ``"auto"`` chooses from; the sketch is as large as for so many.
    missing : {"drop", "middle"}
        What becomes of a row with an entry that is missing (NaN, None) or cannot be read as a
        number. ``"drop"``: the row contributes nothing, and `left_out_` says how many there are.
        ``"middle"``: the entry counts as the middle of the bounds, and all rows count.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]`` if epsilon is given): noise comes from the
        operating system, and the starts of the decoder from a hash of the released sums. Anything
        else seeds all of them, for reproduction.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        Nearest center of each row of X. These are not private: they stay with who holds the rows,
        and are left out of pickles.
    n_clusters_ : int
        k, as given or chosen.
    cluster_count_ : ClusterCount or None
        What ``"auto"`` saw: how other numbers explain the sketch, and how small a cluster may be
        before noise hides it.
    is_detected_ : ndarray of shape (n_clusters,)
        Whether a cluster is more than noise (`privclust.decoding._sketch_check`).
    is_stable_ : bool
        Whether all starts of the decoder that explain the sketch equally well, to within the noise,
        find the same clusters. If not, the fit warns, and `standard_errors` marks the clusters that
        other starts do not find. A single start, where it explains the sketch or where there are
        more than 25 clusters, always agrees with itself.
    explained_ : float
        Part of what one cluster leaves of the sketch that all explain, from 0 to 1.
    least_weight_ : float
        Part of the rows below which noise and sampling hide a cluster as wide as the others,
        wherever it lies. Centers that are detected do not say that none smaller was missed.
    is_outside_bounds_ : bool
        Whether sketch or pilot say that data lie outside the bounds.
    left_out_ : privclust.privacy.NoisyCount or None
        The noisy number of rows (of persons, with `groups`) that are left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
    sketch_ : Sketch
        What the centers were decoded from; its guarantee is that of the fit.
        After a projection it is one of n_directions features.
    weights_ : ndarray of shape (n_clusters,)
        Fractions of the data in the clusters.
    cluster_spreads_ : ndarray of shape (n_clusters, n_features) or None
        Standard deviation of each feature in each cluster, in units of the feature, as far as the
        sketch tells; `standard_errors` has their errors. It costs no budget. After a projection it
        is the root mean square over all features, the same for each, since the rounds release the
        spread by cluster only. None with ``decoder="clompr"`` and no rounds, where clusters are
        points. Rows that are far from all clusters count little.
    mean_inertia_ : float
        Noisy mean squared distance of a row to its center; 0 where noise makes it negative.
    n_rounds_ : int
        Number of rounds: 0, 8, or 9 after a projection.

    See Also
    --------
    privclust.sketches.Sketch : sketches of files and streams, merged over devices.

    References
    ----------
    V. Schellekens, A. Chatalic, F. Houssiau, Y.-A. de Montjoye, L. Jacques and R. Gribonval,
    "Differentially private compressive k-means", ICASSP 2019. The Gaussian decoder, the normal
    noise and the choice of scale are this project's.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, (5000, 3)) for c in (-4.0, 0.0, 4.0)])
    >>> model = CompressiveKMeans(3, epsilon=1.0, delta=1e-6, bounds=(-10, 10), random_state=0)
    >>> np.sort(model.fit(X).cluster_centers_[:, 0]).round().astype(int)
    array([-4,  0,  4])
    >>> model.guarantee_.definition, round(model.guarantee_.epsilon, 3)
    ('approximate', 1.0)
    """

    n_clusters_: int = field(init=False)
    cluster_count_: ClusterCount | None = field(init=False)
    is_detected_: np.ndarray = field(init=False)
    is_stable_: bool = field(init=False)
    explained_: float = field(init=False)
    least_weight_: float = field(init=False)
    is_outside_bounds_: bool = field(init=False)
    sketch_: Sketch = field(init=False)
    weights_: np.ndarray = field(init=False)
    cluster_spreads_: np.ndarray | None = field(init=False)
    mean_inertia_: float = field(init=False)
    n_rounds_: int = field(init=False)

    _constraints: ClassVar = {
        "delta": Real(inclusive=True, below=1.0),
        "neighbours": check_neighbours,
        "n_directions": Integer(at_most="n_features"),
        "n_clusters": Unless("n_clusters", [_AUTO], GROUPS),
    }

    n_clusters: int | Literal["auto"] = 8
    _: KW_ONLY
    epsilon: float | None = 1.0
    delta: float = 0.0
    noise: Literal["auto", "laplace", "gaussian"] = "auto"
    neighbours: Literal["replace_one", "add_remove"] = "replace_one"
    bounds: Bounds | None = None
    n_frequencies: int | None = None
    variance: float | None = None
    decoder: Literal["gaussian", "clompr"] = "gaussian"
    spread: Literal["per_cluster", "shared"] = "per_cluster"
    last_round: Literal["auto"] | bool = "auto"
    n_directions: int | None = None
    max_clusters: int = MOST_CLUSTERS
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        records = self._records(X, groups)
        self._check_parameters(records)
        self._start(records, self.last_round)
        return self._add(records, None)

    def partial_fit(
        self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Add rows that were not seen before, and find centers anew.

        The paper's protocol with one device a call: rows are sketched with the frequencies of the
        first call, which alone pays for their scale, noise is added for these rows, and the private
        sketch is merged with those before. Each row is in one call, so the privacy of all calls is
        that of one (parallel composition); calls must not overlap, and which rows come in which
        call must not depend on other rows. Noise adds up over calls: few large calls serve better
        than many small ones.

        Parameters and errors are those of `fit`; all calls need the same number of features, and
        the first at least as many rows as there are clusters, where their number is public. With
        groups all calls have them, and all rows of a group come in one.
        """
        first = not hasattr(self, "sketch_")
        records = self._records(X, groups, reset=first)
        self._check_parameters(records if first else None)
        if first:
            self._start(records, last_round=False)
        elif (self.epsilon is None) != (self.sketch_.noise is None):
            raise ValueError(
                "epsilon must be a number in all calls of partial_fit or None in all, "
                f"got {self.epsilon!r} after calls {'without' if self.epsilon else 'with'} one"
            )
        elif self.n_rounds_:
            raise ValueError(
                "partial_fit cannot go on from a fit with a last round: fit with last_round=False, "
                "or call partial_fit from the first rows on"
            )
        return self._add(records, None if first else self._merged)

    def standard_errors(
        self, *, rows: bool = True, random_state: RandomState = None
    ) -> StandardErrors:
        """Return how far noise and sampling may have moved centers and weights.

        It is told from what was released, at no budget. Parameters and errors are those of
        `privclust.decoding.standard_errors`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        released = self._merged, self._decoded
        if not self._rounds:
            return standard_errors(*released, rows=rows, random_state=random_state)
        return errors_after_rounds(*released, self._rounds, rows=rows, random_state=random_state)

    def _records(self, X, groups=None, reset=True):
        relation = Neighbours.of(self.neighbours)
        if self.epsilon is None or self.bounds is None:
            relation = Neighbours.REPLACE_ONE  # mean or box are taken from rows: there must be some
        types = [np.float64, np.float32]
        return private_records(self, X, groups, dtype=types, neighbours=relation, reset=reset)

    def _start(self, records, last_round):
        """Choose where to look and the frequencies, from nothing, a pilot or the rows."""
        X, groups = records.rows, records.groups
        d = X.shape[1]
        self._box_of_data, self._leaks = box_of_fit(X, bounds_of(self), self.epsilon)
        if self.epsilon is None:
            self._rng = as_generator(self.random_state)
        else:
            self._rng = unprotected_generator(noise_source(self.random_state))
        p, m = self._sizes(d, last_round, unit_of(groups))
        n_pilot = pilot_size(p) if self.variance is None else 0
        self._share = 1.0 - self._round_share - (PILOT_SHARE if n_pilot else 0.0)
        self._charge(records, m, n_pilot)
        self._projection, self._seen_box = None, self._box_of_data
        if p < d:
            self._projection = Projection.drawn(self._box_of_data.center, p, self._rng)
            self._seen_box = self._projection.box(self._box_of_data)
        self._data_moments, self._pilots = self._moments(self._seen(X), groups)
        if self._round_share and last_round == _AUTO and not (p < d or self._round_pays(d)):
            self._share, self._round_share = self._share + self._round_share, 0.0
            self._noise_of_sketch = self._budget.measurement(m, self._share)
        if self.variance is not None:
            self._frequencies = sketch_frequencies(p, m, self.variance, self._rng)
        else:
            sizes = self._most_clusters, m
            self._frequencies = cluster_frequencies(*sizes, self._data_moments, self._rng)

    def _sizes(self, d, last_round, unit):
        """Return the numbers of directions and frequencies; choose noise and a round's share."""
        k = self._most_clusters
        p = self.n_directions or number_of_directions(k, d)
        m = self.n_frequencies or number_of_frequencies(k * p)
        self._budget = FitBudget.of(self, m, unit)
        has_round = last_round and self._budget.is_normal
        if not (has_round and self.decoder == "gaussian" and self.variance is None):
            self._round_share, p = 0.0, d
            m = self.n_frequencies or number_of_frequencies(k * d)
            self._budget = FitBudget.of(self, m, unit)
            if self._budget.mechanism == "laplace" and self.epsilon is not None:
                m = self.n_frequencies or number_under_laplace_noise(k * d)
        else:
            self._round_share = _ROUND_SHARE if p == d else _PROJECTED_ROUND_SHARE
        return p, m

    @property
    def _most_clusters(self):
        """The number of clusters, or the most that it is chosen from."""
        return self.max_clusters if self.n_clusters == _AUTO else self.n_clusters

    def _round_pays(self, d):
        """Return whether the pilot says that a last round, without a projection, pays.

        A noisy number of records counts as `_CAUTION` standard deviations less: where the number is
        overestimated, rounds move centers by noise.
        """
        k, pilot = self._most_clusters, self._pilots[0]
        n_samples = self._budget.n_samples(self._n_counted, pilot)
        if self._n_counted is None:
            n_samples -= _CAUTION * math.sqrt(pilot.noise_variance)
        (noise,) = self._budget.round_noises(self._round_share)
        return pays(k, d, n_samples, noise.sigma, cell_variance(k, d))

    def _seen(self, X):
        if self._projection is None:
            return X
        return self._projection.rows(self._box_of_data.clipped(X))

    def _sketched(self, rows, frequencies, groups):
        sums = FeatureSums(frequencies)
        if self.bounds is not None:
            rows = sums.clipped(rows, self._seen_box.center)
        return Sketch.from_feature_sums(sums.add(rows, groups))

    def _add(self, records, before):
        """Sketch rows, add noise, merge with the sketch before (or None), and find centers."""
        X, groups = records.rows, records.groups
        if before is not None:
            of_call = {name: getattr(self, name) for name in ("epsilon", "delta", "neighbours")}
            of_call["unit"] = unit_of(groups)
            self._budget = replace(self._budget, **of_call)
            self._charge(records, before.n_frequencies, before=before)
        rows, box = self._seen(X), self._seen_box
        exact = self._sketched(rows, self._frequencies, groups)
        sketch = self._release(exact, self._noise_of_sketch)
        self._merged = sketch if before is None else before + sketch
        bounds = None if box is None else (box.low, box.high)
        # of a release, starts follow from the released sums: the same sums, the same clusters
        of_starts = None if self.random_state is None else self._rng
        self.n_clusters_, self.cluster_count_ = self.n_clusters, None
        where = {"bounds": bounds, "moments": self._data_moments, "random_state": of_starts}
        if self.n_clusters == _AUTO:
            self.cluster_count_ = count_clusters(self._merged, self.max_clusters, **where)
            self.n_clusters_ = self.cluster_count_.n_clusters
        decoded = decode(
            self._merged,
            self.n_clusters_,
            method=self.decoder,
            spread=self.spread,
            covariances=self._has_covariances(X.shape[1]),
            **where,
        )
        self.cluster_centers_, self.weights_, self._rounds = decoded.centers, decoded.weights, []
        self._decoded, self.mean_inertia_ = decoded, decoded.spread * X.shape[1]
        if self._round_share:
            decoded = self._after_rounds(rows, decoded, records)
        self.n_rounds_ = len(self._rounds)
        if self._projection is None:
            self.cluster_spreads_ = self._decoded.spreads_about(self.cluster_centers_)
        else:
            self.cluster_spreads_ = widths_of_rounds(self._rounds)
        pilots = [pilot.guarantee for pilot in self._pilots]
        rounds = [round_.noise for round_ in self._rounds]
        whole = self._budget.composed(self._merged.guarantee, pilots, rounds, self._leaks)
        self.guarantee_ = with_left_out(whole, self._lines)
        # its frequencies tell of the pilot too, so that it promises what the whole fit does
        private = self._merged.noise is not None
        self.sketch_ = replace(self._merged, guarantee=self.guarantee_ if private else None)
        self.labels_ = records.labels(nearest_center(X, self.cluster_centers_))
        self._check_noise(decoded)
        return self

    def _has_covariances(self, n_features):
        """Return whether clusters may have covariances: a round mends much, and they cost time."""
        if not self._round_share:
            return True
        return self._projection is None and n_numbers(self.n_clusters_, n_features) <= MOST_NUMBERS

    def _after_rounds(self, rows, decoded, records):
        """Take the last rounds, and return which clusters are detected after them as well."""
        box, d, groups = self._box_of_data, records.rows.shape[1], records.groups
        X, labels = box.clipped(records.rows), nearest_center(rows, decoded.centers)
        source = self._budget.source(self._rng)
        n_samples = self._budget.n_samples(self._n_counted, self._merged)
        parts = parts_of_rounds(projected=self._projection is not None)
        noises = self._budget.round_noises(self._round_share, parts)
        how = n_samples, noises, source, self._rng, groups
        self._rounds, is_split = centers_by_rounds(X, labels, box, decoded, *how)
        last = self._rounds[-1]
        self.cluster_centers_ = np.clip(last.centers, box.low, box.high)
        counts = np.maximum(last.counts, 1.0)
        self.weights_ = counts / counts.sum()
        self.mean_inertia_ = mean_inertia_of(last)
        detected = detected_clusters(
            last.counts, last.count_noise, self.cluster_centers_, last.extent * math.sqrt(d)
        )
        return replace(decoded, is_detected=(decoded.is_detected | is_split) & detected)

    def _check_noise(self, decoded):
        """Say what noise hides, if there is any, and whether data lie outside the bounds."""
        box = self._seen_box
        elsewhere = any(leaves_box(pilot, box) for pilot in self._pilots)
        decoded = replace(decoded, is_outside=decoded.is_outside or elsewhere)
        self.is_detected_, self.explained_ = decoded.is_detected, decoded.explained
        self.least_weight_, self.is_outside_bounds_ = decoded.least_weight, decoded.is_outside
        self.is_stable_ = decoded.is_stable
        hidden = [hidden_by_noise(self.sketch_, decoded)]
        if self.cluster_count_ is not None and self.sketch_.noise is not None:
            hidden.append(self.cluster_count_.hidden())
        warn_of_noise("; ".join(filter(None, hidden)))

    def _moments(self, rows, groups):
        if self.epsilon is None:
            mean, variances = (f(axis=0, dtype=np.float64) for f in (rows.mean, rows.var))
            least = float(variances.max()) * 1e-12 or 1.0  # rows that are all equal set no scale
            return Moments(mean, np.maximum(variances, least)), []
        if self.variance is not None:
            return None, []
        box, rng = self._seen_box, self._rng
        exact = self._sketched(rows, pilot_frequencies(box, rng), groups)
        pilot = self._release(exact, self._noise_of_pilot)
        return moments_of_pilot(pilot, box, rng), [pilot]

    def _release(self, exact, noise):
        """Return a sketch with noise, if there is any, of as many records as may be known."""
        if noise is None:
            return exact
        sketch = exact.with_noise(noise, self._budget.source(self._rng))
        if self.left_out_ is None or self._n_counted is None:
            return sketch
        return replace(sketch, n_samples=float(self._n_counted))

    def _charge(self, records, m, n_pilot=0, before=None):
        """Charge what a call will release: a sketch and, of so many frequencies, a pilot.

        The sketch is to be merged with the one before, if there is any. The number of records that
        are left out is released.
        """
        others = self.left_out_ if before is not None else None
        self.left_out_, self._lines = None, ()
        self._n_counted = None  # where it is private, that of the noisy sketch is used
        if self._budget.relation is Neighbours.REPLACE_ONE:
            self._n_counted = records.n_counted
        self._noise_of_sketch = self._budget.measurement(m, self._share)
        if self._noise_of_sketch is None:
            charge(self._budget.composed(None, [], [], ()))
            return
        sums, pilots = self._budget.promise(self._noise_of_sketch), []
        if n_pilot:
            self._noise_of_pilot = self._budget.measurement(n_pilot, PILOT_SHARE)
            pilots = [self._budget.promise(self._noise_of_pilot)]
        if before is not None:
            check_alike(before.guarantee, sums)  # now, not when noise has been paid for
        # whatever takes the place of a round costs the same
        rounds = self._budget.round_noises(self._round_share) if self._round_share else []
        promise = self._budget.composed(sums, pilots, rounds, self._leaks)
        left_out = LeftOutCount.alongside(promise, records)
        self._lines = left_out.lines()
        charge(with_left_out(promise, self._lines))
        self.left_out_ = left_out.release(self._budget.source(self._rng))
        if self._n_counted is not None:
            self._n_counted = left_out.n_counted(self.left_out_, self._budget.relation)
        if others is not None and self.left_out_ is not None:
            self.left_out_ = others + self.left_out_

    def _check_parameters(self, records):
        """Raise a ValueError; records are None where there may be fewer than clusters."""
        is_public = self.epsilon is None or (
            Neighbours.of(self.neighbours) is Neighbours.REPLACE_ONE
        )
        X = None if records is None else records.rows
        check_parameters(self, X, count_is_public=is_public, records=records)
        if self.noise == "gaussian" and self.delta == 0:
            raise ValueError("noise='gaussian' needs a delta greater than 0, got delta=0")
        if self.last_round not in (True, False, _AUTO):
            raise ValueError(f"last_round must be 'auto', True or False, got {self.last_round!r}")
