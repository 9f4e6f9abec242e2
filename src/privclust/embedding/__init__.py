"""Embeddings of features, most of them under differential privacy, and retrieval with them.

Estimators are imported when they are first asked for: whoever projects rows need not wait for
compiled kernels.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privclust.embedding._alignment import align
    from privclust.embedding._dpdsne import DPdSNE
    from privclust.embedding._private_pca import PrivatePCA
    from privclust.embedding._privatemail import PrivateMail
    from privclust.embedding._random_projection import PrivateRandomProjection
    from privclust.embedding._retrieval_protocol import Message, RetrievalClient, RetrievalServer
    from privclust.embedding._smlq import SMLQ
    from privclust.embedding._smlq_sensitivity import search_sensitivity, sensitivity_bound

_HOMES = {
    "align": "_alignment",
    "DPdSNE": "_dpdsne",
    "Message": "_retrieval_protocol",
    "PrivateMail": "_privatemail",
    "PrivatePCA": "_private_pca",
    "PrivateRandomProjection": "_random_projection",
    "RetrievalClient": "_retrieval_protocol",
    "RetrievalServer": "_retrieval_protocol",
    "search_sensitivity": "_smlq_sensitivity",
    "sensitivity_bound": "_smlq_sensitivity",
    "SMLQ": "_smlq",
}
__all__ = [
    "SMLQ",
    "DPdSNE",
    "Message",
    "PrivateMail",
    "PrivatePCA",
    "PrivateRandomProjection",
    "RetrievalClient",
    "RetrievalServer",
    "align",
    "search_sensitivity",
    "sensitivity_bound",
]


def __getattr__(name: str):
    """Import the module of a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
