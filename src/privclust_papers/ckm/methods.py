r"""Compressive k-means in the paper's experiments: at a given SNR, on many devices.

All methods of a trial share the frequencies of the largest sketch; a smaller sketch uses the first
of them. `share_sums` computes sums once for all methods of an experiment.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privclust.core.validation import check_option
from privclust.decoding import decode
from privclust.sketches import (
    FeatureSums,
    Sketch,
    corrected_sigma_xi,
    draw_frequencies,
    laplace_noise,
    release,
    scrambled,
)
from privclust.synthetic.clusters import draw_mixture
from privclust_papers.ckm.data import as_array, budget_regime
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.shared.rows import Point

VARIANCE = 4.0
"""Variance for the frequencies, relative to that of a cluster; not given in the paper.

With this value the squared norm of the sketch is about 0.31 on mixtures with k = d = 10. The
setting is public: the paper's mixtures have unit covariances.
"""
NORM2 = 0.35
r"""The paper's :math:`\delta`, its value of :math:`\|z\|^2` in eq. (7)."""

_PAPER_ROWS = 10**7  # n in Section 6
_SNR_TOLERANCE = 0.1  # relative change of an SNR that rounding r to an integer may cause
# least SNR m / (k d) and m / (k d) at which the paper calls recovery successful
_SUCCESS_SNR, _SUCCESS_FACTOR = 100.0, 10.0
DECODERS = ("clompr", "gaussian", "gaussian_shared")
_TOO_SMALL, _BETWEEN, _RECOVERABLE = 0.0, 1.0, 2.0

Noisy = Callable[[Sketch, np.random.Generator], Sketch]


def attained_snr(alpha_r: float, sigma_xi: float, n_samples: int, norm2: float = NORM2) -> float:
    r"""Return the SNR of eq. (6) for :math:`L n_0` = `n_samples` and :math:`\|z\|^2` = `norm2`."""
    return alpha_r * n_samples * norm2 / (1.0 - alpha_r * norm2 + sigma_xi**2)


def sigma_xi_for(target: float, alpha_r: float, n_samples: int) -> float | None:
    r"""Return :math:`\sigma_\xi` for an SNR by eq. (6); None if it is out of reach."""
    # Eq. (6) solved for sigma_xi^2.
    square = alpha_r * n_samples * NORM2 / target - 1.0 + alpha_r * NORM2
    return math.sqrt(square) if square >= 0.0 else None


def measurements_for(target: float, sigma_xi: float, n_samples: int, m: int) -> int | None:
    """Return the r in 1..m with the nearest SNR by eq. (6); None if it differs by over 10 %."""
    # Eq. (6) solved for alpha_r.
    alpha_r = target * (1.0 + sigma_xi**2) / (NORM2 * (n_samples + target))
    r = min(max(round(alpha_r * m), 1), m)
    is_near = abs(attained_snr(r / m, sigma_xi, n_samples) / target - 1.0) <= _SNR_TOLERANCE
    return r if is_near else None


def trial_frequencies(rng: np.random.Generator, n_features: int, m: int) -> np.ndarray:
    """Return the frequencies of a trial (n_features, m), from a fresh init stream."""
    return draw_frequencies(n_features, m, variance=VARIANCE, random_state=rng)


def share_sums(
    point: Point, trial: int, streams: TrialStreams, dataset: None, shard: int, n_shards: int
) -> dict[str, np.ndarray]:
    """Return the sums of features of a shard of a mixture's rows, drawn chunk by chunk.

    The point is that of `privclust_papers.ckm.data.mixture_trial`, with ``n_frequencies``.
    Optional ``masks``, such as ``"1000/100 2000/20"``, add a sketch for each m/r: of the first m
    frequencies, to r of which each row contributes. The init stream draws frequencies, then the
    seed of all masks. Returns the integers of `FeatureSums.state`, as ``"full_<name>"`` and
    ``"masked_<m>_<r>_<name>"``.
    """
    n, k, d = point["n_samples"], point["n_clusters"], point["n_features"]
    shape = point.get("shape", "paper")
    mixture = draw_mixture(shape, n, k, d, int(streams.get("data").integers(2**63)))
    start, stop = shard * n // n_shards, (shard + 1) * n // n_shards
    rng = streams.get("init")
    frequencies = trial_frequencies(rng, d, point["n_frequencies"])
    sums = {"full": FeatureSums(frequencies)}
    seed = int(rng.integers(2**63))
    for sizes in point.get("masks", "").split():
        m, r = map(int, sizes.split("/"))
        # Masks are a function of seed and record number, so that they do not depend on shards.
        masks = {"n_measurements": r, "mask_seed": seed, "first_record": start}
        sums[f"masked_{m}_{r}"] = FeatureSums(frequencies[:, :m], **masks)
    for chunk in mixture.chunks(start, stop, dtype=np.float32):
        for part in sums.values():
            part.add(chunk)
    states = {kind: part.state() for kind, part in sums.items()}
    return {f"{kind}_{name}": v for kind, state in states.items() for name, v in state.items()}


