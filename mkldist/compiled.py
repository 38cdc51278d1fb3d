"""The decorator of compiled functions: numba's, with types and the settings that all share."""

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
        The function, where the decorator stands without parentheses.
    fastmath : bool or set of str
        Liberties that the compiler may take with rounding, by LLVM's names; True for all.
    """
    decorator = cast(
        "Callable[[Function], Function]", numba.njit(cache=True, nogil=True, fastmath=fastmath)
    )
    return decorator if function is None else decorator(function)
