r"""Compressive k-means as the paper's experiments need it: at a given SNR, on many devices.

All methods of a trial share one draw of frequencies, those of the largest sketch; a smaller sketch
takes the first of them. Where an experiment sums up its data once, `share_sums` does it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privclust.datasets.clusters import draw_mixture
from privclust.experiments.runner import TrialStreams
from privclust.kmeans._feature_sums import FeatureSums
from privclust.kmeans._frequencies import draw_frequencies
from privclust.kmeans._release import laplace_noise, release, scrambled, sound_sigma_xi
from privclust.kmeans._sketch import Sketch
from privclust.kmeans._sketch_decoding import decode
from privclust.privacy.noise import noise_source
from privclust.validation import check_option

VARIANCE = 4.0
"""Of the frequencies' law, in units of a cluster's variance; not given in the paper.

It makes the squared norm of the sketch about 0.31 on mixtures with k = d = 10. A public setting:
the paper's mixtures have unit covariances.
"""
NORM2 = 0.35
r"""The paper's :math:`\delta`, its value of :math:`\|z\|^2` in eq. (7)."""

_ROUNDED_BY = 0.1  # part of an SNR that may be lost or won by rounding r to a whole number
_SUCCESS = 100.0, 10.0  # SNR m / (k d) and m / (k d) from which the paper calls recovery successful
_CLEAR_EPSILON = 1e-2  # above which one device is to suffice
_TOO_SMALL, _BETWEEN, _RECOVERABLE = 0.0, 1.0, 2.0


def snr(alpha_r: float, sigma_xi: float, n_samples: int, norm2: float = NORM2) -> float:
    r"""Return the SNR of eq. (6) for :math:`L n_0` = `n_samples` and :math:`\|z\|^2` = `norm2`.

    Examples
    --------
    >>> round(snr(1.0, 0.0, 10_000))
    5385
    """
    return alpha_r * n_samples * norm2 / (1.0 - alpha_r * norm2 + sigma_xi**2)


def sigma_xi_for(target: float, alpha_r: float, n_samples: int) -> float | None:
    r"""Return :math:`\sigma_\xi` with which eq. (6) has an SNR, None where noise cannot raise it.

    Examples
    --------
    >>> round(snr(0.1, sigma_xi_for(30.0, 0.1, 10_000), 10_000), 9)
    30.0
    """
    square = alpha_r * n_samples * NORM2 / target - 1.0 + alpha_r * NORM2
    return math.sqrt(square) if square >= 0.0 else None


def measurements_for(target: float, sigma_xi: float, n_samples: int, m: int) -> int | None:
    """Return the r in 1..m whose SNR of eq. (6) is nearest, None where it is off by over a tenth.

    Examples
    --------
    >>> measurements_for(100.0, 0.0, 10_000, 1000)
    28
    >>> measurements_for(1.0, 0.0, 10_000, 1000) is None
    True
    """
    alpha_r = target * (1.0 + sigma_xi**2) / (NORM2 * (n_samples + target))
    r = min(max(round(alpha_r * m), 1), m)
    is_near = abs(snr(r / m, sigma_xi, n_samples) / target - 1.0) <= _ROUNDED_BY
    return r if is_near else None


def trial_frequencies(rng: np.random.Generator, n_features: int, m: int) -> np.ndarray:
    """Return the frequencies of a trial, shape (n_features, m), from a fresh init stream."""
    return draw_frequencies(n_features, m, variance=VARIANCE, random_state=rng)


def share_sums(
    point: Mapping[str, Any],
    trial: int,
    streams: TrialStreams,
    dataset: None,
    shard: int,
    n_shards: int,
) -> dict[str, np.ndarray]:
    """Sum up the features of a shard of a mixture's rows, in one pass, drawn chunk by chunk.

    Parameters
    ----------
    point : mapping
        As of `privclust.experiments.compression.mixture_trial`, with ``n_frequencies``; if wanted
        ``n_masked`` and ``n_measurements``, for a second sketch of the first ``n_masked``
        frequencies where each row takes part in ``n_measurements``.
    trial : int
        Not used beyond the stream's key.
    streams : TrialStreams
        The data stream draws the mixture, the init stream frequencies and then the masks' seed.
    dataset : None
    shard, n_shards : int

    Returns
    -------
    dict of str to ndarray
        Integers of `FeatureSums.state`, as ``"full_<name>"`` and ``"masked_<name>"``.
    """
    n, k, d = point["n_samples"], point["n_clusters"], point["n_features"]
    shape = point.get("shape", "paper")
    mixture = draw_mixture(shape, n, k, d, int(streams.get("data").integers(2**63)))
    start, stop = shard * n // n_shards, (shard + 1) * n // n_shards
    rng = streams.get("init")
    frequencies = trial_frequencies(rng, d, point["n_frequencies"])
    sums = {"full": FeatureSums(frequencies)}
    if "n_masked" in point:
        sums["masked"] = FeatureSums(
            frequencies[:, : point["n_masked"]],
            n_measurements=point["n_measurements"],
            mask_seed=int(rng.integers(2**63)),
            first_record=start,
        )
    for chunk in mixture.chunks(start, stop, dtype=np.float32):
        for found in sums.values():
            found.add(chunk)
    return {
        f"{kind}_{name}": array
        for kind, found in sums.items()
        for name, array in found.state().items()
    }


