"""Objects named by dotted paths in the config files, and calls of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from privclust.core.validation import signature_of
from privclust_papers.settings.config import ConfigError

COMPLETE = {"missing": "middle"}
"""Argument for a paper's mechanisms: tables have no missing entries, and no count is released."""


def load_object(path: str) -> Any:
    """Import the object of a dotted path, or raise a ConfigError.

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
    """Call a class or function with `params`, and with those of `offered` that it accepts.

    Examples
    --------
    >>> construct(complex, {"real": 1.0}, real=2.0, imag=3.0, noise=4.0)
    (1+3j)
    """
    accepted = signature_of(function).parameters
    settings = {name: value for name, value in offered.items() if name in accepted}
    # Settings of the config file win over those offered by the experiment.
    return function(**(settings | dict(params)))
