"""Types of arrays, what all parts do with arrays, and kinds of labels that methods learn."""

from __future__ import annotations

import enum
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


class Target(enum.StrEnum):
    """Kind of labels that a method learns; its loss decides."""

    CLASSES = "classes"
    """-1 and +1, both present."""
    VALUES = "values"
    """Finite real numbers, which include -1 and +1."""
    ONE_CLASS = "one class"
    """+1, at least once, and -1 for known outliers, which training ignores."""
    PARTIAL = "partly labelled classes"
    """-1 and +1, both present, and 0 for points without a label."""


LEARNT = {
    Target.CLASSES: "two classes",
    Target.VALUES: "real values",
    Target.ONE_CLASS: "one class",
    Target.PARTIAL: "two classes from partly labelled points",
}
"""Words for what a method learns."""

LABELS = {
    Target.CLASSES: "both classes, as -1 and +1",
    Target.VALUES: "finite real numbers",
    Target.ONE_CLASS: "+1, and -1 for known outliers; at least one +1",
    Target.PARTIAL: "both classes, as -1 and +1, and 0 for unlabelled points",
}
"""Words for the labels that a method learns from."""
