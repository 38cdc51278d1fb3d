"""From the solved subproblems of a run to its record: units of the labels, scores, times."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from mkldist.bank.store import BuildTime
from mkldist.bank.view import BankView
from mkldist.calibration import Calibrated, fit_curves
from mkldist.core.arrays import Floats, Ints
from mkldist.data.preprocessing import TargetScale
from mkldist.fit.decision import NewPoints
from mkldist.fit.engine import (
    OF_BANK,
    BankInputs,
    FailedFit,
    Fitted,
    SolvedSubproblem,
    Subproblem,
    TrainingView,
)
from mkldist.methods.registry import METHODS
from mkldist.planning.model import RunPlan
from mkldist.results.journal import RunRecord, environment, provenance
from mkldist.scores import (
    log_odds_scores,
    multiclass_scores,
    part_scores,
    pooled_scores,
    predicted_classes,
    probability_scores,
    regression_scores,
    two_class_scores,
)
from mkldist.solvers.base import Solution
from mkldist.solvers.lockstep import JobTimes

VALIDATION = "validation"
COMBINATION_BYTES = 2**28  # of kernels between test points and training rows: one, and the cached


@dataclass(frozen=True, eq=False)
class _Predictions:
    """Decision values and scores of a run on the test rows of its split, then the unlabelled ones.

    The values are (t,), or (k, t) of k > 2 classes, in the units of the labels.
    """

    rows: Ints
    values: Floats
    scores: dict[str, float]
    of_classes: dict[str, Floats]


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Decision values (k, h), or (1, h), at the held-out rows of an inner fold."""

    view: TrainingView
    rows: Ints
    values: Floats


ProbabilityScores: TypeAlias = Callable[[Floats, Ints], dict[str, float]]
"""Scores of the probabilities at some rows, from the decision values there."""


