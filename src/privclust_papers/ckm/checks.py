"""Checks of the paper's statements on sketches against closed forms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from privclust.privacy import Neighbours, Sensitivity
from privclust.privacy.measurements import Laplace
from privclust.sketches import (
    FeatureSums,
    Sketch,
    corrected_sigma_xi,
    estimate_variance,
    printed_sigma_xi,
    scrambled,
)
from privclust.synthetic.clusters import MixtureRows, draw_mixture
from privclust_papers.ckm.data import GENERATED
from privclust_papers.ckm.methods import NORM2, VARIANCE, attained_snr, trial_frequencies
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.shared.rows import Point
from privclust_papers.shared.statements import Check, Setting, without_rows

_DRAWS = 100_000  # complex Laplace numbers
_OUTPUTS = 200  # outputs at which a privacy loss is computed
_PILOT_ROWS = 5000  # rows for the estimate of a scale of frequencies
_MASKINGS = 100  # draws of masks for the comparison of their mean with the sketch without


def snr_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Draw a mixture of the paper and the frequencies of its sketch.

    The point has ``n_clusters``, ``n_features``, ``n_frequencies``; for `measure_snr` also
    ``alpha_r``, ``sigma_xi``, ``n_devices`` (L), ``device_size`` (n_0) and ``repeats``.
    """
    k, d = point["n_clusters"], point["n_features"]
    mixture = draw_mixture("paper", 1, k, d, int(streams.get("data").integers(2**63)))
    frequencies = trial_frequencies(streams.get("init"), d, point["n_frequencies"])
    extra = {**point, "means": mixture.centers, "frequencies": frequencies}
    return without_rows(extra, GENERATED)


