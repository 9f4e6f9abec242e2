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
from privclust.core.validation import GROUPS, Integer, Real, Unless, as_generator
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
from privclust.kmeans._lloyd import CenterClusterer
from privclust.kmeans._noise_check import detected_clusters
from privclust.kmeans._projection import Projection
from privclust.kmeans._round_errors import errors_after_rounds, mean_inertia_of, widths_of_rounds
from privclust.kmeans._rounds import centers_by_rounds, parts_of_rounds
from privclust.kmeans.last_rounds import pays, round_noise
from privclust.privacy import Guarantee, Neighbours, noise_source
from privclust.privacy.bounds import bounds_of
from privclust.privacy.budget import charge
from privclust.privacy.estimator import PrivateEstimator, caveats_of_bounds
from privclust.privacy.groups import unit_of
from privclust.privacy.hidden import warn_of_noise
from privclust.privacy.noise import is_seeded, unprotected_generator
from privclust.privacy.sensitivity import check_neighbours
from privclust.sketches._feature_sums import FeatureSums
from privclust.sketches._release import measurement, smaller_noise
from privclust.sketches._sketch import Sketch

# share of the budget for all rounds, without and after a projection
_ROUND_SHARE, _PROJECTED_ROUND_SHARE = 0.5, 0.6
# deviations subtracted from a noisy number of rows: rounds of few rows add noise (few_rows.py)
_CAUTION = 2.0
_ROUND = "sums, counts and spreads of rows by cluster"
_LARGE = "entries that are too large for phases count as the largest that are not"


