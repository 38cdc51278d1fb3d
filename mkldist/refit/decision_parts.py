"""The part of each active kernel in the decision values of recorded runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.blas_threads import threads_for
from mkldist.errors import DataError, StoreError
from mkldist.gram.cross_values import GROUP_BYTES
from mkldist.gram.predictor import RawPredictor, raw_predictor
from mkldist.gram.view import make_views
from mkldist.in_memory.opened_bank import recomputed
from mkldist.methods.registry import METHODS
from mkldist.refit.all_rows import inputs_of
from mkldist.refit.choice import Choice
from mkldist.refit.source import FittedFrom, source_of
from mkldist.resolve.code_check import code_of
from mkldist.results.run_record import RunRecord
from mkldist.solvers.targets import learns_unlabelled
from mkldist.spec.banks import FACTORS
from mkldist.worker.bank_inputs import BankInputs, TrainingView

MOST_VALUES = 10**10
"""Kernel values that all splits together may need; more would take minutes."""


@dataclass(frozen=True, eq=False)
class DecisionParts:
    """Decision functions of one split, kernel by kernel, at its scored rows.

    Parameters
    ----------
    split : int
        The split.
    kernels : (S,) intp
        Places of the active kernels in the bank.
    values : (t, S, k) float64
        Part of each kernel in the k decision functions, without the intercept, at t rows: the test
        rows, or the unlabelled ones where no row is held out.
    """

    split: int
    kernels: Ints
    values: Floats


def decision_parts(results: Path, records: Sequence[RunRecord]) -> list[DecisionParts] | str:
    """Return the parts of the active kernels in the decision values of runs of one method.

    Nothing is solved again: weights and coefficients are those of the records, and the rows those
    that the sweep kept.  Only active kernels are computed.

    Parameters
    ----------
    results : Path
        Output folder of the sweep.
    records : sequence of RunRecord
        Complete runs of one method on one data set and bank.

    Returns
    -------
    list of DecisionParts, or str
        Or the reason why the parts are not known, as a phrase.
    """
    if not records:
        return "no record of a complete run is there"
    first = records[0]
    if METHODS[first.method].needs_laplacian:
        return "methods that learn from a graph are not taken apart"
    ids = tuple(record.id for record in records)
    wanted = Choice(first.dataset, first.bank, first.key, dict(first.params), {}, ids, 0.0, "")
    try:
        source = source_of(results, wanted)
    except (DataError, StoreError) as error:
        return f"{error.where}: {error.found}"
    if source.bank.backend == FACTORS:
        return "the pivots' coefficients of runs on factors are not recorded"
    labels = {place.split(".")[1] for place, _ in code_of(source.spec)}
    if source.bank.label in labels:
        return "kernel functions that are not mkldist's own are not called"
    if max(record.split for record in records) >= len(source.splits):
        return "runs learnt from a share of the training rows"
    n_values = sum(
        len(record.kernels) * record.coefficients.shape[-1] * _n_scored(source, record)
        for record in records
    )
    if n_values > MOST_VALUES:
        return f"{n_values:.1e} kernel values would be computed, more than {MOST_VALUES:.0e}"
    return list(_parts(source, records))


def _n_scored(source: FittedFrom, record: RunRecord) -> int:
    split = source.splits[record.split]
    return len(split.test) or len(split.unlabelled)


def _parts(source: FittedFrom, records: Sequence[RunRecord]) -> Iterator[DecisionParts]:
    """Yield the parts of each run."""
    unlabelled = learns_unlabelled(METHODS[records[0].method])
    for record in records:
        split = source.splits[record.split]
        inputs = inputs_of(source, split)
        if inputs.kernels is None:
            raise ValueError("parts of kernels need functions or matrices of views")
        inputs = replace(inputs, kernels=inputs.kernels.select(record.kernels))
        rows = split.test if len(split.test) else split.unlabelled
        view = TrainingView(0, unlabelled and len(split.unlabelled) > 0)
        training, index = inputs.training_rows(view), inputs.view_index(view)
        values = np.zeros((len(rows), len(record.kernels), _n_functions(record)))
        with threads_for(len(training)):
            kernels = inputs.source()
            bank = recomputed(kernels)
            try:
                steps = [name for name in source.bank.normalisations if name != "cosine"]
                [bank_view] = make_views(bank, [index], steps, presence=kernels.presence)
                for c in range(values.shape[2]):
                    weights = record.weights if record.weights.ndim == 1 else record.weights[c]
                    coefficients = np.atleast_2d(record.coefficients)[c]
                    raw = raw_predictor(bank_view, weights, coefficients, 0.0)
                    values[:, raw.kernels, c] = _by_kernel(inputs, raw, rows, training)
            finally:
                bank.close()
        yield DecisionParts(record.split, record.kernels, values)


def _by_kernel(inputs: BankInputs, function: RawPredictor, rows: Ints, training: Ints) -> Floats:
    """Return the share of each kernel in a decision function at some rows, (t, S)."""
    n_kernels = len(function.kernels)
    found = np.zeros((len(rows), n_kernels))
    if inputs.kernels is None or not n_kernels:
        return found
    coefficients = np.broadcast_to(function.coefficients, (n_kernels, len(training)))
    step = max(1, GROUP_BYTES // (8 * n_kernels * len(training)))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        between = inputs.kernels.cross_values(
            inputs.dataset,
            inputs.points,
            function.kernels,
            rows[some],
            training,
            cosine=inputs.cosine,
        )
        for m, values in enumerate(between):
            found[some, m] = function.weights[m] * (values @ coefficients[m])
    return found


def _n_functions(record: RunRecord) -> int:
    return len(np.atleast_2d(record.coefficients))