def characteristic_function(means: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    r"""Return the mean features of the paper's mixture, shape (m,).

    :math:`E \exp(i \omega'x) = \frac1k \sum_l \exp(i \omega'\mu_l - |\omega|^2 / 2)`.
    """
    damping = np.exp(-0.5 * (frequencies**2).sum(axis=0))
    return np.exp(1j * (means @ frequencies)).mean(axis=0) * damping


def measure_sketch(
    data: TrialData, streams: TrialStreams, *, scale: str = "fixed"
) -> dict[str, np.ndarray]:
    """Return the SNR of merged sketches if the trial has devices, else the norm of the sketch."""
    if "n_devices" in data.extra:
        return measure_snr(data, streams)
    return measure_norm(data, streams, scale)


def measure_norm(data: TrialData, streams: TrialStreams, scale: str) -> dict[str, np.ndarray]:
    r"""Return ``norm2``, :math:`\|z\|^2` of the sketch of the mixture, in closed form.

    With `scale` ``"fixed"`` the variance of frequencies is that of all experiments here. Otherwise
    it comes from rows of the mixture: ``"total"``, their mean variance per feature, or
    ``"estimated"``, by `privclust.sketches.estimate_variance`, as its authors choose it.
    """
    means, frequencies = data.extra["means"], data.extra["frequencies"]
    if scale != "fixed":
        rng = streams.get("noise")
        rows = MixtureRows(_PILOT_ROWS, means, int(rng.integers(2**63))).to_array()
        if scale == "total":
            variance = float(rows.var(axis=0).mean())
        else:
            variance = estimate_variance(rows, random_state=rng)
        # Frequencies were drawn for `VARIANCE`; they scale with the inverse standard deviation.
        frequencies = frequencies * math.sqrt(VARIANCE / variance)
    features = characteristic_function(means, frequencies)
    return {"norm2": np.float64(np.mean(np.abs(features) ** 2))}


def evaluate_norm(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return ``norm2`` and its distance from the paper's 0.35, ``norm2_error``."""
    norm2 = float(outputs["norm2"])
    return {"norm2": norm2, "norm2_error": abs(norm2 - NORM2)}


def measure_snr(data: TrialData, streams: TrialStreams) -> dict[str, np.ndarray]:
    r"""Return the empirical SNR of merged scrambled sketches of L devices, eqs. (4) and (5).

    ``snr_measured`` is ``norm2`` (:math:`\|z\|^2`) over the mean of :math:`\|s_X - z\|^2` on
    independent data sets, masks and noise, with z in closed form.
    """
    setting, frequencies = data.extra, data.extra["frequencies"]
    m = frequencies.shape[1]
    z = characteristic_function(setting["means"], frequencies) / math.sqrt(m)
    noise = streams.get("noise")
    deviations = [
        float(np.sum(np.abs(_merged(setting, frequencies, noise) - z) ** 2))
        for _ in range(setting["repeats"])
    ]
    norm2 = float(np.sum(np.abs(z) ** 2))
    measured = np.float64(norm2 / np.mean(deviations))
    return {"snr_measured": measured, "norm2": np.float64(norm2)}


def _merged(setting: Setting, frequencies, noise: np.random.Generator) -> np.ndarray:
    """Draw rows for every device and return the mean of their scrambled sketches, eq. (5)."""
    n0, n_devices = setting["device_size"], setting["n_devices"]
    rows = MixtureRows(n0 * n_devices, setting["means"], int(noise.integers(2**63)))
    r = round(setting["alpha_r"] * frequencies.shape[1])
    total = np.zeros(frequencies.shape[1], dtype=complex)
    for device in range(n_devices):
        sums = FeatureSums(frequencies, n_measurements=r, mask_seed=int(noise.integers(2**63)))
        for chunk in rows.chunks(device * n0, (device + 1) * n0):
            sums.add(chunk)
        part = scrambled(Sketch.from_feature_sums(sums), setting["sigma_xi"], random_state=noise)
        total += part.values
    return total / n_devices


def evaluate_snr(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    r"""Compare the measured SNR with eqs. (6) and (7).

    ``snr_measured``; ``snr_eq6`` with the mixture's :math:`\|z\|^2`, ``snr_eq7`` with 0.35 instead
    (eq. (7) at the epsilon of :math:`\sigma_\xi`); ``ratio`` and ``ratio_eq7`` of the measured SNR
    to both; ``norm2``.
    """
    setting = data.extra
    n = setting["device_size"] * setting["n_devices"]
    norm2, measured = float(outputs["norm2"]), float(outputs["snr_measured"])
    eq6 = attained_snr(setting["alpha_r"], setting["sigma_xi"], n, norm2)
    eq7 = attained_snr(setting["alpha_r"], setting["sigma_xi"], n)
    return {
        "snr_measured": measured,
        "snr_eq6": eq6,
        "snr_eq7": eq7,
        "ratio": measured / eq6,
        "ratio_eq7": measured / eq7,
        "norm2": norm2,
    }


def statement_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Draw sizes at which ``statement``, a key of `STATEMENTS`, is checked."""
    rng = streams.get("data")
    m = int(rng.choice([2, 3, 4]))
    extra = {
        "check": STATEMENTS[point["statement"]],
        "m": m,
        "r": int(rng.integers(1, m)),  # less than m
        "n0": int(rng.choice([1, 10, 1000])),
        "epsilon": float(10.0 ** rng.uniform(-2.0, 1.0)),
        "n_devices": int(rng.choice([2, 3, 7])),
        "seed": int(rng.integers(2**63)),
    }
    return without_rows(extra)


def _merging(is_masked: bool, setting: Setting, rng: np.random.Generator) -> float:
    """Eq. (5) without noise: largest difference of merged sketches from that of the union."""
    frequencies = trial_frequencies(rng, 10, 50)
    X = draw_mixture("paper", 1000, 10, 10, setting["seed"]).to_array()
    masks = {"mask_seed": 1, "n_measurements": 7 if is_masked else None}
    whole = Sketch.of(X, frequencies, **masks)
    edges = np.linspace(0, len(X), setting["n_devices"] + 1).astype(int)
    merged = Sketch.of(X[: edges[1]], frequencies, **masks)
    for start, stop in itertools.pairwise(edges[1:]):
        masks["first_record"] = int(start)
        merged = merged + Sketch.of(X[start:stop], frequencies, **masks)
    return float(np.abs(merged.values - whole.values).max())


def _unbiased_masks(setting: Setting, rng: np.random.Generator) -> float:
    r"""E s = z over masks: squared error of a mean of sketches over its variance, minus 1.

    For given rows, :math:`E \|s - z\|^2 = (1 - \alpha_r) / (\alpha_r n)`.
    """
    m, r = 1000, 100
    frequencies = trial_frequencies(rng, 10, m)
    X = draw_mixture("paper", 100, 10, 10, setting["seed"]).to_array()
    seeds = [int(seed) for seed in rng.integers(2**63, size=_MASKINGS)]
    sketches = [
        Sketch.of(X, frequencies, n_measurements=r, mask_seed=seed).values for seed in seeds
    ]
    error = np.mean(sketches, axis=0) - Sketch.of(X, frequencies).values
    variance = (1.0 - r / m) / (r / m * len(X)) / _MASKINGS
    return float(np.sum(np.abs(error) ** 2)) / variance - 1.0


def _variance_line(is_printed: bool, setting: Setting, rng: np.random.Generator) -> float:
    r"""The line before eq. (6), times :math:`\alpha_r n_0 L`: relative difference of its forms.

    :math:`(\alpha_r/m - |\alpha_r z_j|^2) / \alpha_r + \sigma_\xi^2/m` is compared with the last
    form as printed, or its sum over j with the denominator of eq. (6).
    """
    m, alpha_r = setting["m"], setting["r"] / setting["m"]
    square = float(rng.uniform(0.0, 10.0))  # sigma_xi^2
    z2 = rng.random(m) / m  # |z_j|^2, at most 1 / m
    derived = (alpha_r / m - alpha_r**2 * z2) / alpha_r + square / m
    if is_printed:
        return float(np.abs((m - alpha_r * z2 + square) / m / derived - 1.0).max())
    return abs(float(derived.sum()) / (1.0 - alpha_r * float(z2.sum()) + square) - 1.0)


def _memory(setting: Setting, rng: np.random.Generator) -> float:
    """Memory of a sketch after 10,000 rows relative to 100 rows, minus 1."""
    frequencies = trial_frequencies(rng, 10, 50)
    sums = FeatureSums(frequencies)
    held = []
    for n in (100, 9900):
        sums.add(draw_mixture("paper", n, 10, 10, setting["seed"]).to_array())
        held.append(sum(array.nbytes for array in sums.state().values()))
    return held[1] / held[0] - 1.0


def _laplace_variance(setting: Setting, rng: np.random.Generator) -> float:
    r"""Definition 2, :math:`\sigma_z^2 = 2 \beta^2`: relative difference from draws."""
    beta = 2.0
    # Scale beta / sqrt 2 for each part gives 2 (beta / sqrt 2)^2 twice, 2 beta^2 in total.
    unit = Sensitivity(beta / math.sqrt(2.0), "l1", Neighbours.REPLACE_ONE, "Definition 2")
    draws = Laplace(unit, 1.0).release(np.zeros((_DRAWS, 2)), rng).view(complex)
    return abs(float(np.mean(np.abs(draws) ** 2)) / (2.0 * beta**2) - 1.0)


def _privacy_loss(
    sigma_xi: Callable[[float, int, int, float], float], setting: Setting, rng: np.random.Generator
) -> float:
    """Proposition 1 for a rule for sigma_xi: largest loss of the worst pair over epsilon, minus 1.

    Records have all phases at 45 degrees and at 225 degrees, r < m. Outputs are drawn about both,
    and beyond them, where the ratio of densities is extreme.
    """
    m, r, n0, epsilon = (setting[name] for name in ("m", "r", "n0", "epsilon"))
    alpha_r = r / m
    scale = sigma_xi(alpha_r, m, n0, epsilon) / (2.0 * math.sqrt(alpha_r * m * n0))
    size = 1.0 / math.sqrt(2.0 * m) / (alpha_r * n0)  # of a part of a measured feature, eq. (4)
    masks = np.array([mask for mask in itertools.product((0, 1), repeat=m) if sum(mask) == r])
    placed = np.repeat(masks, 2, axis=1) * size  # real and imaginary parts in turn
    signs = rng.choice([-1.0, 1.0], size=(_OUTPUTS, 1))
    outputs = signs * placed[rng.integers(len(placed), size=_OUTPUTS)]
    outputs = outputs + rng.laplace(scale=scale, size=outputs.shape)
    # All entries beyond both centers on one side: there the log-ratio of densities is largest.
    beyond = size + np.abs(rng.laplace(scale=scale, size=outputs.shape))
    outputs = np.vstack([outputs, beyond, -beyond])
    one, other = (_log_density(outputs, sign * placed, scale) for sign in (1.0, -1.0))
    return float(np.abs(one - other).max()) / epsilon - 1.0


def _log_density(outputs: np.ndarray, centers: np.ndarray, scale: float) -> np.ndarray:
    distances = np.abs(outputs[:, None] - centers).sum(axis=2) / scale
    least = distances.min(axis=1)
    # Relative to the nearest center, so that not all exponentials underflow.
    return np.log(np.exp(least[:, None] - distances).mean(axis=1)) - least


STATEMENTS: dict[str, Check] = {
    "merging": partial(_merging, False),
    "merging_masked": partial(_merging, True),
    "unbiased_masks": _unbiased_masks,
    "laplace_variance": _laplace_variance,
    "variance_line_printed": partial(_variance_line, True),
    "variance_line_summed": partial(_variance_line, False),
    "memory": _memory,
    "privacy_printed": partial(_privacy_loss, printed_sigma_xi),
    "privacy_corrected": partial(_privacy_loss, corrected_sigma_xi),
}
