"""Subproblems of a run: one per solver, for each class against the rest and for each inner fold.

With two classes or real values, and without a selection, a run is one subproblem.  With k > 2
classes it is k subproblems, one for each class against the rest; where the classes share their
kernel weights, it is one subproblem with k columns of labels.  A selection adds as many subproblems
for every inner fold.  Each of these leaves its fold out of the training rows and is then scored on
that fold.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Floats
from mkldist.data.dataset import Dataset
from mkldist.data.preprocessing import TargetScale
from mkldist.gram.predictor import RawPredictor, bank_values
from mkldist.gram.predictor import raw_predictors as predictors_of
from mkldist.gram.requests import Request
from mkldist.gram.view import BankView
from mkldist.methods.registry import METHODS
from mkldist.planning.model import RunPlan
from mkldist.solvers.base import Solution
from mkldist.solvers.lockstep import JobTimes
from mkldist.solvers.targets import learns_unlabelled
from mkldist.worker.bank_inputs import BankInputs, TrainingView


@dataclass(frozen=True, eq=False)
class Subproblem:
    """One subproblem of a run.

    Parameters
    ----------
    run : RunPlan
        The run.
    training_view : TrainingView
        The part of the split that its solver is trained on.
    class_number : int or None
        Position of the class that is learnt against the rest; None for a run of one problem.
    """

    run: RunPlan
    training_view: TrainingView
    class_number: int | None = None

    @property
    def key(self) -> str:
        """Name among the subproblems of all runs."""
        return self._key_in(self.run.id)

    @property
    def key_before(self) -> str:
        """Name of the same subproblem in the run that this one may start from."""
        return self._key_in(self.run.after)

    def _key_in(self, run_id: str) -> str:
        fold = "" if self.training_view.selection is None else self.training_view.fold
        return f"{run_id}/{fold}/{'' if self.class_number is None else self.class_number}"

    def description(self, dataset: Dataset) -> str:
        """Return the class and the inner fold in words; empty for a run of one subproblem."""
        parts = []
        if self.class_number is not None:
            parts.append(f"class {dataset.multiclass[self.class_number]!r}")
        if self.training_view.selection is not None:
            parts.append(f"inner fold {self.training_view.fold} (from 0)")
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class SolvedSubproblem:
    """Outcome of a subproblem whose solver returned.

    Parameters
    ----------
    solution : Solution
        The solution, in the solver's units.
    times : JobTimes
        The solver's times.
    values : (k, N) float64 or None
        Values of its decision functions at all points of the bank, in the solver's units; None
        where no point of the bank is scored.
    """

    solution: Solution
    times: JobTimes
    values: Floats | None


def subproblems_of(inputs: BankInputs, run: RunPlan) -> Iterator[Subproblem]:
    """Yield the subproblems of a run: all labelled rows first, then folds; classes in order."""
    method = METHODS.get(run.method)
    unlabelled = method is not None and learns_unlabelled(method)
    n_classes = len(inputs.dataset.multiclass)
    class_numbers = range(n_classes) if n_classes and not run.shared_weights else (None,)
    for training_view in inputs.training_views(run.split, run.selection, unlabelled=unlabelled):
        for class_number in class_numbers:
            yield Subproblem(run, training_view, class_number)


def labels_of(inputs: BankInputs, subproblem: Subproblem, scale: TargetScale) -> Floats:
    """Return the labels that a solver is given, (n,), or (n, k) for all classes at once."""
    dataset, training_view = inputs.dataset, subproblem.training_view
    if not dataset.multiclass:
        y = scale.scaled(dataset.y)
    elif subproblem.class_number is not None:
        y = np.where(dataset.y == subproblem.class_number, 1.0, -1.0)
    else:
        class_numbers = np.arange(len(dataset.multiclass))
        y = np.where(dataset.y[:, None] == class_numbers, 1.0, -1.0)
    return inputs.training_labels(training_view, y)


def is_scored_on_bank(inputs: BankInputs, training_view: TrainingView) -> bool:
    """Return True if points of the bank are scored: a held-out fold or unlabelled points."""
    unlabelled = inputs.splits[training_view.split].unlabelled
    return training_view.selection is not None or len(unlabelled) > 0


def raw_predictors(view: BankView, solution: Solution) -> list[RawPredictor]:
    """Return the decision functions of a solution, one for each column of its labels."""
    own = solution.kernel_coefficients
    coefficients = solution.coefficients if own is None else own
    return predictors_of(view, solution.kernel_weights, coefficients, solution.bias)


def values_on_bank(
    view: BankView, solution: Solution, into: dict[str, Floats], key: str
) -> Generator[Request, Any, None]:
    """Request the values of a solution's decision functions on the bank; store them in `into`."""
    into[key] = yield from bank_values(view, raw_predictors(view, solution))
