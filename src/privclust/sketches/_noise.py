r"""The noise on a sketch, the sensitivity that it is calibrated to, and its guarantee.

**Sensitivity to one record, given the masks.** A feature :math:`z = \exp(i\theta)` has
:math:`|\Re z| + |\Im z| \le \sqrt 2`, attained at 45 degrees. Two features differ by at most 2 in
modulus and by :math:`2 \sqrt 2` in the l1 norm of the parts, attained by opposite ones at 45
degrees. A record contributes to r sums, so that changing one record changes

=============  ==================  =====================  ===============
neighbours     released            l1, all parts          l2
=============  ==================  =====================  ===============
replace one    sums (n is public)  :math:`2 \sqrt 2 r`    :math:`2 \sqrt r`
add or remove  sums and n          :math:`\sqrt 2 r + 1`  :math:`\sqrt{r + 1}`
=============  ==================  =====================  ===============

Masks do not depend on the values of records, and a replaced record keeps its mask. Averaging over
masks therefore keeps the bound (proof of Proposition 1).

The sensitivities in use are larger by the relative margin `SENSITIVITY_MARGIN`. Half of the margin
covers fixed-point features, which have a modulus of at most `MODULUS_BOUND`. The other half covers
the rounding of sums of less than 2^31 records to multiples of :math:`2^{-30}` before noise is
added. These integers are below :math:`2^{62}`. Rounding changes the difference of two sums by at
most :math:`2^{-30}` per part, which is less than :math:`2^{-21}`.

Per feature this is at most :math:`2^{-20}` in l1 and :math:`2^{-1/2}\, 2^{-20}` in l2. The half
margin is at least :math:`2^{1/2}\, 2^{-20}` and :math:`2^{-20}`, and both grow alike with r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privclust.core.validation import Real, check_integer, check_option
from privclust.privacy import Guarantee, Neighbours, Release, Sensitivity
from privclust.privacy.measurements import Gaussian, Laplace, Measurement
from privclust.sketches._feature_sums import MODULUS_BOUND

MECHANISMS = ("laplace", "gaussian")
SENSITIVITY_MARGIN = 2.0 * (MODULUS_BOUND - 1.0)
_VARIANCE_OF_UNIT_SCALE = {"laplace": 2.0, "gaussian": 1.0}
_SCALE = Real(at_most=1e150)  # its square is finite
_STATED_TOLERANCE = 1e-6  # relative: releases of the accountant differ by less


@dataclass(frozen=True)
class SketchNoise:
    """The noise on the sums of a sketch.

    Attributes
    ----------
    mechanism : {"laplace", "gaussian"}
    scale : float
        Scale of the noise on every real and imaginary part of the sums of one merged sketch: the
        Laplace scale (mean absolute noise), or the standard deviation of Gaussian noise.
        Positive and at most 1e150.
    n_parts : int
        Number of merged sketches.

    Raises
    ------
    ValueError
        If an attribute is not as described.

    Examples
    --------
    >>> SketchNoise("laplace", 3.0, n_parts=2).variance
    36.0
    """

    mechanism: str
    scale: float
    n_parts: int = 1

    def __post_init__(self) -> None:
        check_option("mechanism", self.mechanism, MECHANISMS)
        _SCALE("scale", self.scale, {})
        check_integer("n_parts", self.n_parts, minimum=1)

    @property
    def variance(self) -> float:
        """Variance of the noise on each real and imaginary part of the merged sums."""
        return self.n_parts * _VARIANCE_OF_UNIT_SCALE[self.mechanism] * self.scale**2


def sensitivities(n_measurements: int, neighbours: str) -> tuple[Sensitivity, Sensitivity]:
    r"""Return the sensitivities in l1 and in l2; see the module docstring for the proof.

    Parameters
    ----------
    n_measurements : int
        r.
    neighbours : {"replace_one", "add_remove"}

    Returns
    -------
    l1, l2 : privclust.privacy.Sensitivity

    Examples
    --------
    >>> l1, l2 = sensitivities(100, "replace_one")
    >>> round(l1.value, 2), round(l2.value, 2)
    (282.84, 20.0)
    """
    check_integer("n_measurements", n_measurements, minimum=1)
    r, relation = n_measurements, Neighbours.of(neighbours)
    if relation is Neighbours.REPLACE_ONE:
        l1, l2 = 2.0 * math.sqrt(2.0) * r, 2.0 * math.sqrt(r)
        proof = "r opposite unit phases, masks given"
    else:
        l1, l2 = math.sqrt(2.0) * r + 1.0, math.sqrt(r + 1.0)
        proof = "r unit phases and one count, masks given"
    return (
        Sensitivity(l1 * (1.0 + SENSITIVITY_MARGIN), "l1", relation, proof),
        Sensitivity(l2 * (1.0 + SENSITIVITY_MARGIN), "l2", relation, proof),
    )


def laplace_noise(n_measurements: int, neighbours: str, epsilon: float) -> Laplace:
    """Return the Laplace noise for sums at an epsilon; parameters as for `release`.

    Per part, the noise also is (shift / scale)^2 / 2-concentrated.

    Examples
    --------
    >>> laplace_noise(10, "replace_one", 2.0).loss.epsilon
    2.0
    """
    l1, l2 = sensitivities(n_measurements, neighbours)
    return Laplace(l1, epsilon, mu=l2.value / (l1.value / epsilon))


def check_statement(noise: SketchNoise, n_measurements: int, guarantee: Guarantee) -> None:
    """Raise a ValueError if a guarantee is stronger than that of the noise.

    Its losses and their composition at its delta are recomputed from the noise. It is not possible
    to check whether noise was seeded, or records were assigned to parts by their values.

    Examples
    --------
    >>> noise = SketchNoise("laplace", 10.0)
    >>> honest = laplace_noise(10, "replace_one", sensitivities(10, "replace_one")[0].value / 10.0)
    >>> guarantee = Guarantee.of([honest.statement("sums")], "pure", "replace_one")
    >>> check_statement(noise, 10, guarantee)
    >>> check_statement(SketchNoise("laplace", 5.0), 10, guarantee)
    Traceback (most recent call last):
    ...
    ValueError: the noise gives less than its guarantee states
    """
    if guarantee.definition == "none":
        return
    relation = guarantee.relation
    l1, l2 = sensitivities(n_measurements, relation)
    if noise.mechanism == "laplace":
        measurement: Measurement = laplace_noise(n_measurements, relation, l1.value / noise.scale)
    else:
        measurement = Gaussian(l2, noise.scale)
    line = measurement.statement("sums of features")
    covered = any(_states(release, line) for release in guarantee.releases if release.loss)
    honest = Guarantee.of([line], guarantee.definition, relation, delta=guarantee.delta)
    if not covered or not _reaches(guarantee, honest, ("epsilon", "rho", "mu", "tau")):
        raise ValueError("the noise gives less than its guarantee states")


def _states(release: Release, line: Release) -> bool:
    """Whether a release states at least the loss of a line, and its sensitivity per scale."""
    ratios = [
        each.sensitivity / each.scale
        for each in (release, line)
        if each.sensitivity is not None and each.scale is not None
    ]
    if len(ratios) > 1 and ratios[0] < (1.0 - _STATED_TOLERANCE) * ratios[1]:
        return False
    return _reaches(release.loss, line.loss, ("rho", "epsilon", "count"))


def _reaches(stated: object, honest: object, names: tuple[str, ...]) -> bool:
    """Whether every stated number is at least the honest one, up to rounding."""
    part = 1.0 - _STATED_TOLERANCE
    return all(getattr(stated, name) >= part * getattr(honest, name) for name in names)