@dataclass(frozen=True)
class Sketching:
    """Sketching and decoding of a trial's rows, except for noise and masks."""

    # of `privclust_papers.ckm.data`; ``shared``, from `share_sums`, replaces rows
    data: TrialData
    # the init stream draws frequencies, then masks; the noise stream noise, then starts
    streams: TrialStreams
    m_factor: float = 10.0  # m / (k d)
    decoder: str = "clompr"
    n_init: int | None = None  # most starts of the decoder; None for its default

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        shared = self.data.extra.get("shared")
        return int(shared["full_n_samples"][0]) if shared else len(as_array(self.data.X))

    @property
    def n_frequencies(self) -> int:
        """Size m of this sketch."""
        return round(self.m_factor * self.data.extra["n_clusters"] * self._n_features)

    @property
    def factor(self) -> float:
        """m / (k d) with the integer m."""
        return self.n_frequencies / (self.data.extra["n_clusters"] * self._n_features)

    @property
    def _n_features(self) -> int:
        return len(self.data.extra["bounds"][0])

    def centers(self, n_measurements: int | None, noisy: Noisy) -> np.ndarray:
        """Return centers from the noisy sketch, or NaN without measurements."""
        check_option("decoder", self.decoder, DECODERS)
        k, n_drawn = (self.data.extra[name] for name in ("n_clusters", "n_frequencies"))
        m = self.n_frequencies
        if m > n_drawn:
            raise ValueError(f"n_frequencies must be at least {m}, got {n_drawn}")
        if n_measurements is None:
            return np.full((k, self._n_features), np.nan)
        rng, noise = self.streams.get("init"), self.streams.get("noise")
        frequencies = trial_frequencies(rng, self._n_features, n_drawn)[:, :m]
        # The same order as in `share_sums`: frequencies first, then the seed of masks.
        seed = int(rng.integers(2**63))
        return decode(
            noisy(self._sketch(frequencies, n_measurements, seed), noise),
            k,
            bounds=self.data.extra["bounds"],
            method="clompr" if self.decoder == "clompr" else "gaussian",
            spread="shared" if self.decoder == "gaussian_shared" else "per_cluster",
            n_init=self.n_init,
            random_state=noise,
        ).centers

    def _sketch(self, frequencies, r: int, seed: int) -> Sketch:
        m, shared = frequencies.shape[1], self.data.extra.get("shared")
        if not shared:
            sums = FeatureSums(frequencies, n_measurements=r, mask_seed=seed)
            return Sketch.from_feature_sums(sums.add(as_array(self.data.X)))
        # Without masks every method uses the one full sketch, cut to its first m frequencies.
        kind = "full_" if r == m else f"masked_{m}_{r}_"
        state = {name: shared[kind + name][:m] for name in ("whole", "fraction")}
        state["n_samples"] = shared[f"{kind}n_samples"]
        sums = FeatureSums.from_state(state, frequencies, n_measurements=r)
        return Sketch.from_feature_sums(sums)


