"""Threads of BLAS, which small matrices gain nothing from."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def _controller() -> ThreadpoolController:
    """Return what sets numbers of threads, of the libraries that are loaded by the first call."""
    return ThreadpoolController()


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with BLAS on one thread meanwhile.

    For many products of small matrices: threads that wait for one another can take twenty times as
    long on a machine with other work, and nowhere less.

    Examples
    --------
    >>> one_blas_thread(lambda x: x + 1)(1)
    2
    """

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
