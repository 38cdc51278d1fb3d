"""Types of arrays, and what all parts of the package do with arrays."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
"""Numbers that solvers compute with; all certificates are of this type."""

Floating = npt.NDArray[np.floating]
"""Gram matrices as stored, in float32 or float64."""

Ints = npt.NDArray[np.intp]
"""Indices of points, kernels or cuts."""

Bools = npt.NDArray[np.bool_]
"""Masks."""

Array = npt.NDArray[Any]
"""An array of any type."""

Number = TypeVar("Number", bound=np.generic)

LEAST, LARGEST = 1e-100, 1e100
"""Sizes of numbers of users: products of others might overflow."""


def read_only(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return a view of an array that cannot be written to.

    Compiled code depends on whether an array may be written to.  A function that reads entries of
    banks takes such a view, so that it is compiled once for mapped banks and those in memory.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def may_overflow() -> AbstractContextManager[None]:
    """Return a context without warnings of overflow: whoever needs finite values looks for others.

    Threads that the body starts have none.
    """
    return np.errstate(over="ignore", under="ignore", invalid="ignore")