@dataclass(eq=False)
class Scorer:
    """Makes the records of the runs of a batch."""

    inputs: BankInputs
    data: str  # fingerprint of the data set
    bank: str  # id of the bank
    seed: int = 0
    predictions: bool = False  # True if records hold decision values
    coefficients: bool = False  # True if they hold the rows of coefficients and each kernel's own
    build_time: Callable[[], BuildTime | None] = lambda: None  # of the bank; None if unknown
    _points: dict[TrainingView, NewPoints] = field(init=False, default_factory=dict)

    def record(self, ended: Fitted | FailedFit) -> RunRecord:
        """Return the record of a run: one whose scores fail is a failed run, not a failed batch."""
        if isinstance(ended, Fitted):
            try:
                return self._record(ended)
            except OF_BANK:
                raise
            except Exception as error:
                ended = FailedFit(ended.run, error)
        return failed_record(ended.run, ended.error, self.inputs.n_kernels, ended.subproblem)

    def _record(self, fitted: Fitted) -> RunRecord:
        """Return the record of a run whose subproblems are all solved."""
        run, inputs = fitted.run, self.inputs
        on_all, on_folds = fitted.on_all_rows, fitted.on_folds
        training_view, solved = next(iter(on_all)).training_view, list(on_all.values())
        held_out = self._held_out(on_folds)
        log_odds = METHODS[run.method].params(**run.params).gives_log_odds
        scored = self._probability_scores(held_out, log_odds=log_odds)
        predictions = self._predictions(training_view, solved, scored)
        found = predictions.scores | self._on_training_rows(training_view, solved)
        times = _seconds(one.times for one in solved)
        if on_folds:
            found |= self._validation(held_out, log_odds=log_odds)
            spent = _seconds(one.times for one in on_folds.values())
            times["validation_seconds"] = spent["own_seconds"] + spent["pass_seconds"]
        times |= self._build_times
        scale = inputs.target_scale(training_view)
        solutions = [_in_units(one.solution, scale) for one in solved]
        return RunRecord.from_solutions(
            run,
            solutions,
            scores=found,
            times=times,
            provenance=provenance(
                seed=self.seed,
                data=self.data,
                bank=self.bank,
                split=inputs.splits[run.split].fingerprint,
                threads=1,
            ),
            test_rows=predictions.rows if self.predictions else None,
            decision_values=predictions.values if self.predictions else None,
            train_rows=inputs.training_rows(training_view) if self.coefficients else None,
            kernel_coefficients=_expansions(solutions) if self.coefficients else None,
            counters=_counts(one.times for one in solved),
            of_classes=predictions.of_classes,
        )

    @cached_property
    def _build_times(self) -> dict[str, float]:
        """Times of the bank by their names in records; nothing if they are unknown."""
        found = self.build_time()
        if found is None:
            return {}
        return {"build_seconds": found.seconds, "build_cpu_seconds": found.cpu_seconds}

    def _predictions(
        self,
        training_view: TrainingView,
        solved: Sequence[SolvedSubproblem],
        scored: ProbabilityScores | None,
    ) -> _Predictions:
        """Evaluate and score the solutions on the test part and on the unlabelled part."""
        dataset, split = self.inputs.dataset, self.inputs.splits[training_view.split]
        values: list[Floats] = []
        found: dict[str, float] = {}
        of_classes: dict[str, Floats] = {}
        parts = {"test": split.test, "unlabelled": split.unlabelled}
        parts = {part: rows for part, rows in parts.items() if len(rows)}
        for part, rows in parts.items():
            if part == "test":
                values.append(self._test_values(training_view, solved))
            else:
                values.append(self._bank_values(training_view, solved, rows))
            known = dataset.labelled[rows]
            if not known.any():  # no label tells how good the values are
                continue
            own, rows = values[-1][:, known], rows[known]
            numbers, arrays = self._scores(own, rows, training_view)
            if scored is not None:
                numbers |= scored(own, rows)
            found |= part_scores(numbers, part)
            of_classes |= part_scores(arrays, part)
        rows, joined = np.concatenate(list(parts.values())), np.concatenate(values, axis=1)
        return _Predictions(rows, joined if dataset.multiclass else joined[0], found, of_classes)

    def _test_values(
        self, training_view: TrainingView, solved: Sequence[SolvedSubproblem]
    ) -> Floats:
        """Return decision values at the test points in the units of the labels, (k, t)."""
        points = self._test_points(training_view, solved[0].view)
        values = [np.atleast_2d(one.solution.decision_function(points).T) for one in solved]
        return self.inputs.target_scale(training_view).restored(np.concatenate(values))

    def _bank_values(
        self, training_view: TrainingView, solved: Iterable[SolvedSubproblem], rows: Ints
    ) -> Floats:
        """Return decision values at points of the bank in the units of the labels, (k, t)."""
        points = self.inputs.bank_points(rows)
        values = [one.values[:, points] for one in solved if one.values is not None]
        return self.inputs.target_scale(training_view).restored(np.concatenate(values))

    def _scores(
        self, values: Floats, rows: Ints, training_view: TrainingView
    ) -> tuple[dict[str, float], dict[str, Floats]]:
        """Return scores of decision values (k, t) at some rows, and scores of each class."""
        dataset = self.inputs.dataset
        if dataset.multiclass:
            order = self._class_order(training_view)
            return multiclass_scores(values, dataset.class_numbers[rows], order)
        if dataset.task == "regression":
            return regression_scores(values[0], dataset.y[rows]), {}
        return two_class_scores(values[0], dataset.y[rows])

    def _on_training_rows(
        self, training_view: TrainingView, solved: Sequence[SolvedSubproblem]
    ) -> dict[str, float]:
        """Return the loss on the training rows; none where their decision values cost a pass."""
        rows = self.inputs.labelled_rows(training_view)
        if all(one.values is not None for one in solved):
            values = self._bank_values(training_view, solved, rows)
        else:
            own = [_training_values(one.solution, len(rows)) for one in solved]
            known = [found for found in own if found is not None and found.shape[1] == len(rows)]
            if len(known) < len(own):
                return {}
            values = self.inputs.target_scale(training_view).restored(np.concatenate(known))
        dataset = self.inputs.dataset
        if dataset.task == "regression":
            return {"train_rmse": regression_scores(values[0], dataset.y[rows])["rmse"]}
        wrong = self._predicted(values, training_view) != dataset.class_numbers[rows]
        return {"train_error": float(wrong.mean())}

    def _predicted(self, values: Floats, training_view: TrainingView) -> Ints:
        """Return the class that decision values (k, n), or (1, n) of two classes, predict."""
        if self.inputs.dataset.multiclass:
            return predicted_classes(values, self._class_order(training_view))
        predicted: Ints = (values[0] >= 0).astype(np.intp)
        return predicted

    def _class_order(self, training_view: TrainingView) -> Ints:
        """Return the classes in the order in which ties go to them, the most frequent first."""
        numbers = self.inputs.dataset.class_numbers[self.inputs.labelled_rows(training_view)]
        counts = np.bincount(numbers, minlength=len(self.inputs.dataset.multiclass))
        return np.argsort(-counts, kind="stable")

    def _held_out(self, solved: Mapping[Subproblem, SolvedSubproblem]) -> list[_HeldOut]:
        """Return the decision values at the held-out rows of each inner fold."""
        folds: dict[TrainingView, list[SolvedSubproblem]] = {}
        for subproblem, one in solved.items():
            folds.setdefault(subproblem.training_view, []).append(one)
        found = []
        for view, classes in folds.items():
            rows = self.inputs.held_out_rows(view)
            found.append(_HeldOut(view, rows, self._bank_values(view, classes, rows)))
        return found

    def _validation(self, folds: Sequence[_HeldOut], *, log_odds: bool) -> dict[str, float]:
        """Return the scores on the held-out rows of all inner folds."""
        dataset, rows = self.inputs.dataset, np.concatenate([fold.rows for fold in folds])
        if dataset.task == "regression":
            pooled = np.concatenate([fold.values[0] for fold in folds])
            return part_scores(regression_scores(pooled, dataset.y[rows]), VALIDATION)
        parts = [
            (fold.values, dataset.class_numbers[fold.rows], self._predicted(fold.values, fold.view))
            for fold in folds
        ]
        found, _ = pooled_scores(parts, max(2, len(dataset.multiclass)))
        own = []
        for number, fold in enumerate(folds):
            others = [*folds[:number], *folds[number + 1 :]]
            scored = self._probability_scores(others, log_odds=log_odds)
            own.append(scored(fold.values, fold.rows) if scored else {})
        sizes = [len(fold.rows) for fold in folds]
        found |= {n: float(np.average([one[n] for one in own], weights=sizes)) for n in own[0]}
        return part_scores(found, VALIDATION)

    def _probability_scores(
        self, folds: Sequence[_HeldOut], *, log_odds: bool
    ) -> ProbabilityScores | None:
        """Return the function that scores a run's probabilities; None if it has none."""
        dataset = self.inputs.dataset
        if log_odds and not dataset.multiclass:
            return lambda values, rows: log_odds_scores(values[0], dataset.y[rows])
        return self._calibrated(folds) if folds and dataset.task != "regression" else None

    def _calibrated(self, folds: Sequence[_HeldOut]) -> ProbabilityScores:
        """Return the function that scores the probabilities of a sigmoid fitted to some folds."""
        numbers = self.inputs.dataset.class_numbers
        values = np.concatenate([fold.values for fold in folds], axis=1)
        known = numbers[np.concatenate([fold.rows for fold in folds])]
        calibrated = Calibrated(fit_curves(values.T, known))

        def scores(values: Floats, rows: Ints) -> dict[str, float]:
            return probability_scores(calibrated.probabilities(values.T), numbers[rows])

        return scores

    def _test_points(self, training_view: TrainingView, view: BankView) -> NewPoints:
        """Return the test points, with the combination of kernels of the last run on them."""
        if training_view not in self._points:
            if sum(points.n_bytes for points in self._points.values()) > COMBINATION_BYTES:
                self._points.clear()
            test = self.inputs.splits[training_view.split].test
            learnt = self.inputs.training_rows(training_view)
            self._points[training_view] = self.inputs.new_points(
                view, test, learnt, COMBINATION_BYTES
            )
        return self._points[training_view]


