"""Objects named by dotted paths in the config files, and what they are called with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from privclust.core.validation import signature_of
from privclust_papers.settings.config import ConfigError

COMPLETE = {"missing": "middle"}
"""Offered where a paper's mechanism runs: its tables miss no entry, and it releases no count."""


def load_object(path: str) -> Any:
    """Import the object that a dotted path names; a ConfigError if there is none.

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


def construct(function: Callable[..., Any], params: Mapping[str, Any], **offered: Any) -> Any:
    """Call a class or function with its own `params`, and with those offered that it accepts.

    Examples
    --------
    >>> construct(complex, {"real": 1.0}, real=2.0, imag=3.0, noise=4.0)
    (1+3j)
    """
    accepted = signature_of(function).parameters
    settings = {name: value for name, value in offered.items() if name in accepted}
    return function(**(settings | dict(params)))
