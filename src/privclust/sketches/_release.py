r"""Release of a sketch: noise on its sums, and the guarantee.

The sensitivity of the sums is derived in `privclust.sketches._noise`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from privclust.core.hints import RandomState
from privclust.core.validation import UNUSED_DELTA, Real, check_integer, check_option, check_real
from privclust.privacy import Neighbours
from privclust.privacy.advice import noted
from privclust.privacy.groups import ROW
from privclust.privacy.measurements import Gaussian, Laplace, analytic_gaussian_sigma
from privclust.sketches._measurement import SketchMeasurement
from privclust.sketches._noise import laplace_noise, sensitivities
from privclust.sketches._sketch import Sketch

NOISES = ("auto", "laplace", "gaussian")
_SHARE = Real(at_most=1.0)
_SECRET_MASKS = (
    "records take part in r of m features by their place in the data: the seed of the masks is "
    "secret, or a record changes no other record's place"
)


def release(
    sketch: Sketch,
    epsilon: float,
    delta: float = 0.0,
    *,
    noise: Literal["auto", "laplace", "gaussian"] = "auto",
    neighbours: Literal["replace_one", "add_remove"] = "replace_one",
    random_state: RandomState = None,
) -> Sketch:
    r"""Return the sketch with noise on its sums, private.

    Laplace noise has scale :math:`\Delta_1 / \epsilon` on real and imaginary parts. For replace-one
    this is Definition 3 of the paper with
    :math:`\sigma_\xi = 4 \sqrt{2 \alpha_r} m / (\sqrt{n_0} \epsilon)`, see `corrected_sigma_xi`.
    Gaussian noise has the least standard deviation that is (epsilon, delta)-private for
    :math:`\Delta_2`, which is far smaller if r is large. `sensitivities` gives :math:`\Delta_1` and
    :math:`\Delta_2`.

    Compose the guarantees of several releases from the same records. Errors that `Sketch.of` raises
    for invalid rows are not covered by the guarantee.

    Parameters
    ----------
    sketch : Sketch
        Without noise.
    epsilon : float
        Positive, in nats.
    delta : float
        From 0 to less than 1; 0 asks for pure differential privacy.
    noise : {"auto", "laplace", "gaussian"}
        ``"auto"``: Laplace if delta is 0, else the noise with the smaller variance. Laplace noise
        needs no delta. ``"gaussian"`` needs a positive delta.
    neighbours : {"replace_one", "add_remove"}
        Neighbour relation. ``"replace_one"``: one record is replaced, and n is public (as in the
        paper). ``"add_remove"``: one record is added or removed, and the number is noisy as well.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction, which the
        guarantee states.

    Returns
    -------
    Sketch
        With `noise` and `guarantee`.

    Raises
    ------
    ValueError
        If an argument is not as described, or the sketch has noise already.
    ImportError
        If `random_state` is None and OpenDP is not installed.

    References
    ----------
    V. Schellekens et al., "Differentially private compressive k-means", ICASSP 2019, Definitions 2
    to 4 and Proposition 1, with the constant of eq. (7) (see `printed_sigma_xi`).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sketch = Sketch.of(rng.standard_normal((100, 2)), rng.standard_normal((2, 5)))
    >>> private = release(sketch, 1.0, random_state=0)
    >>> private.guarantee.definition, round(private.noise.scale, 3)
    ('pure', 14.142)
    >>> release(sketch, 1.0, 1e-5, noise="gaussian", random_state=0).guarantee.definition
    'approximate'
    """
    if not isinstance(sketch, Sketch):
        raise ValueError(f"sketch must be a Sketch, got {type(sketch).__name__}")
    sketch._check_without_noise()
    sizes = sketch.n_measurements, sketch.n_frequencies
    chosen = measurement(*sizes, epsilon, delta, noise=noise, neighbours=neighbours)
    noisy = sketch._release(chosen, random_state)
    is_public = noisy.guarantee.relation is Neighbours.REPLACE_ONE and sketch.unit == ROW
    n_records = int(sketch.n_samples + sketch.n_left_out) if is_public else None
    return replace(noisy, guarantee=noted(noisy.guarantee, n_records))


def measurement(
    n_measurements: int,
    n_frequencies: int,
    epsilon: float,
    delta: float = 0.0,
    *,
    noise: str = "auto",
    neighbours: str = "replace_one",
    share: float = 1.0,
) -> SketchMeasurement:
    """Return the noise of `release` for r of m features; other parameters and errors as there.

    Parameters
    ----------
    share : float
        Share of the budget, above 0 and at most 1, for several releases from the same records.
        Releases with the same kind of noise and shares that add up to 1 compose to
        (epsilon, delta). The share is of epsilon for Laplace noise, and of the squared ratio of
        sensitivity and standard deviation for Gaussian noise.
    """
    check_real("epsilon", epsilon)
    UNUSED_DELTA("delta", delta, {})
    check_option("noise", noise, NOISES)
    _SHARE("share", share, {})
    if noise == "gaussian" and delta == 0:
        raise ValueError("gaussian noise is private for a delta greater than 0 only, got delta=0")
    if noise == "auto":
        noise = smaller_noise(n_measurements, neighbours, epsilon, delta)
    if noise == "laplace":
        chosen: Laplace | Gaussian = laplace_noise(
            n_measurements, neighbours, share * float(epsilon)
        )
    else:
        _, l2 = sensitivities(n_measurements, neighbours)
        chosen = Gaussian(l2, analytic_gaussian_sigma(l2, epsilon, delta) / math.sqrt(share))
    return fourier_measurement(chosen, n_measurements, n_frequencies, delta)


def fourier_measurement(
    noise: Laplace | Gaussian, n_measurements: int, n_frequencies: int, delta: float = 0.0
) -> SketchMeasurement:
    """Return noise bound to sums of random Fourier features."""
    return SketchMeasurement(
        noise,
        "sums of features",
        delta,
        {"noise": "scale {scale:.6g}"},
        (_SECRET_MASKS,) if n_measurements < n_frequencies else (),
    )


def scrambled(sketch: Sketch, sigma_xi: float, *, random_state: RandomState = None) -> Sketch:
    r"""Return the scrambled sketch of Definition 3 for a given :math:`\sigma_\xi`.

    The noise of eq. (4) is :math:`\xi_j / \sqrt{\alpha_r m n_0}` with :math:`\xi_j` complex Laplace
    of parameter :math:`\sigma_\xi / \sqrt 2`. On the parts of the sums this is Laplace noise of
    scale :math:`\sigma_\xi \sqrt{\alpha_r n_0} / 2`. It is epsilon-private for replace-one, with
    the epsilon of `corrected_sigma_xi`.

    Parameters
    ----------
    sketch : Sketch
        Without noise, of at least one record.
    sigma_xi : float
        Not negative; for 0 the sketch is returned without noise and guarantee.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        As for `release`.

    Returns
    -------
    Sketch

    Raises
    ------
    ValueError
        If an argument is not as described, or the sketch has noise already.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sketch = Sketch.of(rng.standard_normal((100, 2)), rng.standard_normal((2, 5)))
    >>> scrambled(sketch, 2.0, random_state=0).noise.scale
    10.0
    """
    sketch._check_without_noise()
    check_real("sigma_xi", sigma_xi, inclusive=True)
    check_integer("n_samples", sketch.n_samples, minimum=1)
    if sigma_xi == 0:
        return sketch
    r, m, relation = sketch.n_measurements, sketch.n_frequencies, Neighbours.REPLACE_ONE
    scale = sigma_xi * math.sqrt(sketch.alpha_r * sketch.n_samples) / 2.0
    epsilon = sensitivities(r, relation)[0].value / scale
    chosen = fourier_measurement(laplace_noise(r, relation, epsilon), r, m)
    return sketch._release(chosen, random_state)


def corrected_sigma_xi(alpha_r: float, m: int, n0: int, epsilon: float) -> float:
    r"""Return the least :math:`\sigma_\xi` for which Definition 3 is epsilon-private.

    .. math:: \sigma_\xi = \frac{4 \sqrt{2 \alpha_r}\, m}{\sqrt{n_0}\, \epsilon}

    Replacing one of :math:`n_0` records changes the sums by at most :math:`2 \sqrt 2 r` in l1. The
    noise on their parts has scale :math:`\sigma_\xi \sqrt{\alpha_r n_0} / 2`, and the ratio is
    epsilon. Eq. (7) of the paper uses this value.

    Parameters
    ----------
    alpha_r : float
        Share of measurements r / m, in (0, 1].
    m : int
        Number of frequencies.
    n0 : int
        Number of records per device.
    epsilon : float
        Positive, in nats.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is not as described.

    Examples
    --------
    >>> round(corrected_sigma_xi(1.0, 1000, 10**6, 1.0), 3)
    5.657
    """
    return printed_sigma_xi(alpha_r, m, n0, epsilon) / math.sqrt(alpha_r)


def printed_sigma_xi(alpha_r: float, m: int, n0: int, epsilon: float) -> float:
    r"""Return :math:`\sigma_\xi` of Proposition 1 as printed in our copy, without the root.

    .. math:: \sigma_\xi = \frac{4 \sqrt 2\, \alpha_r m}{\sqrt{n_0}\, \epsilon},

    which gives :math:`\epsilon / \sqrt{\alpha_r}`-differential privacy: less than stated if
    :math:`\alpha_r < 1`. Our copy is a text extraction that is garbled in this formula: it has
    epsilon under the root of :math:`n_0`, which is corrected here. Eq. (7) of the paper has the
    root of :math:`\alpha_r`, so that the authors may have meant `corrected_sigma_xi`. For
    comparison only; parameters as in `corrected_sigma_xi`.

    Examples
    --------
    >>> printed_sigma_xi(0.25, 1000, 10**6, 1.0) / corrected_sigma_xi(0.25, 1000, 10**6, 1.0)
    0.5
    """
    _SHARE("alpha_r", alpha_r, {})
    check_integer("m", m, minimum=1)
    check_integer("n0", n0, minimum=1)
    check_real("epsilon", epsilon)
    return 4.0 * math.sqrt(2.0) * alpha_r * m / (math.sqrt(n0) * epsilon)


def smaller_noise(n_measurements: int, neighbours: str, epsilon: float, delta: float) -> str:
    """Return the mechanism with the smaller noise variance at this budget.

    Examples
    --------
    >>> smaller_noise(1000, "replace_one", 1.0, 1e-6)
    'gaussian'
    >>> smaller_noise(1000, "replace_one", 1.0, 0.0)
    'laplace'
    """
    if delta == 0:
        return "laplace"
    l1, l2 = sensitivities(n_measurements, neighbours)
    of_laplace = math.sqrt(2.0) * l1.value / epsilon
    of_gaussian = analytic_gaussian_sigma(l2, epsilon, delta)
    return "laplace" if of_laplace <= of_gaussian else "gaussian"
