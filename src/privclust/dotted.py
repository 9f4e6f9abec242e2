"""Objects named by dotted paths in the config files."""

from __future__ import annotations

import importlib
from typing import Any

from privclust.config import ConfigError


def load_object(path: str) -> Any:
    """Import the object that a dotted path names.

    Parameters
    ----------
    path : str
        Such as ``"privclust.segmentation.SSC"``; any module on the Python path will do.

    Raises
    ------
    ConfigError
        If the module cannot be imported or has no such object.

    Examples
    --------
    >>> load_object("math.sqrt")(9.0)
    3.0
    """
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path}: cannot be imported ({reason})") from error
