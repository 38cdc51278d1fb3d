"""Decorator of compiled functions: numba's, with type hints and settings common to all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def compiled(function: Function) -> Function: ...


@overload
def compiled(*, fastmath: bool | set[str]) -> Callable[[Function], Function]: ...


def compiled(
    function: Function | None = None, *, fastmath: bool | set[str] = False
) -> Function | Callable[[Function], Function]:
    """Compile a function on its first call; keep its machine code on disk, and release the GIL.

    Parameters
    ----------
    function : callable, optional
        The function; omitted where the decorator has arguments.
    fastmath : bool or set of str
        Changes of rounding that the compiler may make, by LLVM's names; True for all.
    """
    decorator = cast(
        "Callable[[Function], Function]", numba.njit(cache=True, nogil=True, fastmath=fastmath)
    )
    return decorator if function is None else decorator(function)
