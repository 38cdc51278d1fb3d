"""Refusals: reasons why a method cannot solve a problem, found before anything is solved.

A method owns its incompatibilities.  :meth:`mkldist.solvers.base.Method.refuses` compares plain
facts of a problem with the abilities of the method.  Two callers ask it: :func:`mkldist.solve`,
which knows the arrays, and the checks of a sweep, which know the sweep file first and the data
sets later.  Each states the facts that it knows, and raises an error that names its own place.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mkldist.core.arrays import LABELS, LEARNT, Target


class Part(enum.StrEnum):
    """Part of a problem that a method refuses."""

    LAPLACIAN = "laplacian"
    CLASSES = "classes"
    LABELS = "labels"
    WEIGHTS = "weights"
    FOLDS = "folds"
    GROUPS = "groups"
    FACTORS = "factors"
    ROUNDED = "rounded"


@dataclass(frozen=True)
class ProblemFacts:
    """Facts by which a method accepts or refuses a problem; a fact left out refuses nothing."""

    # True if the method is given a graph Laplacian, False if there is none
    laplacian: bool | None = None
    # True if several classes, one column of labels each, are to share kernel weights
    shared_weights: bool = False
    weighted: bool = False  # True if points have weights, which multiply their losses
    grouped: bool = False  # True if a user says which kernels form a group
    factors: bool = False  # True if the bank holds thin factors of the kernels
    rounded: bool = False  # True if these factors are rounded to float32
    targets: Collection[Target] | None = None  # all targets that the labels fit
    smallest_class: int | None = None  # number of points of the smallest class


@dataclass(frozen=True)
class Refusal:
    """Reason why a method cannot solve a problem."""

    part: Part  # part of the problem that does not fit
    reason: str  # clause whose subject is the method, e.g. ``"needs a graph"``
    # Words for the part that the method takes, e.g. ``"a graph Laplacian of the points"``
    expected: str
    # Words for the methods that take the problem, e.g. ``"a method on graphs"``; empty where no
    # list of them would help
    others: str = ""


NEEDS_GRAPH = Refusal(Part.LAPLACIAN, "needs a graph", "a graph Laplacian of the points")
USES_NO_GRAPH = Refusal(Part.LAPLACIAN, "uses no graph", "none", "a method on graphs")
LEARNS_CLASSES_APART = Refusal(
    Part.CLASSES,
    "finds kernel weights for one class at a time",
    "one column of labels",
    "a method whose classes can share kernel weights",
)
WEIGHS_POINTS_ALIKE = Refusal(
    Part.WEIGHTS,
    "gives every point the same weight",
    "no weights of points",
    "a method that multiplies losses by them",
)
USES_NO_GROUPS = Refusal(
    Part.GROUPS,
    "takes each kernel by itself",
    "none",
    "a method over groups of kernels",
)
NEEDS_MATRICES = Refusal(
    Part.FACTORS,
    "needs whole Gram matrices",
    "another backend",
    "a method on factors",
)
NEEDS_FACTORS_BELOW = Refusal(
    Part.ROUNDED,
    "takes its bounds from factors that lie below their kernels, as rounded ones may not",
    'dtype = "float64"',
    "a method on rounded factors",
)


def unfit_factors(problem: ProblemFacts, has_bound: bool, hinge_machines: bool) -> Refusal | None:
    """Return the refusal of factors, or of rounded ones; None if the bank has none of these.

    A method `has_bound` if it bounds the optimum with the kernels from a solution on factors; of
    `hinge_machines` the value with the kernels is computed where factors do not lie below them.
    """
    if problem.factors and not has_bound:
        return NEEDS_MATRICES
    return NEEDS_FACTORS_BELOW if problem.rounded and not hinge_machines else None


def too_many_folds(folds: int, smallest_class: int) -> Refusal:
    """Return the refusal of a class that has fewer points than a method is to make folds."""
    return Refusal(
        Part.FOLDS, f"is to make {folds} folds", f"at most {smallest_class}, the points of a class"
    )


def refused_labels(target: Target, targets: Collection[Target]) -> Refusal:
    """Return the refusal of labels that fit `targets` by a method that learns another `target`."""
    able = one_of([LEARNT[other] for other in Target if other in targets])
    return Refusal(
        Part.LABELS, f"learns {LEARNT[target]}", LABELS[target], f"a method that learns {able}"
    )


def one_of(words: Sequence[str]) -> str:
    """Return words as a choice.

    Examples
    --------
    >>> one_of(["level", "silp", "uniform"])
    'level, silp or uniform'
    """
    return _joined(words or ["none is registered"], "or")


def all_of(words: Sequence[str]) -> str:
    """Return words, at least one, as a list.

    Examples
    --------
    >>> all_of(["level", "silp", "uniform"])
    'level, silp and uniform'
    """
    return _joined(words, "and")


def _joined(words: Sequence[str], conjunction: str) -> str:
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last
