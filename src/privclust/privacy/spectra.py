r"""Whether noise hides the subspace of a noised second moment matrix, from that matrix alone.

Let N be the noise of `SymmetricGaussian`: :math:`N(0, \sigma^2)` on the diagonal, :math:`N(0,
\sigma^2 / w^2)` beside it, w at most :math:`\sqrt 2`. Its largest eigenvalue has mean at most
:math:`2 \sigma \sqrt d / w`, by comparison with the Gaussian orthogonal ensemble, and in the
coordinates of the noise it has Lipschitz constant :math:`\sqrt 2 / w`, so that it exceeds

.. math:: T = \frac{\sigma}{w} (2 \sqrt d + t \sqrt 2)

with probability at most :math:`e^{-t^2/2}`: 3.4e-4 for t = 4, and twice that for the norm.

*The rule*: of a noised matrix, the gap between the eigenvalues q and q + 1 (or eigenvalue q and
zero, where q = d) is compared with T. With a gap g of the matrix itself, the leading subspace is
turned by an angle of sine at most :math:`\|N\| / (g - \|N\|)` (Davis and Kahan): a gap below T says
nothing of the direction.

*False alarms*: by Weyl's inequality the noised gap is at least :math:`g - 2 \|N\|`. Where g is
above 3 T there is a warning with probability 6.7e-4 at the most, for each matrix. *Misses*: of
noise alone the gap is above T with probability 1e-4 for d = 2, and less for larger d.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from privclust.privacy.guarantee import NoiseWarning
from privclust.privacy.measurements import SymmetricGaussian

_DEVIATIONS = 4.0  # t


def spectral_bound(noise: SymmetricGaussian, n_features: int) -> float:
    """Return T, which the norm of the noise exceeds with probability 6.7e-4 at most."""
    beside = noise.sigma / noise.weight
    return beside * (2.0 * math.sqrt(n_features) + _DEVIATIONS * math.sqrt(2.0))


def clear_subspaces(
    noised: np.ndarray, dimension: int, noise: SymmetricGaussian, *, of: str, stacklevel: int
) -> np.ndarray:
    """Return on which leading subspaces of noised matrices (k, d, d) noise does not decide, (k,).

    `of` says in plural whose subspaces; `stacklevel` is as of `warnings.warn`, seen from here.

    Warns
    -----
    NoiseWarning
        What is told follows from `noised`, and is as private.
    """
    values = np.linalg.eigvalsh(noised)[:, ::-1]
    beyond = values[:, dimension] if dimension < values.shape[1] else 0.0
    gaps = values[:, dimension - 1] - beyond
    is_clear = gaps > spectral_bound(noise, values.shape[1])
    if not is_clear.all():
        warnings.warn(
            f"noise may hide {int((~is_clear).sum())} of {len(noised)} {of}: the gap between "
            f"eigenvalue {dimension} of the noised moments and the next is below what noise alone "
            "may reach. More rows, a larger epsilon or delta, a smaller norm_bound or fewer "
            "features help",
            NoiseWarning,
            stacklevel=stacklevel + 1,
        )
    return is_clear
