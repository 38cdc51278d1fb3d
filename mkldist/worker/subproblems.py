"""The solvers that a run is made of: classes against the rest, on all labelled rows and on folds.

With two classes or real values and no selection a run is one solver.  Of k > 2 classes it is k
solvers, one for each class against the rest, or one solver of k columns of labels where the
classes share their kernel weights.  A selection adds as many for every inner fold, which is held
out and then scored on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Floats
from mkldist.data.dataset import Dataset
from mkldist.data.preprocessing import TargetScale
from mkldist.gram.predictor import RawPredictor, bank_values, raw_predictor
from mkldist.gram.requests import Request
from mkldist.gram.view import BankView
from mkldist.methods.registry import METHODS
from mkldist.plan.model import RunPlan
from mkldist.solvers.base import Solution
from mkldist.solvers.lockstep import JobTimes
from mkldist.solvers.targets import learns_unlabelled
from mkldist.worker.bank_inputs import BankInputs, TrainingView


@dataclass(frozen=True, eq=False)
class Subproblem:
    """One solver of a run.

    Parameters
    ----------
    run : RunPlan
        The run.
    training_view : TrainingView
        What the solver sees of the split.
    number : int or None
        Position of the class that is learnt against the rest; None if there is no other problem.
    """

    run: RunPlan
    training_view: TrainingView
    number: int | None = None

    @property
    def key(self) -> str:
        """Name among the subproblems of all runs."""
        fold = "" if self.training_view.selection is None else self.training_view.fold
        return f"{self.run.id}/{fold}/{'' if self.number is None else self.number}"

    def words(self, dataset: Dataset) -> str:
        """Return which subproblem of its run it is; empty for the only one."""
        fold = (
            ""
            if self.training_view.selection is None
            else f"inner fold {self.training_view.fold} (from 0)"
        )
        name = "" if self.number is None else f"class {dataset.multiclass[self.number]!r}"
        return ", ".join(word for word in (name, fold) if word)


@dataclass(frozen=True, eq=False)
class Ended:
    """What became of a subproblem whose solver returned.

    Parameters
    ----------
    solution : Solution
        What it returned, in the solver's units.
    times : JobTimes
        Where its time went.
    values : (k, N) float64 or None
        Its decision functions at all points of the bank, in the solver's units, where some of
        them are to be scored.
    """

    solution: Solution
    times: JobTimes
    values: Floats | None


def subproblems_of(given: BankInputs, run: RunPlan) -> Iterator[Subproblem]:
    """Yield the subproblems of a run, those on all labelled rows first, classes in order."""
    method = METHODS.get(run.method)
    unlabelled = method is not None and learns_unlabelled(method)
    n_classes = len(given.dataset.multiclass)
    numbers = range(n_classes) if n_classes and not run.shared_weights else (None,)
    for training_view in given.training_views(run.split, run.selection, unlabelled=unlabelled):
        for number in numbers:
            yield Subproblem(run, training_view, number)


def labels(given: BankInputs, subproblem: Subproblem, scale: TargetScale) -> Floats:
    """Return the labels that a subproblem learns, (n,), or (n, k) of all classes at once."""
    dataset = given.dataset
    if not dataset.multiclass:
        return given.labels(subproblem.training_view, scale.scaled(dataset.y))
    if subproblem.number is not None:
        return given.labels(
            subproblem.training_view, np.where(dataset.y == subproblem.number, 1.0, -1.0)
        )
    numbers = np.arange(len(dataset.multiclass))
    return given.labels(
        subproblem.training_view, np.where(dataset.y[:, None] == numbers, 1.0, -1.0)
    )


def is_scored_on_bank(given: BankInputs, training_view: TrainingView) -> bool:
    """Return whether points of the bank are to be scored: a fold or unlabelled ones."""
    return (
        training_view.selection is not None or len(given.splits[training_view.split].unlabelled) > 0
    )


def raw_predictors(view: BankView, solution: Solution) -> list[RawPredictor]:
    """Return the decision functions of a solution, one for each column of its labels."""
    weights, own = solution.kernel_weights, solution.kernel_coefficients
    shared = solution.coefficients if own is None else own
    if solution.coefficients.ndim == 1:
        return [raw_predictor(view, weights, shared, float(solution.bias))]
    biases = np.asarray(solution.bias)
    return [raw_predictor(view, weights, shared[..., c], bias) for c, bias in enumerate(biases)]


def values_on_bank(
    view: BankView, solution: Solution, into: dict[str, Floats], key: str
) -> Generator[Request, Any, None]:
    """Ask for the values of a solution's decision functions on the bank, and keep them."""
    into[key] = yield from bank_values(view, raw_predictors(view, solution))