class _SketchedKMeans:
    """What the methods have in common: from rows or shared sums to a sketch, then to centers."""

    def fit(self, X, y=None):
        """Sketch the rows (or take the shared sums), add noise, decode."""
        noise = noise_source(self.random_state)
        d = len(self.bounds[0])
        rng = self.design
        frequencies = trial_frequencies(rng, d, self.n_frequencies)
        m = self._size(d)
        if m > self.n_frequencies:
            raise ValueError(f"n_frequencies must be at least {m}, got {self.n_frequencies}")
        n = int(self.shared["full_n_samples"][0]) if self.shared else len(X)
        r = self._measurements(n, m)
        self.numbers_ = self._numbers(r, n, m)
        self.cluster_centers_ = np.full((self.n_clusters, d), np.nan)
        if r is None:
            return self
        seed = int(rng.integers(2**63))
        private = self._noised(self._sketch(X, frequencies[:, :m], r, seed), noise)
        self.cluster_centers_ = decode(
            private,
            self.n_clusters,
            bounds=self.bounds,
            method="clompr" if self.decoder == "clompr" else "gaussian",
            spread="shared" if self.decoder == "gaussian_shared" else "per_cluster",
            n_init=self.n_init,
            random_state=noise,
        ).centers
        return self

    def _size(self, d: int) -> int:
        """m of m / (k d)."""
        return round(self.m_factor * self.n_clusters * d)

    def _sketch(self, X, frequencies, r: int, seed: int) -> Sketch:
        """The sketch without noise."""
        m = frequencies.shape[1]
        if not self.shared:
            sums = FeatureSums(frequencies, n_measurements=r, mask_seed=seed).add(X)
            return Sketch.from_feature_sums(sums)
        kind = "full_" if r == m else "masked_"
        state = {
            name: self.shared[kind + name][:m] if name != "n_samples" else self.shared[kind + name]
            for name in ("whole", "fraction", "n_samples")
        }
        return Sketch.from_feature_sums(
            FeatureSums.from_state(state, frequencies, n_measurements=r)
        )


class KMeansAtSNR(_SketchedKMeans):
    r"""Compressive k-means on a scrambled sketch of a given SNR, Section 5.

    The SNR is that of eq. (6) with :math:`\|z\|^2` = 0.35, as in the paper. Either
    :math:`\alpha_r` or :math:`\sigma_\xi` is given, the other follows. r is a whole number; where
    that, or the range of either, keeps the SNR off by more than a tenth, centers are NaN.

    Parameters
    ----------
    n_clusters : int
    snr : float
        None for a sketch with neither noise nor masks.
    m_factor : float
        m / (k d).
    alpha_r, sigma_xi : float or None
        One of them None, if there is an SNR.
    decoder : {"clompr", "gaussian", "gaussian_shared"}
    n_init : int or None
        Most starts of the decoder; None for its own choice.
    bounds : (low, high)
        Arrays of shape (n_features,).
    design : numpy.random.Generator
        A fresh init stream: frequencies, then masks.
    n_frequencies : int
        Of the largest sketch in the trial.
    shared : mapping of str to ndarray or None
        From `share_sums`, in place of rows.
    random_state : numpy.random.Generator
        Of noise and decoder.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    numbers_ : dict of str to float
        ``snr_attained``, of eq. (6) with the whole r; ``regime``: 0 below m = k d, 2 where the
        paper calls the reconstruction successful, 1 otherwise.
    """

    def __init__(
        self,
        n_clusters,
        *,
        snr=None,
        m_factor=10.0,
        alpha_r=1.0,
        sigma_xi=None,
        decoder="clompr",
        n_init=None,
        bounds=None,
        design=None,
        n_frequencies=None,
        shared=None,
        random_state=None,
    ):
        check_option("decoder", decoder, ("clompr", "gaussian", "gaussian_shared"))
        self.n_clusters = n_clusters
        self.snr = snr
        self.m_factor = m_factor
        self.alpha_r = alpha_r
        self.sigma_xi = sigma_xi
        self.decoder = decoder
        self.n_init = n_init
        self.bounds = bounds
        self.design = design
        self.n_frequencies = n_frequencies
        self.shared = shared
        self.random_state = random_state

    def _measurements(self, n, m):
        """r, or None where the SNR cannot be had; fixes the noise too."""
        self._sigma_xi = 0.0
        if self.snr is None:
            return m
        if self.alpha_r is None:
            self._sigma_xi = self.sigma_xi
            return measurements_for(self.snr, self.sigma_xi, n, m)
        self._sigma_xi = sigma_xi_for(self.snr, self.alpha_r, n)
        return None if self._sigma_xi is None else round(self.alpha_r * m)

    def _noised(self, sketch, noise):
        """Definition 3, with noise that follows from the SNR."""
        return scrambled(sketch, self._sigma_xi, random_state=noise)

    def _numbers(self, r, n, m):
        """What claims are split by."""
        d = len(self.bounds[0])
        ratio = m / (self.n_clusters * d)
        attained = math.nan if r is None else snr(r / m, self._sigma_xi, n)
        regime = _BETWEEN
        if ratio < 1.0:
            regime = _TOO_SMALL
        elif self.snr is not None and ratio >= _SUCCESS[1] and self.snr * ratio >= _SUCCESS[0]:
            regime = _RECOVERABLE
        return {"snr_attained": attained, "regime": regime}