@dataclass(eq=False, repr=False)
class CompressiveKMeans(PrivateEstimator, CenterClusterer):
    r"""k-means from the mean of random Fourier features, in one pass over the rows.

    `fit` adds up :math:`\exp(i \omega_j' x)` over the rows for m random frequencies, adds noise to
    the sums, and decodes centers from them (`decode`). A row changes each sum by a bounded amount
    wherever it lies, so rows are not clipped. Bounds only say where to look for centers. With
    declared bounds any row is accepted; entries too large for phases are clipped.

    The standard deviation of Laplace noise, the default, grows with m, that of Gaussian noise with
    its square root. If noise hides clusters, use a delta, narrow bounds or more rows.

    10 % of the budget is spent on a pilot, a small sketch at frequencies of all scales. The mean
    and variances estimated from it set the scale of the other frequencies.

    With Gaussian noise a further share of the budget may be spent on eight rounds. Each releases
    noisy sums of the rows of each cluster and moves its center (`privclust.kmeans.last_rounds`).
    Rows with many features are then sketched along a few random directions only, where noise hides
    less. The rounds find the centers in all features.

    Parameters
    ----------
    n_clusters : int or "auto"
        k. ``"auto"`` chooses it from the sketch, at no privacy loss (`count_clusters`).
    epsilon : float or None
        Privacy parameter, in nats. None adds no noise, and nothing is private.
    delta : float
        Privacy parameter, from 0 to less than 1. With 0 (pure differential privacy) noise is
        Laplace. A positive delta allows Gaussian noise, which is much smaller (see `release`).
    noise : {"auto", "laplace", "gaussian"}
        ``"auto"`` chooses the noise with the smaller variance.
    neighbours : {"replace_one", "add_remove"}
        Neighbouring relation: one of n rows is replaced, and n is public; or one is added or
        removed.
    bounds : (low, high), mapping or None
        Lower and upper bound of the features, known without the data: numbers or arrays of shape
        (n_features,); or (low, high) for each column of a frame, by its name. They may be generous.
        None with an epsilon computes them from the data, with a warning and without a guarantee.
    n_frequencies : int or None
        m. None: 10 k d, at least 500 and at most max(5000, 3 k d); with Laplace noise, which grows
        with m, max(5 k d, 100).
    variance : float or None
        Scale of the frequencies, in squared units of the data: about four times the variance of a
        cluster per feature. Must not come from private data. None: estimated by a pilot.
    decoder : {"gaussian", "clompr"}
        Whether clusters have a spread, or are points, as published; see `decode`.
    last_round : {"auto", True, False}
        Whether `fit` has rounds, with 50 % of the budget, or 60 % after a projection. ``"auto"``
        needs Gaussian noise, the Gaussian decoder and `variance` None. It has rounds after every
        projection; otherwise if their noise raises the loss of k clusters by less than 5 %, as
        predicted from the pilot.
    n_directions : int or None
        Number of random directions to sketch rows along if there are rounds. None: all features
        up to 16, otherwise 2 log(k), at least 8.
    max_clusters : int
        Largest number that ``"auto"`` may choose. The size of the sketch is that for this number.
    missing : {"drop", "middle"}
        A row with an entry that is missing (NaN, None) or cannot be read as a number is left out,
        and counted by `left_out_`; or the entry is replaced by the middle of the bounds.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]`` if epsilon is given): noise comes from the
        operating system, and the starts of the decoder from a hash of the released sums. Anything
        else gives reproducible noise and starts, for experiments only.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        Index of the nearest center of each row of X; -1 for a row that is left out. Not private: do
        not publish it. Pickles do not contain it.
    n_clusters_ : int
        k, as given or chosen.
    cluster_count_ : ClusterCount or None
        Scores of the numbers that ``"auto"`` compared, and the weight of the smallest cluster that
        is distinguishable from noise.
    is_detected_ : ndarray of shape (n_clusters,)
        Whether a cluster is distinguishable from noise (`privclust.decoding._sketch_check`).
    is_stable_ : bool
        Whether all starts of the decoder that explain the sketch equally well, to within the noise,
        find the same clusters. If not, the fit warns, and `standard_errors` marks the clusters that
        other starts do not find. Always True with a single start, which suffices if it explains
        the sketch, and is the only one above 25 clusters.
    least_weight_ : float
        Fraction of the rows below which a cluster as wide as the others is hidden by noise and
        sampling, wherever it lies. A smaller one may be missed even if all centers are detected.
    is_outside_bounds_ : bool
        Whether the sketch or the pilot shows that data lie outside the bounds.
    left_out_ : privclust.privacy.NoisyCount or None
        Noisy number of rows (of persons, with `groups`) that are left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
    sketch_ : Sketch
        The decoded sketch, with the guarantee of the fit. After a projection it has n_directions
        features.
    weights_ : ndarray of shape (n_clusters,)
        Fractions of the data in the clusters.
    cluster_spreads_ : ndarray of shape (n_clusters, n_features) or None
        Standard deviation of each feature in each cluster, in units of the feature, from the
        sketch, at no privacy loss; `standard_errors` has its errors. Rows far from all clusters
        count little. After a projection, the root mean square over all features, the same for
        each, since the rounds release the spread by cluster only. None with ``decoder="clompr"``
        and no rounds, where clusters are points.
    mean_inertia_ : float
        Noisy mean squared distance of a row to its center; 0 if noise makes it negative.
    n_rounds_ : int
        Number of rounds: 0, 8, or 9 after a projection.

    See Also
    --------
    privclust.sketches.Sketch : sketches of files and tables, merged over devices.

    References
    ----------
    V. Schellekens, A. Chatalic, F. Houssiau, Y.-A. de Montjoye, L. Jacques and R. Gribonval,
    "Differentially private compressive k-means", ICASSP 2019. The Gaussian decoder, the Gaussian
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
    least_weight_: float = field(init=False)
    is_outside_bounds_: bool = field(init=False)
    sketch_: Sketch = field(init=False)
    weights_: np.ndarray = field(init=False)
    cluster_spreads_: np.ndarray | None = field(init=False)
    mean_inertia_: float = field(init=False)
    n_rounds_: int = field(init=False)

    _TYPES: ClassVar = [np.float64, np.float32]
    _constraints: ClassVar = {
        "delta": Real(inclusive=True, below=1.0),
        "neighbours": check_neighbours,
        "n_directions": Integer(at_most="n_features"),
        "n_clusters": Unless("n_clusters", ["auto"], GROUPS),
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
    last_round: Literal["auto"] | bool = "auto"
    n_directions: int | None = None
    max_clusters: int = MOST_CLUSTERS
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        is_bounded = self.epsilon is not None and self.bounds is not None
        # without bounds or noise, the moments of the rows need some rows
        records = self._checked_records(X, groups, any_number=is_bounded)
        if self.last_round not in (True, False, "auto"):
            raise ValueError(f"last_round must be 'auto', True or False, got {self.last_round!r}")
        return self._find(records, self._start(records))

    def standard_errors(
        self, *, rows: bool = True, random_state: RandomState = None
    ) -> StandardErrors:
        """Return how far noise and sampling may have moved centers and weights.

        They are computed from released values, at no privacy loss. Parameters and errors are those
        of `privclust.decoding.standard_errors`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        released = self._released, self._decoded
        if not self._rounds:
            return standard_errors(*released, rows=rows, random_state=random_state)
        return errors_after_rounds(*released, self._rounds, rows=rows, random_state=random_state)

    def _relation(self):
        """Return the relation of the parameter `neighbours`; no number is private without noise."""
        return Neighbours.REPLACE_ONE if self.epsilon is None else super()._relation()

    def _start(self, records):
        """Choose bounds, projection and frequencies; release a pilot if they need one.

        Return the release of the number of records left out, which knows the exact number and must
        not be kept, or None.
        """
        X, groups = records.rows, records.groups
        d = X.shape[1]
        self._most_clusters = self.max_clusters if self.n_clusters == "auto" else self.n_clusters
        self._box_of_data, self._leaks = box_of_fit(X, bounds_of(self), self.epsilon)
        if self.epsilon is None:
            self._rng = as_generator(self.random_state)
        else:
            self._rng = unprotected_generator(noise_source(self.random_state))
        self._unit = unit_of(groups)
        p, m = self._sizes(d)
        n_pilot = pilot_size(p) if self.variance is None else 0
        self._share = 1.0 - self._round_share - (PILOT_SHARE if n_pilot else 0.0)
        left_out = self._charge(records, m, n_pilot)
        self._projection, self._seen_box = None, self._box_of_data
        if p < d:
            self._projection = Projection.drawn(self._box_of_data.center, p, self._rng)
            self._seen_box = self._projection.box(self._box_of_data)
        self._data_moments, self._pilots = self._moments(self._seen(X), groups)
        if self._round_share and self.last_round == "auto" and not (p < d or self._round_pays(d)):
            self._share, self._round_share = self._share + self._round_share, 0.0
            self._noise_of_sketch = self._noise_at(m, self._share)
        if self.variance is not None:
            self._frequencies = sketch_frequencies(p, m, self.variance, self._rng)
        else:
            k, moments = self._most_clusters, self._data_moments
            self._frequencies = cluster_frequencies(k, m, moments, self._rng)
        return left_out

    def _sizes(self, d):
        """Return the numbers of directions and frequencies; choose noise and the rounds' share."""
        k = self._most_clusters
        p = self.n_directions or number_of_directions(k, d)
        m = self.n_frequencies or number_of_frequencies(k * p)
        # the kind of noise depends on m, and below m on the kind
        self._mechanism = self._kind_of_noise(m)
        has_noise = self.epsilon is not None and self._mechanism == "gaussian"
        is_default = self.decoder == "gaussian" and self.variance is None
        if not (self.last_round and has_noise and is_default):
            self._round_share, p = 0.0, d
            m = self.n_frequencies or number_of_frequencies(k * d)
            self._mechanism = self._kind_of_noise(m)
            if self._mechanism == "laplace" and self.epsilon is not None:
                m = self.n_frequencies or number_under_laplace_noise(k * d)
        else:
            self._round_share = _ROUND_SHARE if p == d else _PROJECTED_ROUND_SHARE
        return p, m

    def _kind_of_noise(self, n_frequencies):
        """Return the parameter `noise`, or the kind with the smaller noise for "auto"."""
        if self.noise != "auto" or self.epsilon is None:
            return self.noise
        return smaller_noise(n_frequencies, self.neighbours, self.epsilon, self.delta)

    def _round_pays(self, d):
        """Return whether the pilot predicts that rounds without a projection lower the loss."""
        k, pilot = self._most_clusters, self._pilots[0]
        n_samples = self._number_of_records(pilot)
        if self._n_counted is None:
            n_samples -= _CAUTION * math.sqrt(pilot.noise_variance)
        (noise,) = self._round_noises()
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

    def _find(self, records, left_out):
        """Sketch rows, add noise, and find centers."""
        X = records.rows
        rows, box = self._seen(X), self._seen_box
        exact = self._sketched(rows, self._frequencies, records.groups)
        self._released = self._release(exact, self._noise_of_sketch)
        bounds = None if box is None else (box.low, box.high)
        # for release, starts are derived from the released sums: same sums, same clusters
        of_starts = None if self.random_state is None else self._rng
        self.n_clusters_, self.cluster_count_ = self.n_clusters, None
        where = {"bounds": bounds, "moments": self._data_moments, "random_state": of_starts}
        if self.n_clusters == "auto":
            self.cluster_count_ = count_clusters(self._released, self.max_clusters, **where)
            self.n_clusters_ = self.cluster_count_.n_clusters
        decoded = decode(
            self._released,
            self.n_clusters_,
            method=self.decoder,
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
        rounds = [found.noise for found in self._rounds]
        whole = self._composed(self._released.guarantee, pilots, rounds)
        self.guarantee_ = whole if left_out is None else left_out.stated(whole)
        # the frequencies depend on the pilot: the sketch has the guarantee of the whole fit
        private = self._released.noise is not None
        self.sketch_ = replace(self._released, guarantee=self.guarantee_ if private else None)
        self.labels_ = records.labels(nearest_center(X, self.cluster_centers_))
        self._check_noise(decoded)
        return self

    def _has_covariances(self, n_features):
        """Return whether to fit covariances: rounds correct most errors, and they are slow."""
        is_small = n_numbers(self.n_clusters_, n_features) <= MOST_NUMBERS
        return not self._round_share or (self._projection is None and is_small)

    def _after_rounds(self, rows, decoded, records):
        """Run the rounds; return `decoded` with the clusters that they detect as well."""
        box, d, groups = self._box_of_data, records.rows.shape[1], records.groups
        X, labels = box.clipped(records.rows), nearest_center(rows, decoded.centers)
        n_samples = self._number_of_records(self._released)
        noises = self._round_noises(parts_of_rounds(projected=self._projection is not None))
        how = n_samples, noises, self._source(), self._rng, groups
        self._rounds, is_split = centers_by_rounds(X, labels, box, decoded, *how)
        last = self._rounds[-1]
        self.cluster_centers_ = np.clip(last.centers, box.low, box.high)
        self.weights_, self.mean_inertia_ = last.weights, mean_inertia_of(last)
        detected = detected_clusters(
            last.counts, last.count_noise, self.cluster_centers_, last.extent * math.sqrt(d)
        )
        return replace(decoded, is_detected=(decoded.is_detected | is_split) & detected)

    def _check_noise(self, decoded):
        """Set the attributes on detection; warn of hidden clusters and of data outside bounds."""
        box = self._seen_box
        elsewhere = any(leaves_box(pilot, box) for pilot in self._pilots)
        decoded = replace(decoded, is_outside=decoded.is_outside or elsewhere)
        self.is_detected_, self.least_weight_ = decoded.is_detected, decoded.least_weight
        self.is_outside_bounds_, self.is_stable_ = decoded.is_outside, decoded.is_stable
        hidden = [hidden_by_noise(self.sketch_, decoded)]
        if self.cluster_count_ is not None and self.sketch_.noise is not None:
            hidden.append(self.cluster_count_.hidden())
        warn_of_noise("; ".join(filter(None, hidden)))

    def _moments(self, rows, groups):
        if self.epsilon is None:
            return Moments.of_rows(rows), []
        if self.variance is not None:
            return None, []
        box, rng = self._seen_box, self._rng
        exact = self._sketched(rows, pilot_frequencies(box, rng), groups)
        pilot = self._release(exact, self._noise_of_pilot)
        return moments_of_pilot(pilot, box, rng), [pilot]

    def _release(self, exact, noise):
        """Return a sketch with noise, if any, and with the public or released record count."""
        if noise is None:
            return exact
        sketch = exact.with_noise(noise, self._source())
        if self.left_out_ is None or self._n_counted is None:
            return sketch
        return replace(sketch, n_samples=float(self._n_counted))

    def _charge(self, records, m, n_pilot):
        """Charge sketch, pilot (of `n_pilot` frequencies) and rounds; release `left_out_`."""
        self.left_out_ = None
        is_public = self._relation() is Neighbours.REPLACE_ONE
        # if the number is private, the noisy sketch has an estimate
        self._n_counted = records.n_counted if is_public else None
        self._noise_of_sketch = self._noise_at(m, self._share)
        if self._noise_of_sketch is None:
            charge(self._composed(None, [], []))
            return None
        sums, pilots = self._promise(self._noise_of_sketch), []
        if n_pilot:
            self._noise_of_pilot = self._noise_at(n_pilot, PILOT_SHARE)
            pilots = [self._promise(self._noise_of_pilot)]
        # a larger sketch in place of rounds has the same privacy loss
        rounds = self._round_noises() if self._round_share else []
        promise = self._composed(sums, pilots, rounds)
        left_out = self._charged(promise, records, self._source())
        if self._n_counted is not None:
            self._n_counted = left_out.n_counted(self.left_out_, self._relation())
        return left_out

    def _source(self):
        # one generator for a seeded fit: each release draws its own numbers
        return noise_source(None if self.random_state is None else self._rng)

    def _is_seeded(self):
        return is_seeded(noise_source(self.random_state))

    def _number_of_records(self, sketch):
        """Return the number of records that count: public, or the noisy one of a sketch."""
        return float(sketch.n_samples if self._n_counted is None else self._n_counted)

    def _noise_at(self, n_frequencies, share):
        """Return the noise of a sketch at a share of the budget; None without an epsilon."""
        if self.epsilon is None:
            return None
        how = {"noise": self._mechanism, "neighbours": self.neighbours, "share": share}
        return measurement(n_frequencies, n_frequencies, self.epsilon, self.delta, **how)

    def _round_noises(self, parts=(1.0,)):
        """Return the noise of each round, with these fractions of the share of all rounds."""
        how = self._relation(), self.epsilon, self.delta
        return [round_noise(*how, self._round_share * part) for part in parts]

    def _promise(self, noise):
        return noise.promise(seeded=self._is_seeded(), unit=self._unit)

    def _composed(self, sums, pilots, rounds):
        """Return the guarantee of sums, pilots and rounds together; none if bounds leak."""
        if sums is None:
            caveats = ("no noise was asked for",)
            return Guarantee("none", self.neighbours, caveats=caveats, unit=self._unit)
        whole = sums.compose(*(pilot.part("pilot") for pilot in pilots))
        return Guarantee.of(
            [*whole.releases, *(noise.statement(_ROUND, units="radii") for noise in rounds)],
            "none" if self._leaks else whole.definition,
            whole.relation,
            delta=whole.delta,
            seeded=self._is_seeded(),
            caveats=(*whole.caveats, *(self._leaks or (*caveats_of_bounds(self), _LARGE))),
            unit=self._unit,
        )
