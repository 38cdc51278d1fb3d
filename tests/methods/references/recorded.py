"""The optima of the conformance suite, kept as numbers.

``optima.json`` has an entry for every case at every point that the suite holds it to.  An entry
names its parameters and carries a mark of its Gram matrices and labels, so that no number is ever
compared with another problem than its own.  ``python -m tests.methods.references`` computes the
missing or changed entries, by the independent solvers of this package; with ``--all`` it
computes every one anew.
"""

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.methods import instances
from tests.methods.instances import Instance
from tests.methods.references import Case, Params

OPTIMA = Path(__file__).with_name("optima.json")
SAME = 1e-9  # relative difference of two marks that rounding explains


@cache
def _weights(size: int) -> np.ndarray:
    """Return the weights by which an array is marked."""
    return np.random.default_rng(0).normal(size=size)


@dataclass(frozen=True, eq=False)
class Point:
    """A problem at which a case is held to its optimum."""

    name: str  # tells the point apart from the case's other ones
    instance: Instance  # gram matrices
    y: np.ndarray  # labels
    params: Params  # the method's parameters without tol

    @property
    def mark(self) -> float:
        """A number that another Gram matrix or label would change."""
        weights = _weights(self.instance.grams.size + len(self.y))
        return float(weights @ np.concatenate([self.instance.grams.ravel(), self.y]))


def usual_points(case: Case) -> Iterator[Point]:
    """Yield every instance with the case's own parameters."""
    for make in instances.INSTANCES:
        instance = make()
        yield Point(make.__name__, instance, case.labels(instance), case.params(instance))


def extreme_points(case: Case) -> Iterator[Point]:
    """Yield one instance with parameters at the edge of what is permitted."""
    instance = instances.not_normalised()
    for extreme in case.extremes:
        name = ", ".join(f"{key} = {value:g}" for key, value in extreme.items())
        yield Point(name, instance, case.labels(instance), case.params(instance) | extreme)


def smallest_points(case: Case) -> Iterator[Point]:
    """Yield one kernel, two points, and kernels that are zero."""
    whole = instances.balanced()
    y, params = case.labels(whole), case.params(whole)
    yield Point("one kernel", Instance("one kernel", whole.grams[:1], y, whole.C), y, params)
    pair = np.array([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]]])
    signs = np.array([1.0, -1.0])
    yield Point("two points", Instance("two points", pair, signs, whole.C), signs, params)
    zeros = Instance("zero kernels", np.zeros((3, 60, 60)), y, whole.C)
    yield Point("zero kernels", zeros, y, params)


def all_points(case: Case) -> Iterator[Point]:
    """Yield every point at which the suite holds a case to its optimum."""
    yield from usual_points(case)
    yield from extreme_points(case)
    yield from smallest_points(case)


def compute(case: Case, point: Point) -> float:
    """Return the optimum by the case's independent solver, whose remarks on accuracy may pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return float(case.optimum(point.instance, point.y, point.params))


def entry(point: Point, optimum: float) -> dict[str, Any]:
    """Return what ``optima.json`` says of a point."""
    return {"params": point.params, "mark": point.mark, "optimum": optimum}


def is_of(found: dict[str, Any] | None, point: Point) -> bool:
    """Return whether an entry is that of a point as it is now."""
    return (
        found is not None
        and found["params"] == json.loads(json.dumps(point.params))
        and abs(found["mark"] - point.mark) <= SAME * max(1.0, abs(point.mark))
    )


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """Return the entries of ``optima.json`` by case and point."""
    return json.loads(OPTIMA.read_text()) if OPTIMA.exists() else {}


def key(case: Case, point: Point) -> str:
    """Return the name of a point's entry."""
    return f"{case}: {point.name}"


def optimum(case: Case, point: Point) -> float:
    """Return the recorded optimum of a case at a point."""
    found = recorded().get(key(case, point))
    if not is_of(found, point):
        raise AssertionError(
            f"{key(case, point)} is not recorded; run python -m tests.methods.references"
        )
    return float(found["optimum"])


def optimum_of(case: str, make: Callable[[], Instance]) -> float:
    """Return the recorded optimum of a case, by its name, on one of the usual instances."""
    return float(recorded()[f"{case}: {make.__name__}"]["optimum"])
