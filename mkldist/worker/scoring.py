"""From what the solvers of a run returned to its record: units of the labels, scores, times."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.data.dataset import Split
from mkldist.data.preprocessing import TargetScale, target_scale
from mkldist.gram.view import BankView
from mkldist.plan.model import RunPlan
from mkldist.results.run_record import RunRecord
from mkldist.scores import (
    multiclass_scores,
    part_scores,
    predicted_classes,
    regression_scores,
    scores,
)
from mkldist.solvers.base import Solution
from mkldist.solvers.lockstep import JobTimes
from mkldist.worker.bank_inputs import BankInputs, BankRef, TrainingView
from mkldist.worker.cross_kernels import TestPart
from mkldist.worker.subproblems import Ended, Subproblem, raw_predictors
from mkldist.worker.telemetry import environment, provenance

KEPT_BYTES = 2**28


@dataclass(eq=False)
class Scorer:
    """What scores the runs on a bank.

    Parameters
    ----------
    ref : BankRef
        The bank.
    given : BankInputs
        Its ingredients.
    views : mapping of TrainingView to BankView
        What the solvers see of the bank.
    seed : int
        Seed of the sweep, for provenance.
    predictions, coefficients : bool
        What records hold besides weights and scores.
    """

    ref: BankRef
    given: BankInputs
    views: Mapping[TrainingView, BankView]
    seed: int = 0
    predictions: bool = False
    coefficients: bool = False
    _parts: dict[TrainingView, TestPart] = field(default_factory=dict)

    def scale(self, training_view: TrainingView) -> TargetScale:
        """Return the units in which solvers of a training view see the labels."""
        seen = Split(self.given.labelled_rows(training_view), np.zeros(0, dtype=np.intp))
        return target_scale(self.ref.plan.preprocessing, self.given.dataset, seen)

    def record(self, run: RunPlan, subproblems: Mapping[Subproblem, Ended]) -> RunRecord:
        """Return the record of a run all of whose subproblems ended.

        Parameters
        ----------
        run : RunPlan
            The run.
        subproblems : mapping of Subproblem to Ended
            What became of each subproblem, classes in order.
        """
        whole = {p: ended for p, ended in subproblems.items() if p.training_view.selection is None}
        inner = {
            p: ended for p, ended in subproblems.items() if p.training_view.selection is not None
        }
        training_view = next(iter(whole)).training_view
        scored, of_classes, rows, values = self._parts_scored(training_view, list(whole.values()))
        times = _seconds(ended.times for ended in whole.values())
        if inner:
            scored |= self._validation(inner)
            own = _seconds(ended.times for ended in inner.values())
            times["validation_seconds"] = own["own_seconds"] + own["pass_seconds"]
        solutions = [
            _in_units(ended.solution, self.scale(training_view)) for ended in whole.values()
        ]
        expansions = [s.kernel_coefficients for s in solutions if s.kernel_coefficients is not None]
        kept = self.coefficients and expansions
        return RunRecord.from_solutions(
            run,
            solutions,
            scores=scored,
            times=times,
            provenance=self._provenance(run),
            test_rows=rows if self.predictions else None,
            decision_values=values if self.predictions else None,
            train_rows=self.given.learnt_rows(training_view) if self.coefficients else None,
            kernel_coefficients=np.concatenate(expansions) if kept else None,
            counters=_counts(ended.times for ended in whole.values()),
            of_classes=of_classes,
        )

    def _parts_scored(
        self, training_view: TrainingView, subproblems: Sequence[Ended]
    ) -> tuple[dict[str, float], dict[str, Floats], Ints, Floats]:
        """Return scores on the test and the unlabelled part, and rows and decision values."""
        scored: dict[str, float] = {}
        of_classes: dict[str, Floats] = {}
        split = self.given.splits[training_view.split]
        parts = {"test": split.test, "unlabelled": split.unlabelled}
        parts = {part: rows for part, rows in parts.items() if len(rows)}
        found = [
            self._test_values(training_view, subproblems)
            if part == "test"
            else self._values(subproblems, training_view, rows)
            for part, rows in parts.items()
        ]
        for (part, rows), values in zip(parts.items(), found, strict=True):
            numbers, arrays = self._scores(values, rows, training_view)
            scored |= part_scores(numbers, part)
            of_classes |= part_scores(arrays, part)
        values = np.concatenate(found, axis=1)
        rows = np.concatenate(list(parts.values()))
        return scored, of_classes, rows, values if self.given.dataset.multiclass else values[0]

    def _test_values(self, training_view: TrainingView, subproblems: Sequence[Ended]) -> Floats:
        """Return decision values at the test points in the units of the labels, (k, t)."""
        part = self._part(training_view)
        scale = self.scale(training_view)
        rows = [
            scale.restored(part.decision_values(predictor))
            for ended in subproblems
            for predictor in raw_predictors(self.views[training_view], ended.solution)
        ]
        return np.array(rows)

    def _values(
        self, subproblems: Sequence[Ended], training_view: TrainingView, rows: Ints
    ) -> Floats:
        """Return decision values at some of the bank's points in the units of the labels."""
        points = self.given.bank_points(rows)
        values = [ended.values[:, points] for ended in subproblems if ended.values is not None]
        return self.scale(training_view).restored(np.concatenate(values))

    def _scores(
        self, values: Floats, rows: Ints, training_view: TrainingView
    ) -> tuple[dict[str, float], dict[str, Floats]]:
        """Return scores of decision values (k, t) at some rows of the data set."""
        dataset = self.given.dataset
        if dataset.multiclass:
            return multiclass_scores(
                values, dataset.class_numbers[rows], self._order(training_view)
            )
        return scores(values[0], dataset.y[rows], dataset.task), {}

    def _order(self, training_view: TrainingView) -> Ints:
        """Return the classes in the order in which ties go to them, the most frequent first."""
        numbers = self.given.dataset.class_numbers[self.given.labelled_rows(training_view)]
        counts = np.bincount(numbers, minlength=len(self.given.dataset.multiclass))
        return np.argsort(-counts, kind="stable")

    def _validation(self, subproblems: Mapping[Subproblem, Ended]) -> dict[str, float]:
        """Return the error or RMSE of all held-out points of the inner folds together."""
        dataset = self.given.dataset
        by_training_view: dict[TrainingView, list[Ended]] = {}
        for subproblem, ended in subproblems.items():
            by_training_view.setdefault(subproblem.training_view, []).append(ended)
        losses = []
        for training_view, of_classes in by_training_view.items():
            rows = self.given.held_out(training_view)
            values = self._values(of_classes, training_view, rows)
            if dataset.task == "regression":
                rmse = regression_scores(values[0], dataset.y[rows])["rmse"]
                losses.append(np.full(len(rows), rmse**2))
            elif dataset.multiclass:
                predicted = predicted_classes(values, self._order(training_view))
                losses.append(predicted != dataset.class_numbers[rows])
            else:
                losses.append((values[0] >= 0) != (dataset.y[rows] > 0))
        mean = float(np.concatenate(losses).mean())
        if dataset.task == "regression":
            return {"validation_rmse": float(np.sqrt(mean))}
        return {"validation_error": mean}

    def _part(self, training_view: TrainingView) -> TestPart:
        """Return the test part, with what was computed for the last runs on it."""
        if training_view not in self._parts:
            if sum(part.n_bytes for part in self._parts.values()) > KEPT_BYTES:
                self._parts.clear()
            self._parts[training_view] = TestPart(self.given, training_view)
        return self._parts[training_view]

    def _provenance(self, run: RunPlan) -> dict[str, Any]:
        return provenance(
            seed=self.seed,
            data=self.ref.data_fingerprint,
            bank=self.ref.plan.id,
            split=self.given.splits[run.split].fingerprint,
            threads=1,
        )