def failed_record(
    run: RunPlan, error: Exception | str, n_kernels: int, subproblem: str = ""
) -> RunRecord:
    """Return the record of a failed run on a bank of so many kernels.

    The traceback of an exception goes to the provenance.  `subproblem` describes the one that
    failed, empty for the only one.
    """
    made_by = {**environment(), "ended": time.time()}
    if isinstance(error, str):
        return RunRecord.failed(run, error, n_kernels=n_kernels, provenance=made_by)
    trace = "".join(traceback.format_exception(error))
    place = f"{subproblem}: " if subproblem else ""
    return RunRecord.failed(
        run,
        f"{place}{type(error).__name__}: {error}",
        n_kernels=n_kernels,
        provenance={**made_by, "traceback": trace},
    )


def _in_units(solution: Solution, scale: TargetScale) -> Solution:
    """Return a solution whose decision function predicts in the user's units."""
    own = solution.kernel_coefficients
    return replace(
        solution,
        coefficients=scale.spread * solution.coefficients,
        kernel_coefficients=None if own is None else scale.spread * own,
        bias=scale.centre + scale.spread * solution.bias,
    )


def _training_values(solution: Solution, n_points: int) -> Floats | None:
    """Return the decision values that a solver had at its training points, (k, n), if it had."""
    if solution.training_values is not None:
        return np.atleast_2d(solution.training_values.T)
    if not solution.kernel_weights.any():
        return np.tile(np.atleast_1d(solution.bias)[:, None], n_points)
    return None


def _expansions(solutions: Iterable[Solution]) -> Floats | None:
    """Return the coefficients of each kernel, class below class; None where kernels share them."""
    own = [s.kernel_coefficients for s in solutions if s.kernel_coefficients is not None]
    return np.concatenate(own) if own else None


def _seconds(times: Iterable[JobTimes]) -> dict[str, float]:
    """Return the times of solvers that ran beside each other: the longest wall time, and sums."""
    jobs = list(times)
    return {
        "wall_seconds": max(job.wall_seconds for job in jobs),
        "cpu_seconds": sum(job.cpu_seconds for job in jobs),
        "own_seconds": sum(job.own_seconds for job in jobs),
        "pass_seconds": sum(job.pass_seconds for job in jobs),
        "pass_cpu_seconds": sum(job.pass_cpu_seconds for job in jobs),
    }


def _counts(times: Iterable[JobTimes]) -> dict[str, int]:
    """Return the requests of solvers and the bytes read for them."""
    jobs = list(times)
    moved = sum(job.bytes_moved for job in jobs)
    return {
        "requests": sum(job.rounds for job in jobs),
        "bytes_read": round(sum(job.bytes_read for job in jobs)),
        "pass_bytes": round(sum(job.pass_bytes for job in jobs)),
        **({"bytes_moved": round(moved)} if moved else {}),
    }
