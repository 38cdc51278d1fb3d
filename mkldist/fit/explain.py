"""Explanations of the methods of a sweep, from its results, records and data."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mkldist.analysis.compare_results import compare_pair
from mkldist.analysis.comparison import loss_name, number_of_settings, without_gaps
from mkldist.analysis.explanation import (
    DecisionParts,
    Explanation,
    decision_shares,
    groupings_of,
    largest_kernels,
    stability_of_choice,
)
from mkldist.analysis.kernel_selection import is_selected
from mkldist.analysis.pairing import Chosen, Place, Results, paired
from mkldist.arrays import Floats, Ints
from mkldist.blas_threads import threads_for
from mkldist.data.dataset import Split
from mkldist.errors import DataError, InputError, StoreError, nearest
from mkldist.fit.bank import recomputed
from mkldist.fit.decision import BankFunctions
from mkldist.fit.problem import TrainingView
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
            found.append(_explained(results, *_best(candidates)))
    if not found:
        raise _nothing_to_explain(path, nodes, any_method=method is not None)
    return found


def _nothing_to_explain(
    path: str | Path, nodes: Sequence[xr.DataTree], *, any_method: bool
) -> InputError:
    """Return the error that says why none of these methods can be explained, and what to do."""
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
        fixed = str(node.attrs["method"]) in FIXED
        if WEIGHTS.name not in node.ds or (fixed and not any_method):
            continue
        chosen = results.chosen(node, loss_name([node], str(node.attrs["task"])))
        weights = np.nan_to_num(chosen.data[WEIGHTS.name].to_numpy())
        if weights.any() and chosen.complete.any():
            found.append(chosen)
    return found


def _best(candidates: Sequence[Chosen]) -> tuple[Chosen, int]:
    """Return the method of least mean loss among those that lack no split that another has.

    These are all methods where each lacks one.  The second number is how many they are.
    """
    import pandas as pd

    def losses(chosen: Chosen) -> Floats:
        validation = VALIDATION_SCORES[str(chosen.node.attrs["task"])][0].name  # type: ignore[index]
        return chosen.values(validation if chosen.results.validated else chosen.loss)

    numbered: dict[Hashable, Chosen] = dict(enumerate(candidates))
    found = pd.DataFrame({number: losses(one) for number, one in numbered.items()})
    whole = without_gaps(found)
    means = (whole if len(whole.columns) else found).mean().fillna(np.inf)
    return numbered[means.idxmin()], len(means)


def _explained(results: Results, chosen: Chosen, n_candidates: int) -> Explanation:
    """Return the explanation of one method on one data set."""
    splits = np.flatnonzero(chosen.complete)
    weights = chosen.data[WEIGHTS.name].isel(split=splits)
    if CLASS in weights.dims:
        weights = weights.mean(CLASS)
    weights = weights.load()
    parts: list[DecisionParts] | str = "records of its runs are missing"
    records = [record for j in splits if (record := chosen.records[j]) is not None]
    if len(records) == len(splits):
        parts = decision_parts(results.path, records)
    n_kernels = weights.sizes["kernel"]
    decision = None if isinstance(parts, str) else decision_shares(parts, n_kernels)
    selected, place = is_selected(weights), chosen.place
    uniform = [place_of(node) for node in results.nodes() if node.attrs["method"] == UNIFORM]

    def with_uniform(one: Place, other: Place) -> bool:
        return one == place != other and one["bank"] == other["bank"] and other in uniform

    pairs, _ = paired(results, results, with_uniform)
    return Explanation(
        **place,
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
        no_decision=parts if isinstance(parts, str) else "",
        against_uniform=compare_pair(pairs[0]) if pairs else None,
        n_candidates=n_candidates,
        n_settings=number_of_settings(chosen.node),
    )


def decision_parts(results: Path, records: Sequence[RunRecord]) -> list[DecisionParts] | str:
    """Return the parts of kernels in complete runs of one method on one data set and bank.

    Nothing is solved again: weights and coefficients are those of the records, and the rows those
    in the output folder of the sweep.  Only active kernels are computed.  Where the parts are not
    known, the reason is returned as a phrase.
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
    if source.bank.label in {place.split(".")[1] for place, _ in code_of(source.spec)}:
        return "kernel functions that are not mkldist's own are not called"
    if max(record.split for record in records) >= len(source.splits):
        return "runs learnt from a share of the training rows"
    splits = [source.splits[record.split] for record in records]
    scored = [split.test if len(split.test) else split.unlabelled for split in splits]
    n_values = sum(
        len(record.kernels) * record.coefficients.shape[-1] * len(rows)
        for record, rows in zip(records, scored, strict=True)
    )
    if n_values > MOST_VALUES:
        return f"{n_values:.1e} kernel values would be computed, more than {MOST_VALUES:.0e}"
    return [_parts(source, *one) for one in zip(records, splits, scored, strict=True)]


def _parts(source: FittedFrom, record: RunRecord, split: Split, rows: Ints) -> DecisionParts:
    """Return the parts of a run at some rows."""
    inputs = inputs_of(source, split)
    if inputs.kernels is None:
        raise ValueError("parts of kernels need functions or matrices of views")
    inputs = replace(inputs, kernels=inputs.kernels.select(record.kernels))
    unlabelled = learns_unlabelled(METHODS[record.method]) and len(split.unlabelled) > 0
    learnt_from = TrainingView(0, unlabelled)
    learnt, kernels = inputs.training_rows(learnt_from), inputs.source()
    all_coefficients = np.atleast_2d(record.coefficients)
    all_weights = np.broadcast_to(record.weights, (len(all_coefficients), len(record.kernels)))
    values = np.zeros((len(rows), len(record.kernels), len(all_coefficients)))
    steps = [name for name in source.bank.normalisations if name != "cosine"]
    with threads_for(len(learnt)), closing(recomputed(kernels)) as bank:
        [view] = make_views(
            bank, [inputs.view_index(learnt_from)], steps, presence=kernels.presence
        )
        points = inputs.new_points(view, rows, learnt)
        for c, (weights, own) in enumerate(zip(all_weights, all_coefficients, strict=True)):
            functions = BankFunctions.of(view, weights, own, 0.0)
            values[:, functions.kernels, c] = points.by_kernel(functions)[:, :, 0]
    return DecisionParts(record.kernels, values)
