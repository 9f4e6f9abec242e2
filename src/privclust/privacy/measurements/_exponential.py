"""The exponential mechanism: a random choice, more likely for better scores."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from privclust.privacy import noise
from privclust.privacy.accounting import Loss, bounded_range_rho
from privclust.privacy.measurements._measurement import WithEpsilon, real_array
from privclust.privacy.noise import NoiseSource


@dataclass(frozen=True)
class Exponential(WithEpsilon):
    r"""The exponential mechanism: a draw with probability proportional to ``exp(factor * score)``.

    Epsilon-differentially private for the sensitivity's neighbour relation with
    ``factor = epsilon / (2 sensitivity)``: weights and their sum change by a factor of at most
    ``exp(epsilon / 2)`` each. If all scores change in the same direction, both ratios lie on the
    same side of 1, and ``factor = epsilon / sensitivity``. Log ratios of outputs lie in an interval
    of length epsilon, from which the zCDP parameter follows
    (`privclust.privacy.accounting.bounded_range_rho`).

    Parameters
    ----------
    sensitivity : Sensitivity
        In the norm ``"range"``: largest change of any one score.
    epsilon, count
        As for `Measurement`.
    one_sided : bool
        Whether neighbours change all scores in the same direction.

    References
    ----------
    F. McSherry and K. Talwar, "Mechanism design via differential privacy", FOCS 2007, Theorem 6;
    M. Cesar and R. Rogers, "Bounding, concentrating, and truncating: unifying privacy loss
    composition for data analytics", ALT 2021 (concentration).

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.privacy import Sensitivity
    >>> votes = Sensitivity(1.0, "range", "add-remove", "one row is one vote")
    >>> Exponential(votes, 1.0).release([3.0, 90.0, 5.0], np.random.default_rng(0))
    1
    >>> Exponential(votes, 1.0).factor, Exponential(votes, 1.0, one_sided=True).factor
    (0.5, 1.0)
    """

    one_sided: bool = field(default=False, kw_only=True)
    mechanism = "exponential"
    _NORM = "range"
    _NOISE = "density exp({factor:.4g} score)"

    @property
    def factor(self) -> float:
        """The factor of scores in the exponent."""
        return self.epsilon / (self._sides * self.sensitivity.value)

    @property
    def claimed(self) -> Loss:
        """Epsilon, and the zCDP parameter by bounded range."""
        return Loss(bounded_range_rho(self.epsilon), self.epsilon, self.count)

    def release(self, value: ArrayLike, source: NoiseSource) -> int:
        """Return the index of a candidate from finite scores (n_candidates,), of any magnitude.

        `SystemEntropy` samples exactly, in rational arithmetic; a Generator takes the largest
        score after adding Gumbel noise.
        """
        scores = np.asarray(real_array("scores", value))
        if scores.ndim != 1 or scores.size == 0:
            raise ValueError(
                f"scores must have shape (n_candidates,), not empty, got {scores.shape}"
            )
        # one over `factor`
        return noise.select(scores, self._sides * self.scale, source)

    @property
    def _sides(self) -> float:
        """The number of directions in which scores may change."""
        return 1.0 if self.one_sided else 2.0