def kmeans_at_snr(
    data: TrialData,
    streams: TrialStreams,
    *,
    snr: float | None = None,
    alpha_r: float | None = 1.0,
    sigma_xi: float | None = None,
    m_factor: float = 10.0,
    **decoding: Any,
) -> dict[str, np.ndarray]:
    r"""Compressive k-means on a scrambled sketch of a given SNR, Section 5.

    The SNR is that of eq. (6) with :math:`\|z\|^2` = 0.35, as in the paper. One of
    :math:`\alpha_r` and :math:`\sigma_\xi` is given and determines the other. Without an SNR there
    is neither noise nor masks. Centers are NaN if the SNR differs by more than 10 %, since r is an
    integer or a value is out of range. `m_factor` and `decoding` are those of `Sketching`.

    Returns ``centers`` (n_clusters, n_features); ``regime``: 0 below m = k d, 2 if the paper calls
    the reconstruction successful, 1 otherwise.
    """
    sketching = Sketching(data, streams, m_factor, **decoding)
    n, m, factor = sketching.n_samples, sketching.n_frequencies, sketching.factor
    if snr is None:
        noise, r = 0.0, m
    elif alpha_r is None:
        noise, r = sigma_xi, measurements_for(snr, sigma_xi, n, m)
    else:
        noise = sigma_xi_for(snr, alpha_r, n)
        r = None if noise is None else round(alpha_r * m)
    regime = _TOO_SMALL if factor < 1.0 else _BETWEEN
    if snr is not None and factor > _SUCCESS_FACTOR and snr * factor >= _SUCCESS_SNR:
        regime = _RECOVERABLE
    return {
        "centers": sketching.centers(r, lambda s, rng: scrambled(s, noise, random_state=rng)),
        "regime": np.float64(regime),
    }


def kmeans_on_devices(
    data: TrialData,
    streams: TrialStreams,
    *,
    epsilon: float,
    delta: float = 0.0,
    n_devices: int = 1,
    alpha_r: float = 1.0,
    m_factor: float = 10.0,
    **decoding: Any,
) -> dict[str, np.ndarray]:
    r"""Compressive k-means with the rows on L devices, each of which adds its own noise.

    Definitions 3 and 4 with :math:`n_0 = n / L` and the :math:`\sigma_\xi` of eq. (7) (see
    `privclust.sketches.corrected_sigma_xi`), for replace-one; or, with `delta` > 0, Gaussian noise
    on one device. `alpha_r` is r / m; `m_factor` and `decoding` are those of `Sketching`.

    Returns ``centers`` (n_clusters, n_features); ``of_masks``, the variance that masks add to a
    sketch of the paper's 10^7 rows relative to that of its noise, by eq. (6), whatever the number
    of rows here (NaN for Gaussian noise); ``regime``, see
    `privclust_papers.ckm.data.budget_regime`.
    """
    if delta > 0.0 and n_devices > 1:
        raise ValueError(f"n_devices must be 1 with Gaussian noise, got {n_devices}")
    sketching = Sketching(data, streams, m_factor, **decoding)
    m = sketching.n_frequencies
    r = round(alpha_r * m)

    def noisy(sketch: Sketch, noise: np.random.Generator) -> Sketch:
        """Add the noise of all devices at once: its scale does not depend on their rows."""
        mechanism = "gaussian" if delta > 0.0 else "laplace"
        first = release(sketch, epsilon, delta, noise=mechanism, random_state=noise)
        others = n_devices - 1
        if not others:
            return first
        each = laplace_noise(sketch.n_measurements, first.guarantee.relation, float(epsilon))
        # Real and imaginary parts in turn, which the view below joins to complex numbers.
        parts = each.release(np.zeros((others, 2 * sketch.n_frequencies)), noise)
        sums = first.sums + parts.sum(axis=0).view(np.complex128)
        return replace(first, sums=sums, noise=replace(first.noise, n_parts=n_devices))

    of_masks = math.nan
    if not delta:
        # eq. (6): masks add (1 / alpha_r - 1) / n to the variance, noise sigma_xi^2 / (alpha_r n)
        sigma_xi = corrected_sigma_xi(r / m, m, _PAPER_ROWS // n_devices, epsilon)
        of_masks = (1.0 - r / m) / sigma_xi**2
    return {
        "centers": sketching.centers(r, noisy),
        "of_masks": np.float64(of_masks),
        "regime": budget_regime(epsilon),
    }
