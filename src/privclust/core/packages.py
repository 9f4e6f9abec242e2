"""Packages that are imported where they are used, and what to install where one is missing.

Estimators need NumPy, SciPy, scikit-learn, Numba and lazy-loader alone. Files, noise that is
calibrated to a budget, releases, images and the pipeline need more.
"""

from __future__ import annotations

from importlib import import_module
from shlex import quote
from types import ModuleType

# module: (its name where packages are installed from, what of this project brings it)
_ORIGINS = {
    "PIL": ("Pillow", "privclust[images]"),
    "dp_accounting": ("dp-accounting", "privclust"),
    "h5py": ("h5py", "privclust"),
    "jsonschema": ("jsonschema", "privclust[workflow]"),
    "mpmath": ("mpmath", "privclust"),
    "onnx": ("onnx", "privclust[images]"),
    "onnxruntime": ("onnxruntime", "privclust[images]"),
    "pandas": ("pandas", "privclust"),
    "pooch": ("pooch", "privclust[workflow]"),
    "pyarrow": ("pyarrow", "privclust[files]"),
    "requests": ("requests", "privclust[workflow]"),
    "yaml": ("PyYAML", "privclust[workflow]"),
}


def require(module: str, what: str) -> ModuleType:
    """Import a module that not everybody needs.

    Parameters
    ----------
    module : str
        Its dotted name; its package is one of this project's dependencies or extras.
    what : str
        What needs it, as the message begins, such as ``"images"``.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If it cannot be imported; the message says why, and how to install it.

    Examples
    --------
    >>> require("h5py", "artefacts").__name__
    'h5py'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package, origin = _ORIGINS[module.partition(".")[0]]
        reason = " ".join(str(error).split())
        raise ImportError(
            f"{what} need {package}, which cannot be imported ({reason}): "
            f"pip install {quote(origin)}"
        ) from error
