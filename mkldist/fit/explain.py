"""Explanations of the methods of a sweep, from its results, records and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mkldist.analysis.compare_results import PairComparison, compare_pair
from mkldist.analysis.comparison import loss_name, number_of_settings, without_gaps
from mkldist.analysis.explanation import (
    Explanation,
    decision_shares,
    groupings_of,
    largest_kernels,
    stability_of_choice,
)
from mkldist.analysis.kernel_selection import is_selected
from mkldist.analysis.pairing import Chosen, Results, paired
from mkldist.arrays import Floats, Ints
from mkldist.blas_threads import threads_for
from mkldist.errors import DataError, InputError, StoreError, nearest
from mkldist.fit.bank import recomputed
from mkldist.fit.decision import GROUP_BYTES, RawPredictor, raw_predictor
from mkldist.fit.problem import BankInputs, TrainingView
from mkldist.fit.refit import FittedFrom, inputs_of, source_of
from mkldist.gram.view import make_views
from mkldist.methods.registry import METHODS
from mkldist.resolve.code_check import code_of
from mkldist.results.rows import place_of
from mkldist.results.run_record import RunRecord
from mkldist.results.schema import CLASS, STATE, VALIDATION_SCORES, WEIGHTS
from mkldist.results.state import RunState
from mkldist.solvers.targets import learns_unlabelled
from mkldist.spec.arguments import given_path
from mkldist.spec.banks import FACTORS

if TYPE_CHECKING:
    import xarray as xr


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
    try:
        source = source_of(results, first.id)
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


UNIFORM = "uniform"
FIXED = (UNIFORM, "svm", "majority")
"""Methods that choose no kernels; one of them is explained only if it is asked for."""


def explain(
    path: str | Path,
    dataset: str | None = None,
    bank: str | None = None,
    method: str | None = None,
) -> list[Explanation]:
    """Explain a method on each data set of a sweep.

    Parameters
    ----------
    path : str or Path
        Output folder of the sweep.
    dataset, bank, method : str, optional
        Names in the results.  By default all data sets, and on each the method of least mean loss
        among those that choose kernels and lack no split that another of them has: validation loss
        where the sweep selects, else test loss.

    Raises
    ------
    mkldist.errors.SpecError
        For a `path` that is none.
    mkldist.errors.InputError
        For names that the results do not have, and results without kernel weights.
    mkldist.errors.StoreError
        If there are no results or they are damaged.
    """
    results = Results.of(given_path("path", path))
    nodes = results.nodes()
    for key, asked in (("dataset", dataset), ("bank", bank), ("method", method)):
        known = list(dict.fromkeys(place_of(node)[key] for node in nodes))
        if asked is not None and asked not in known:
            raise InputError(
                f"--{key} {asked}", "nothing of this name", ", ".join(known) or "a run",
                nearest(asked, known),
            )  # fmt: skip
        nodes = [node for node in nodes if asked in (None, place_of(node)[key])]
    found = []
    for name in dict.fromkeys(place_of(node)["dataset"] for node in nodes):
        own = [node for node in nodes if place_of(node)["dataset"] == name]
        candidates = _candidates(results, own, any_method=method is not None)
        if candidates:
            comparable = _comparable(candidates)
            best = comparable[int(np.argmin([_mean_loss(one) for one in comparable]))]
            found.append(_explained(results, best, len(comparable)))
    if not found:
        raise _nothing_to_explain(path, nodes, any_method=method is not None)
    return found


def _nothing_to_explain(
    path: str | Path, nodes: Sequence[xr.DataTree], *, any_method: bool
) -> InputError:
    """Return the error that says why none of some methods can be explained, and what to do.

    Parameters
    ----------
    path : str or Path
        As the user gave it.
    nodes : sequence of DataTree
        The methods on their data sets and banks, each without kernel weights or complete runs, or
        one of those that choose no kernels.
    any_method : bool
        True if the user named the method.
    """
    where = str(path)
    names = ", ".join(dict.fromkeys(place_of(node)["method"] for node in nodes)) or "any method"
    asked = [node for node in nodes if any_method or str(node.attrs["method"]) not in FIXED]
    if nodes and not asked:
        hint = "Add one to the sweep and run it again, or name one of these by --method"
        found = f"only methods that learn no kernel weights: {names}"
        return InputError(where, found, "a method that learns them", hint)
    if any((node.ds[STATE.name] == RunState.COMPLETE.value).any() for node in asked):
        hint = "'mkldist list methods' says what each method finds"
        return InputError(where, f"no kernel weights of {names}", "a method that has them", hint)
    hint = f"'mkldist status {path}' says which runs failed and which are still to do"
    return InputError(where, f"no complete run of {names}", "at least one to explain", hint)


def _candidates(
    results: Results, nodes: Sequence[xr.DataTree], *, any_method: bool
) -> list[Chosen]:
    """Return the methods on banks that have complete runs with weights."""
    found = []
    for node in nodes:
        if WEIGHTS.name not in node.ds:
            continue
        if str(node.attrs["method"]) in FIXED and not any_method:
            continue
        chosen = results.chosen(node, loss_name([node], str(node.attrs["task"])))
        weights = np.nan_to_num(chosen.data[WEIGHTS.name].to_numpy())
        if weights.any() and chosen.complete.any():
            found.append(chosen)
    return found


def _comparable(candidates: Sequence[Chosen]) -> list[Chosen]:
    """Return the methods that lack no split that another has; all of them where each lacks one."""
    import pandas as pd

    losses = pd.DataFrame({number: _losses(one) for number, one in enumerate(candidates)})
    whole = without_gaps(losses).columns
    return [one for number, one in enumerate(candidates) if number in whole] or [*candidates]


def _losses(chosen: Chosen) -> Floats:
    """Return the validation losses where validation selects, else those that compare."""
    validation = VALIDATION_SCORES[str(chosen.node.attrs["task"])][0].name  # type: ignore[index]
    return chosen.values(validation if chosen.results.validated else chosen.loss)


def _mean_loss(chosen: Chosen) -> float:
    """Return the mean over the splits that have a loss."""
    values = _losses(chosen)
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.inf


def _explained(results: Results, chosen: Chosen, n_candidates: int) -> Explanation:
    """Return the explanation of one method on one data set."""
    splits = np.flatnonzero(chosen.complete)
    weights = chosen.data[WEIGHTS.name].isel(split=splits)
    if CLASS in weights.dims:
        weights = weights.mean(CLASS)
    weights = weights.load()
    records = [chosen.records[j] for j in splits]
    there = [record for record in records if record is not None]
    parts = (
        decision_parts(results.path, there)
        if len(there) == len(records)
        else "records of its runs are missing"
    )
    reason = parts if isinstance(parts, str) else ""
    n_kernels = weights.sizes["kernel"]
    decision = None if isinstance(parts, str) else decision_shares(parts, n_kernels)
    selected = is_selected(weights)
    place = chosen.place
    return Explanation(
        dataset=place["dataset"],
        bank=place["bank"],
        method=place["method"],
        task=str(chosen.node.attrs["task"]),
        setting=chosen.settings(splits.tolist()),
        validated=results.validated,
        n_splits=len(splits),
        n_kernels=n_kernels,
        selected=float(selected.sum(axis=1).mean()),
        always=int(selected.all(axis=0).sum()),
        stability=stability_of_choice(selected),
        groupings=groupings_of(weights, decision),
        kernels=largest_kernels(weights, decision),
        no_decision=reason,
        against_uniform=_against_uniform(results, place),
        n_candidates=n_candidates,
        n_settings=number_of_settings(chosen.node),
    )


def _against_uniform(results: Results, place: dict[str, str]) -> PairComparison | None:
    """Return a method against uniform weights on the same bank, None without these."""
    uniform = {
        (place_of(node)["dataset"], place_of(node)["bank"], place_of(node)["method"])
        for node in results.nodes()
        if node.attrs["method"] == UNIFORM
    }

    def matches(one: dict[str, str], other: dict[str, str]) -> bool:
        key = other["dataset"], other["bank"], other["method"]
        return one == place and one != other and one["bank"] == other["bank"] and key in uniform

    pairs, _ = paired(results, results, matches)
    return compare_pair(pairs[0]) if pairs else None
