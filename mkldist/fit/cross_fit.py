"""Decision values of rows by fits without them, and the calibration of a model by these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.blas_threads import threads_for
from mkldist.calibration import cross_calibrated
from mkldist.data.dataset import Split
from mkldist.data.folds import inner_folds, n_inner_folds
from mkldist.errors import DataError, InputError
from mkldist.fit.engine import fit, opened
from mkldist.fit.model import Model
from mkldist.fit.score import Scorer
from mkldist.fit.select import Prepared, inputs_of, rows_to_fit
from mkldist.results.run_record import RunRecord
from mkldist.results.state import RunState
from mkldist.spec.selection import SelectionSpec


def calibrated(model: Model, prepared: Prepared, method: str, split: int | None = None) -> Model:
    """Return a model with probabilities, and the predictions that are best by the sweep's metric.

    The setting is fitted on all folds but one in turn, with preprocessing of its own; each class
    is divided in proportion, or the groups of a grouped data set stay together.  The calibration is
    fitted to the decision values of the held-out rows of all folds.

    Parameters
    ----------
    model : Model
        The model of :func:`mkldist.fit.select.refit`.
    prepared : tuple of FittedFrom and RunPlan
        Its data and run.
    method : {"sigmoid", "isotonic"}
        Kind of calibration.
    split : int, optional
        The split on whose training part the model was fitted.

    Raises
    ------
    mkldist.errors.InputError
        For real values, one class, and rows that cannot be divided into folds.
    """
    source, _ = prepared
    dataset = source.dataset
    if dataset.classes is None or prepared[1].params.get("loss") == "one-class":
        found = "real values" if dataset.classes is None else "one class"
        raise InputError("--calibrate", found, "a method that learns two classes or more")
    rows, values, folds = held_out_values(prepared, split)
    counts = np.bincount(dataset.class_numbers[rows], minlength=len(dataset.classes))
    fitted, figures = cross_calibrated(
        values,
        dataset.class_numbers[rows],
        folds,
        method,
        source.spec.metric_of(dataset.task).name,
        np.argsort(-counts, kind="stable"),
    )
    return replace(model, calibration=fitted, facts={**model.facts, "calibration": figures})


def held_out_values(prepared: Prepared, split: int | None = None) -> tuple[Ints, Floats, Ints]:
    """Return rows of the data set, their decision values by a fit without them, and their folds.

    Parameters
    ----------
    prepared, split
        As for :func:`calibrated`.

    Returns
    -------
    rows : (n,) intp
        All labelled rows, or the training rows of the split.
    values : (n, 1) or (n, k) float64
        Decision values; a column for each of several classes.
    folds : (n,) intp
        Numbers of the folds.
    """
    source, run = prepared
    dataset, selection = source.dataset, SelectionSpec()
    whole = rows_to_fit(source, split)
    try:
        n_inner_folds(dataset, whole.train, selection, dataset.name, source.spec.seed)
    except DataError as error:
        expected = "rows of every class within and outside each of up to 5 folds"
        raise InputError("--calibrate", error.found, expected, "Leave --calibrate out") from None
    held_out = inner_folds(dataset, whole.train, selection, source.spec.seed)
    records: list[RunRecord] = []
    for fold in held_out:
        train = whole.train[~np.isin(whole.train, fold)]
        inputs = inputs_of(source, Split(train, fold, whole.unlabelled))
        scorer = Scorer(inputs, dataset.fingerprint, "", predictions=True)

        def on_ended(ended: Any, scorer: Scorer = scorer) -> None:
            records.append(scorer.record(ended))

        with threads_for(len(inputs.splits[0].known)), opened(inputs, source.bank) as bank:
            fit(bank, inputs, [run], on_ended, scored=len(whole.unlabelled) > 0)
    failed = [record.error for record in records if record.state is not RunState.COMPLETE]
    if failed:
        hint = "Leave --calibrate out"
        raise InputError("--calibrate", f"a fit that failed ({failed[0]})", "fits of folds", hint)
    values = [
        np.atleast_2d(record.decision_values)[:, : len(fold)].T
        for record, fold in zip(records, held_out, strict=True)
    ]
    numbers = np.repeat(np.arange(len(held_out)), [len(fold) for fold in held_out])
    return np.concatenate(held_out), np.concatenate(values), numbers