class KMeansOnDevices(_SketchedKMeans):
    r"""Compressive k-means with the rows on L devices, each of which adds noise of its own.

    Definitions 3 and 4 with :math:`n_0 = n / L` and the :math:`\sigma_\xi` of eq. (7) (see
    `privclust.kmeans._release.sound_sigma_xi`), for replaced rows; or normal noise.

    Parameters
    ----------
    n_clusters : int
    epsilon : float
        In nats.
    delta : float
        0 for Laplace noise; else normal noise, on one device.
    n_devices : int
        L.
    alpha_r : float
        r / m.
    m_factor, decoder, n_init, bounds, design, n_frequencies, shared, random_state : object
        As of `KMeansAtSNR`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    numbers_ : dict of str to float
        ``snr_attained``, by eq. (7) (NaN for normal noise); ``regime``: 2 where epsilon > 0.01,
        from which on one device is to suffice, 1 otherwise.
    """

    def __init__(
        self,
        n_clusters,
        *,
        epsilon,
        delta=0.0,
        n_devices=1,
        alpha_r=1.0,
        m_factor=10.0,
        decoder="clompr",
        n_init=None,
        bounds=None,
        design=None,
        n_frequencies=None,
        shared=None,
        random_state=None,
    ):
        check_option("decoder", decoder, ("clompr", "gaussian", "gaussian_shared"))
        if delta > 0.0 and n_devices > 1:
            raise ValueError(f"n_devices must be 1 with normal noise, got {n_devices}")
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.n_devices = n_devices
        self.alpha_r = alpha_r
        self.m_factor = m_factor
        self.decoder = decoder
        self.n_init = n_init
        self.bounds = bounds
        self.design = design
        self.n_frequencies = n_frequencies
        self.shared = shared
        self.random_state = random_state

    def _measurements(self, n, m):
        """r."""
        return round(self.alpha_r * m)

    def _noised(self, sketch, noise):
        """Noise of all devices at once: its scale on sums does not depend on their rows."""
        mechanism = "gaussian" if self.delta > 0.0 else "laplace"
        first = release(sketch, self.epsilon, self.delta, noise=mechanism, random_state=noise)
        others = self.n_devices - 1
        if not others:
            return first
        each = laplace_noise(sketch.n_measurements, first.guarantee.relation, float(self.epsilon))
        parts = each.release(np.zeros((others, 2 * sketch.n_frequencies)), noise)
        sums = first.sums + parts.sum(axis=0).view(np.complex128)
        return replace(first, sums=sums, noise=replace(first.noise, n_parts=self.n_devices))

    def _numbers(self, r, n, m):
        """What claims are split by."""
        attained = math.nan
        if not self.delta:
            n0 = max(n // self.n_devices, 1)
            attained = snr(r / m, sound_sigma_xi(r / m, m, n0, self.epsilon), n)
        regime = _RECOVERABLE if self.epsilon > _CLEAR_EPSILON else _BETWEEN
        return {"snr_attained": attained, "regime": regime}
