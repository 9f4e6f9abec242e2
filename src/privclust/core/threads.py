"""One thread for BLAS, which small matrices need."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


# It searches all loaded libraries, which takes 10 ms. A BLAS that is loaded later is not limited.
@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with BLAS limited to one thread during its calls.

    For many products of small matrices: threads that wait for one another are never faster, and
    slower by up to a factor of 20 on a machine with other work.

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
