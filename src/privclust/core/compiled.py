"""Compilation of loops, such that the same call gives the same bits in every process.

Sums in most loops may be reordered and contracted, so their last bits depend on how a function was
optimised. By default this depends on history. Numba links a copy of each called function into the
machine code of its caller and optimises it again. A process that compiles calls the earlier copy;
one that loads code from the cache calls the new one. A function without its own floating-point
flags gets those of the first compiled caller. Therefore there are two kinds:

- a *kernel* is called from Python, and is cached on disk;
- a *part* is called from kernels and parts. It is always inlined, thus optimised like its caller,
  and never cached: a kernel never runs separate machine code of it.

Both state all their flags. Numba renews a cached function when its own file changes; a kernel is
also renewed when its other sources change: the files of functions it calls, and constants.

A loop that stores numbers is vectorised only where its arrays are found to lie apart, which depends
on the addresses that they happen to have. If such a loop also added up a reordered sum, the sum
would have other last bits in the loop that is not vectorised. Therefore reordered sums have loops
of their own, which store nothing.

Arrays are copied into parts of others by loops. An assignment to a slice is compiled with its error
message, which may take longer than the rest of a kernel.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import warnings
from collections.abc import Callable, Set
from pathlib import Path
from types import CodeType
from typing import Any

from numba import config, njit
from numba.core.caching import FunctionCache

REORDER = frozenset({"reassoc", "contract", "nsz"})
"""Sums may be reordered so that they vectorise; NaN and inf keep their meaning."""

if getattr(config, "DISABLE_JIT", 0):
    raise ImportError(
        "NUMBA_DISABLE_JIT is set, and privclust's loops use instructions that Python does not "
        "have: unset NUMBA_DISABLE_JIT"
    )

_CONSTANTS = (bool, int, float, complex, str, bytes, tuple)


def kernel(fastmath: bool | Set[str] = False, error_model: str = "numpy") -> Callable[..., Any]:
    """Return a decorator that compiles a function which Python calls, and caches it.

    It must not be called by other compiled functions of the package: see `part`.

    Parameters
    ----------
    fastmath : bool or set of str
        Allowed floating-point optimisations, by the names of LLVM's flags, such as ``{"reassoc",
        "contract", "nsz"}``; none by default.
    error_model : {"numpy", "python"}
        Division by zero gives inf or NaN, or raises ZeroDivisionError.

    Returns
    -------
    callable
        Takes the function and returns it compiled, without the global interpreter lock.

    Warns
    -----
    UserWarning
        If machine code cannot be stored: each process then compiles the function again.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.core.lloyd import _lower_distances
    >>> X, least = np.array([[3.0, 4.0]]), np.array([np.inf])
    >>> float(_lower_distances(X, np.zeros(2), least)), least
    (25.0, array([25.]))
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled = njit(forceinline=False, **_options(fastmath, error_model))(function)
        try:
            # njit(cache=True) would set a cache with Numba's own key
            compiled._cache = _Cache(function)  # type: ignore[no-untyped-call]
        except Exception as error:  # no writable folder, or a path that is not UTF-8
            _warn_once(error)
        return compiled

    return decorate


def part(fastmath: bool | Set[str] = False, error_model: str = "numpy") -> Callable[..., Any]:
    """Return a decorator that compiles a function to be inlined in those that call it.

    Python can call it too, as tests do, but it is compiled anew in each process, and its last bits
    may differ from those it has inside a kernel.

    Parameters
    ----------
    fastmath, error_model
        See `kernel`. They apply to the code of this function, wherever it is inlined.

    Returns
    -------
    callable
        Takes the function and returns it compiled.

    Examples
    --------
    >>> @part()
    ... def square(x):
    ...     return x * x
    >>> square(3.0)
    9.0
    """
    return njit(forceinline=True, **_options(fastmath, error_model))


def _options(fastmath: bool | Set[str], error_model: str) -> dict[str, Any]:
    """Return Numba's options of both kinds; a missing one would come from the first caller."""
    flags = fastmath if isinstance(fastmath, bool) else set(fastmath)
    return {"nogil": True, "error_model": error_model, "fastmath": flags}


class _Cache(FunctionCache):
    """Numba's cache, keyed by all sources of a function; Numba's classes have no types."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        key = super()._index_key(sig, codegen)  # type: ignore[no-untyped-call]
        return (*key, _ingredients(self._py_func))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the stored code, or None; an entry that cannot be read counts as missing."""
        try:
            overload = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # a truncated file raises errors of any type
            overload = None
            try:
                # an index that cannot be read would fail again when the new code is stored
                self.flush()  # type: ignore[no-untyped-call]
            except OSError as error:
                _warn_once(error)
        if overload is None:
            _say_once()
        return overload

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code, where possible."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception as error:  # it reads the index, which may still be damaged
            _warn_once(error)


_WARNED: list[Exception] = []


def _warn_once(reason: Exception) -> None:
    """Warn once in a process that each process compiles loops again."""
    if not _WARNED:
        _WARNED.append(reason)
        warnings.warn(
            "compiled loops cannot be kept, so that each process compiles them again "
            f"({reason}); set NUMBA_CACHE_DIR to a folder that can be written to",
            UserWarning,
            stacklevel=3,
        )


@functools.cache
def _say_once() -> None:
    logging.getLogger("privclust").warning(
        "privclust compiles its loops, up to a minute the first time; later processes start at once"
    )


def _ingredients(function: Callable[..., Any]) -> str:
    """Return a digest of the files and the constants that a function is compiled from.

    Constants are the module constants of its body and of the functions it calls.
    """
    # this file sets the flags
    files, constants = {__file__}, set()
    seen, waiting = set(), [function]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        files.add(inspect.getfile(current))
        for name in _names(current.__code__):
            value = current.__globals__.get(name)
            if isinstance(value, _CONSTANTS):
                constants.add(f"{current.__module__}.{name} = {value!r}")
            called = getattr(value, "py_func", None) or getattr(value, "_defn", None)
            if called is not None:  # compiled, or an intrinsic
                waiting.append(called)
    digest = hashlib.sha256("\n".join(sorted(constants)).encode())
    for file in sorted(files):
        digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
    return digest.hexdigest()


def _names(code: CodeType) -> set[str]:
    """Return the global names in a function and in the functions within it."""
    inner = (_names(constant) for constant in code.co_consts if inspect.iscode(constant))
    return set(code.co_names).union(*inner)
