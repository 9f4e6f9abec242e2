r"""Whether a subspace of a second moment matrix is distinguishable from noise.

Only the released noisy version is used. Let N be the noise of
`SymmetricGaussian`: :math:`N(0, \sigma^2)` on the diagonal, :math:`N(0, \sigma^2 / w^2)` off it, w
at most :math:`\sqrt 2`. Its largest eigenvalue has mean at most :math:`2 \sigma \sqrt d / w`, by
comparison with the Gaussian orthogonal ensemble, and in the coordinates of the noise it has
Lipschitz constant :math:`\sqrt 2 / w`, so that it exceeds

.. math:: T = \frac{\sigma}{w} (2 \sqrt d + t \sqrt 2)

with probability at most :math:`e^{-t^2/2}`: 3.4e-4 for t = 4, and twice that for the norm.

*The rule*: the gap between the eigenvalues q and q + 1 of a noisy matrix (or eigenvalue q and
zero, if q = d) is compared with T. If g is the gap of the matrix itself, the leading subspace is
rotated by an angle of sine at most :math:`\|N\| / (g - \|N\|)` (Davis and Kahan): a gap below T has
no information on the direction.

*False alarms*: by Weyl's inequality the noisy gap is at least :math:`g - 2 \|N\|`. If g is above 3
T, there is a warning with probability at most 6.7e-4 for each matrix. *Misses*: in pure noise the
gap is above T with probability 1e-4 for d = 2, and less for larger d.
"""

from __future__ import annotations

import math

import numpy as np

from privclust.core.warn import warn_caller
from privclust.privacy.guarantee import NoiseWarning
from privclust.privacy.measurements import SymmetricGaussian

_DEVIATIONS = 4.0  # t of the threshold T


def spectral_bound(noise: SymmetricGaussian, n_features: int) -> float:
    """Return T, which the norm of the noise exceeds with probability 6.7e-4 at most."""
    # `off_diagonal` is sigma / w
    return noise.off_diagonal * (2.0 * math.sqrt(n_features) + _DEVIATIONS * math.sqrt(2.0))


def detected_subspaces(
    noisy: np.ndarray, dimension: int, noise: SymmetricGaussian, *, of: str
) -> np.ndarray:
    """Return which leading subspaces of noisy matrices (k, d, d) are detected, (k,).

    `of` is a plural noun for the warning, such as the components.

    Warns
    -----
    NoiseWarning
        The warning depends only on `noisy` and is as private.
    """
    values = np.linalg.eigvalsh(noisy)[:, ::-1]
    beyond = values[:, dimension] if dimension < values.shape[1] else 0.0
    gaps = values[:, dimension - 1] - beyond
    is_detected = gaps > spectral_bound(noise, values.shape[1])
    if not is_detected.all():
        warn_caller(
            f"noise may hide {int((~is_detected).sum())} of {len(noisy)} {of}: the gap between "
            f"eigenvalue {dimension} of the noisy moments and the next is below what noise alone "
            "may reach. More rows, a larger epsilon or delta, a smaller norm_bound or fewer "
            "features help",
            NoiseWarning,
        )
    return is_detected
