"""k-means from a sketch of the data, private or not."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from privclust.core.hints import Bounds, RandomState
from privclust.core.lloyd import nearest_center
from privclust.core.validation import Real, as_generator, check_parameters
from privclust.kmeans._feature_sums import FeatureSums
from privclust.kmeans._frequencies import draw_frequencies
from privclust.kmeans._lloyd import CenterClusterer
from privclust.kmeans._mixture_decoder import cell_variance
from privclust.kmeans._moments import Moments, estimate_moments
from privclust.kmeans._release import promise, smaller_noise
from privclust.kmeans._release import uncharged_release as release
from privclust.kmeans._sketch import Sketch, check_alike
from privclust.kmeans._sketch_decoding import (
    count_noise,
    decode,
    hidden_by_noise,
    leaves_box,
    mean_features,
)
from privclust.privacy import Guarantee, Neighbours, PrivacyLeakWarning, noise_source
from privclust.privacy.bounds import Box, checked_box, extremes
from privclust.privacy.budget import charge
from privclust.privacy.hidden import warn_of_noise
from privclust.privacy.noise import is_seeded, unprotected_generator
from privclust.privacy.records import PrivateEstimator, private_records
from privclust.privacy.sensitivity import check_neighbours

_PER_UNKNOWN, _LEAST_FREQUENCIES = 10, 500  # m = 10 k d, as the paper recommends, while it is
_LARGE_SKETCH, _PER_UNKNOWN_IF_LARGE = 5000, 3  # below this; normal noise grows with sqrt(m) only
_PER_UNKNOWN_LAPLACE, _LEAST_FREQUENCIES_LAPLACE = 5, 100  # as Laplace noise grows with m
_MOST_BROAD, _FEW_FEATURES = 0.5, 3  # part of the frequencies on all scales; where 1 / d are
_VARIANCE_OF_CLUSTER = 4.0  # the adapted law's variance is this times that of a cluster
_PILOT_SHARE = 0.1  # of the budget, to learn where the data are
_PILOT_FREQUENCIES, _PILOT_PER_FEATURE = 64, 4
_PILOT_DECADES = -0.7, 2.3  # radii of pilot frequencies times half the box's width
_ANY_ROW = (
    "entries that are no numbers count as the middle of the bounds, those too large for phases as "
    "the largest that are not"
)
_LARGEST, _NARROWEST = 1e99, 1e-20  # coordinates and widths whose frequencies are ordinary numbers


class CompressiveKMeans(
    PrivateEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, CenterClusterer
):
    r"""k-means from the mean of random Fourier features: one pass, any number of devices.

    Rows are seen once, to add up :math:`\exp(i \omega_j' x)` for m random frequencies; noise on
    these sums makes them private, and centers are decoded from them, see `decode`. A row moves
    each sum by a bounded amount wherever it lies, so nothing is clipped; bounds only say where to
    look. With declared bounds any row is taken: an entry that is NaN counts as the middle of the
    bounds, and one too large for phases as the largest that is not.

    Laplace noise, the default, grows with m, normal noise with its root: at 100 frequencies and
    epsilon 1 Laplace noise has 4.7 times the deviation of normal noise with a delta of 1e-6. In a
    box 20 wide it hides what a thousand rows tell of two clusters 0.6 apart. Give a delta, narrow
    bounds or more rows.

    Frequencies need a scale. Without `variance` a part of the budget (10 %) buys a small sketch at
    frequencies of all scales from which mean and variances of the data are estimated.

    Parameters
    ----------
    n_clusters : int
        k.
    epsilon : float or None
        Budget in nats; None, which has to be asked for, adds no noise, and nothing is private.
    delta : float
        From 0 to less than 1. 0: pure differential privacy, by Laplace noise. A positive delta
        allows normal noise, of which far less is needed (see `release`).
    noise : {"auto", "laplace", "gaussian"}
        ``"auto"`` takes what has the smaller variance.
    neighbours : {"replace_one", "add_remove"}
        Which change of the rows is hidden: one of n exchanged, and n public; or one more or less.
    bounds : (low, high) or None
        Box in which the data are known to lie, each a number or an array of shape (n_features,).
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
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]`` if epsilon is given), anything else for
        reproduction.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        Nearest center of each row of X. These are not private: they stay with who holds the rows,
        and are left out of pickles.
    is_clear_ : ndarray of shape (n_clusters,)
        Whether a cluster is more than noise (`privclust.kmeans._sketch_check`).
    explained_ : float
        Part of what one cluster leaves of the sketch that all explain, from 0 to 1.
    is_outside_bounds_ : bool
        Whether sketch or pilot say that data lie outside the bounds.
    guarantee_ : privclust.privacy.Guarantee
    sketch_ : Sketch
        What the centers were decoded from; its guarantee is that of the fit.
    weights_ : ndarray of shape (n_clusters,)
        Parts of the data that the decoder gives to the clusters.

    See Also
    --------
    privclust.kmeans.Sketch : sketches of files and streams, merged over devices.

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

    _constraints: ClassVar = {
        "delta": Real(inclusive=True, below=1.0),
        "neighbours": check_neighbours,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float | None = 1.0,
        delta: float = 0.0,
        noise: Literal["auto", "laplace", "gaussian"] = "auto",
        neighbours: Literal["replace_one", "add_remove"] = "replace_one",
        bounds: Bounds | None = None,
        n_frequencies: int | None = None,
        variance: float | None = None,
        decoder: Literal["gaussian", "clompr"] = "gaussian",
        spread: Literal["per_cluster", "shared"] = "per_cluster",
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.neighbours = neighbours
        self.bounds = bounds
        self.n_frequencies = n_frequencies
        self.variance = variance
        self.decoder = decoder
        self.spread = spread
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Sketch the rows, add noise, and find centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, finite ones unless bounds are declared; float32 stays float32, which is twice
            as fast. With ``neighbours="add_remove"``, an epsilon and declared bounds there may be
            any number of rows, even none.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X is not as described, or has fewer rows than clusters where their number is public,
            or if a parameter is out of its range.
        ImportError
            If `random_state` is None, an epsilon is given and OpenDP is not installed.

        Warns
        -----
        PrivacyLeakWarning
            If bounds are taken from the data for a private fit.
        NoiseWarning
            If a cluster cannot be told from noise, or data lie outside the bounds.
        """
        X = self._records(X)
        self._check_parameters(X)
        self._start(X)
        return self._add(X, None)

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Add rows that were not seen before, and find centers anew.

        The paper's protocol with one device a call: rows are sketched with the frequencies of the
        first call, which alone pays for their scale, noise is added for these rows, and the private
        sketch is merged with those before. Each row is in one call, so the privacy of all calls is
        that of one (parallel composition); calls must not overlap, and which rows come in which
        call must not depend on other rows. Noise adds up over calls: few large calls serve better
        than many small ones.

        Parameters and errors are those of `fit`; all calls need the same number of features, and
        the first at least as many rows as there are clusters, where their number is public.
        """
        first = not hasattr(self, "sketch_")
        X = self._records(X, reset=first)
        self._check_parameters(X if first else None)
        if first:
            self._start(X)
        elif (self.epsilon is None) != (self.sketch_.noise is None):
            raise ValueError(
                "epsilon must be a number in all calls of partial_fit or None in all, "
                f"got {self.epsilon!r} after calls {'without' if self.epsilon else 'with'} one"
            )
        return self._add(X, None if first else self._merged)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the distance of each row to each center, shape (n_samples, n_clusters)."""
        return cdist(self._validated(X), self.cluster_centers_)

    @property
    def _n_features_out(self):
        """For the names of what `transform` returns."""
        return len(self.cluster_centers_)

    def _records(self, X, reset=True):
        """Return the rows of X, checked for what is public of them."""
        relation = Neighbours.of(self.neighbours)
        if self.epsilon is None or self.bounds is None:
            relation = Neighbours.REPLACE_ONE  # mean or box are taken from rows: there must be some
        types = [np.float64, np.float32]
        return private_records(self, X, dtype=types, neighbours=relation, reset=reset)

    def _sketched(self, X, frequencies):
        """Return the sketch of rows without noise."""
        sums = FeatureSums(frequencies)
        if self.bounds is not None:
            X = sums.drawn_in(X, self._box_of_data.center)
        return Sketch.from_feature_sums(sums.add(X))

    def _box(self, X):
        """Return the box that bounds declare, or for a private fit the data's, and the leak."""
        if self.bounds is not None:
            box = checked_box(self.bounds, X.shape[1])
            _check_scale("bounds", box.low, box.high)
            return box, ()
        low, high = extremes(X)
        _check_scale("X", low, high)
        if self.epsilon is None:
            return None, ()
        leak = "bounds were not given and are taken from the data"
        warnings.warn(
            f"{leak}: the fit has no guarantee. Give bounds that are known without the data.",
            PrivacyLeakWarning,
            stacklevel=3,
        )
        margin = 1e-3 * max(float((high - low).max()), 1e-6 * float(np.abs(X).max()), 1e-12)
        return Box(low - margin, high + margin), (leak,)

    def _start(self, X):
        """Choose where to look and the frequencies, from nothing, a pilot or the rows."""
        d = X.shape[1]
        self._box_of_data, self._leaks = self._box(X)
        if self.epsilon is None:
            self._rng = as_generator(self.random_state)
        else:
            self._rng = unprotected_generator(noise_source(self.random_state))
        m = self.n_frequencies or _number_of_frequencies(self.n_clusters * d)
        if self.epsilon is not None:  # one kind of noise for all releases: their shares add up
            self._mechanism = self.noise
            if self.noise == "auto":
                self._mechanism = smaller_noise(m, self.neighbours, self.epsilon, self.delta)
            if self._mechanism == "laplace" and self.n_frequencies is None:
                m = max(_PER_UNKNOWN_LAPLACE * self.n_clusters * d, _LEAST_FREQUENCIES_LAPLACE)
        self._share = 1.0
        self._charge(m, 0 if self.variance is not None else _pilot_size(d))
        self._data_moments, self._pilots, self._share = self._moments(X)
        variance = self.variance
        if variance is None:
            part = cell_variance(self.n_clusters, d)
            variance = _VARIANCE_OF_CLUSTER * self._data_moments.variance * part
        self._frequencies = _draw(d, m, variance, self._rng)

    def _add(self, X, before):
        """Sketch rows, add noise, merge with the sketch before (or None), and find centers."""
        if before is not None:
            self._charge(before.n_frequencies, before=before)
        sketch = self._released(self._sketched(X, self._frequencies), self._share)
        self._merged = sketch if before is None else before + sketch
        self.guarantee_ = self._guarantee()
        # its frequencies tell of the pilot too, so that it promises what the whole fit does
        private = self._merged.noise is not None
        self.sketch_ = replace(self._merged, guarantee=self.guarantee_ if private else None)
        box = self._box_of_data
        decoded = decode(
            self.sketch_,
            self.n_clusters,
            bounds=None if box is None else (box.low, box.high),
            method=self.decoder,
            spread=self.spread,
            moments=self._data_moments,
            random_state=self._rng,
        )
        self.cluster_centers_, self.weights_ = decoded.centers, decoded.weights
        self.labels_ = nearest_center(X, self.cluster_centers_)
        self._check_noise(decoded)
        return self

    def _check_noise(self, decoded):
        """Say what noise hides, if there is any, and whether data lie outside the bounds."""
        box = self._box_of_data
        elsewhere = any(leaves_box(pilot, box) for pilot in self._pilots)
        decoded = replace(decoded, is_outside=decoded.is_outside or elsewhere)
        self.is_clear_, self.explained_ = decoded.is_clear, decoded.explained
        self.is_outside_bounds_ = decoded.is_outside
        warn_of_noise(hidden_by_noise(self.sketch_, decoded))

    def _moments(self, X):
        """Return where the data are, the sketches this took, and the share of budget left."""
        if self.epsilon is None:
            mean, variances = (f(axis=0, dtype=np.float64) for f in (X.mean, X.var))
            least = float(variances.max()) * 1e-12 or 1.0  # rows that are all equal set no scale
            return Moments(mean, np.maximum(variances, least)), [], 1.0
        if self.variance is not None:
            return None, [], 1.0
        d, box, rng = X.shape[1], self._box_of_data, self._rng
        size = _pilot_size(d)
        directions = rng.standard_normal((d, size))
        directions /= np.linalg.norm(directions, axis=0)
        half = math.sqrt(float((box.half_widths**2).mean()))
        radii = np.logspace(*_PILOT_DECADES, size) / half
        pilot = self._released(self._sketched(X, directions * radii), _PILOT_SHARE)
        features, noise, _ = mean_features(pilot)
        moments = estimate_moments(features, pilot.frequencies, noise, box, rng, count_noise(pilot))
        return moments, [pilot], 1.0 - _PILOT_SHARE

    def _released(self, sketch, share):
        """Return the sketch with noise, if any is asked for."""
        if self.epsilon is None:
            return sketch
        return release(
            sketch,
            self.epsilon,
            self.delta,
            noise=self._mechanism,
            neighbours=self.neighbours,
            share=share,
            random_state=None if self.random_state is None else self._rng,
        )

    def _charge(self, m, n_pilot=0, before=None):
        """Charge what a call will release: a sketch and, of so many frequencies, a pilot.

        The sketch is to be merged with the one before, if there is any.
        """
        if self.epsilon is None:
            charge(self._composed(None, []))
            return
        share = 1.0 - _PILOT_SHARE if n_pilot else self._share
        parts = [
            promise(
                size,
                size,
                self.epsilon,
                self.delta,
                noise=self._mechanism,
                neighbours=self.neighbours,
                share=part,
                seeded=is_seeded(noise_source(self.random_state)),
            )
            for size, part in ((m, share), (n_pilot, _PILOT_SHARE))
            if size
        ]
        if before is not None:
            check_alike(before.guarantee, parts[0])  # now, not when noise has been paid for
        charge(self._composed(parts[0], parts[1:]))

    def _composed(self, sums, pilots):
        """Return what sums and pilots promise together."""
        relation = Neighbours.of(self.neighbours)
        if self.epsilon is None:
            return Guarantee("none", relation, caveats=("no noise was asked for",))
        others = [pilot.part("pilot") for pilot in pilots]
        if self._leaks:
            others.append(Guarantee("none", relation, caveats=self._leaks))
        whole = sums.compose(*others)
        return whole if self._leaks else replace(whole, caveats=(*whole.caveats, _ANY_ROW))

    def _guarantee(self):
        """State what all calls together promise."""
        pilots = [pilot.guarantee for pilot in self._pilots]
        return self._composed(self._merged.guarantee, pilots)

    def _check_parameters(self, X):
        """Raise a ValueError; X is None where there may be fewer rows than clusters."""
        is_public = Neighbours.of(self.neighbours) is Neighbours.REPLACE_ONE
        check_parameters(self, X, count_is_public=self.epsilon is None or is_public)
        if self.noise == "gaussian" and self.delta == 0:
            raise ValueError("noise='gaussian' needs a delta greater than 0, got delta=0")


def _pilot_size(n_features: int) -> int:
    """Return how many frequencies a pilot has."""
    return _PILOT_FREQUENCIES + _PILOT_PER_FEATURE * n_features


def _draw(n_features, n_frequencies, variance, rng):
    """Draw frequencies around one scale, and where features are few a part of them on all scales.

    A narrow cluster beside a wide one has its own scale. With one to three features both can be
    afforded; with more, too much is taken from the scale that most clusters have.
    """
    part = min(_MOST_BROAD, 1.0 / n_features) if n_features <= _FEW_FEATURES else 0.0
    n_broad = int(part * n_frequencies)
    settings = {"variance": variance, "random_state": rng}
    parts = [draw_frequencies(n_features, n_frequencies - n_broad, **settings)]
    if n_broad:
        parts.append(draw_frequencies(n_features, n_broad, law="log_uniform", **settings))
    return np.hstack(parts)


def _number_of_frequencies(n_unknowns: int) -> int:
    """Return m for so many center coordinates."""
    m = min(_PER_UNKNOWN * n_unknowns, _LARGE_SKETCH)
    return max(m, _PER_UNKNOWN_IF_LARGE * n_unknowns, _LEAST_FREQUENCIES)


def _check_scale(name, low, high):
    """Raise a ValueError unless squares and frequencies of what lies in a box are no trouble."""
    largest = max(-float(low.min()), float(high.max()))
    width = float((0.5 * high - 0.5 * low).max())
    if largest > _LARGEST or 0.0 < width < _NARROWEST:
        raise ValueError(
            f"{name} must have a magnitude of at most {_LARGEST:g} and a width of at least "
            f"{2 * _NARROWEST:g}: rescale X"
        )