def failed_record(
    run: RunPlan, error: Exception | str, n_kernels: int, subproblem: str = ""
) -> RunRecord:
    """Return the record of a run that ended in an error.

    Parameters
    ----------
    run : RunPlan
        The run.
    error : Exception or str
        Why it failed; where an exception was raised goes to the provenance.
    n_kernels : int
        Number of kernels of its bank.
    subproblem : str
        Which of its solvers failed, if it has several.
    """
    if isinstance(error, str):
        return RunRecord.failed(run, error, n_kernels=n_kernels, provenance=environment())
    trace = "".join(traceback.format_exception(error))
    place = f"{subproblem}: " if subproblem else ""
    return RunRecord.failed(
        run,
        f"{place}{type(error).__name__}: {error}",
        n_kernels=n_kernels,
        provenance={**environment(), "traceback": trace},
    )


def _in_units(solution: Solution, scale: TargetScale) -> Solution:
    """Return a solution whose decision function predicts in the user's units.

    Objective and bounds stay those of the problem that was solved.
    """
    own = solution.kernel_coefficients
    return replace(
        solution,
        coefficients=scale.spread * solution.coefficients,
        kernel_coefficients=None if own is None else scale.spread * own,
        bias=scale.centre + scale.spread * solution.bias,
    )


def _seconds(times: Iterable[JobTimes]) -> dict[str, float]:
    """Return the times of solvers together; they ran beside each other."""
    of_each = list(times)
    return {
        "wall_seconds": max(one.wall_seconds for one in of_each),
        "cpu_seconds": sum(one.cpu_seconds for one in of_each),
        "own_seconds": sum(one.own_seconds for one in of_each),
        "pass_seconds": sum(one.pass_seconds for one in of_each),
    }


def _counts(times: Iterable[JobTimes]) -> dict[str, int]:
    of_each = list(times)
    return {
        "requests": sum(one.rounds for one in of_each),
        "bytes_read": round(sum(one.bytes_read for one in of_each)),
    }
