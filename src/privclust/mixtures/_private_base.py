"""What private mixtures have in common beyond fitted ones."""

from __future__ import annotations

from privclust.mixtures._base import FittedMixture
from privclust.privacy import Guarantee


class PrivateMixture(FittedMixture):
    """A fitted mixture that carries its guarantee, also into files and out of them.

    Attributes
    ----------
    guarantee_ : privclust.privacy.Guarantee
        What the fit promises; whatever is computed from the fitted mixture, such as samples or
        densities, is post-processing and as private.
    """

    _FITTED: tuple[str, ...] = ("n_iter_", "guarantee_")

    def _packed(self, name):
        """Return a fitted attribute as JSON values."""
        value = getattr(self, name)
        return value.as_dict() if name == "guarantee_" else value

    @classmethod
    def _unpacked(cls, name, value):
        """Undo `_packed`."""
        return Guarantee.from_dict(value) if name == "guarantee_" else value
