"""Which views, groups and features carry the decisions of a sweep's methods, from its records."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy

from mkldist.analysis.comparison import Chosen, Results
from mkldist.analysis.explanation import (
    DecisionParts,
    Explanation,
    KernelSets,
    decision_shares,
    is_selected,
    kernel_sets,
    losses_without,
    set_shares,
    shares_of,
    stability_of_choice,
)
from mkldist.analysis.losses import (
    Standing,
    constant_words,
    loss_name,
    number_of_settings,
    overlap_of,
    scored_part,
    without_gaps,
)
from mkldist.bank.view import BankView, make_views
from mkldist.core.arrays import Floats, Ints
from mkldist.core.metrics import Metric, default_metric
from mkldist.core.terminal import command_line
from mkldist.core.threads import threads_for
from mkldist.data.dataset import Dataset, Split
from mkldist.errors import DataError, InputError, SpecError, StoreError, nearest
from mkldist.fit.bank import recomputed
from mkldist.fit.decision import BankFunctions
from mkldist.fit.engine import BankInputs, FailedFit, Fitted, TrainingView, fit, opened
from mkldist.fit.select import FittedFrom, inputs_of, run_of, source_of
from mkldist.kernel_functions import FUNCTIONS
from mkldist.kernel_functions.bases import is_sparse
from mkldist.kernels.kernel_list import KernelList
from mkldist.methods.registry import METHODS
from mkldist.planning.checks import code_of
from mkldist.results.journal import RunRecord
from mkldist.results.rows import place_of
from mkldist.results.schema import CLASS_BIAS, OF_SPLITS, STATE, WEIGHTS, RunState, metric_of
from mkldist.scores import multiclass_scores, regression_scores, two_class_scores
from mkldist.solvers.base import learns_unlabelled
from mkldist.solvers.solver_params import plain_settings, validate
from mkldist.spec.banks import FACTORS
from mkldist.spec.kinds import as_path

if TYPE_CHECKING:
    import xarray as xr


MOST_VALUES = 10**10
"""Kernel values that all splits together may need; more would take minutes."""
OF_CHANGES = 0.2
"""Share of these that the changes of all sets of a level may need."""
SCALES = {"trace", "cosine", "variance"}
"""Normalisations after which kernels have one scale."""


def explain(
    path: str | Path,
    dataset: str | None = None,
    bank: str | None = None,
    method: str | None = None,
    permutations: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Explanation]:
    """Explain a method on each data set of a sweep: which views, groups and features matter.

    Parameters
    ----------
    path : str or Path
        Output folder of the sweep.
    dataset, bank, method : str, optional
        Names in the results.  By default all data sets, and on each the method of least mean loss
        among those with kernel weights that lack no split that another of them has: validation
        loss where the sweep selects, else test loss.
    permutations : int, optional
        Fits of the method on permuted labels of each training part, of which the shares of the
        decision are the null distribution of p-values.  Each takes as long as a run of the sweep.
    progress : callable, optional
        Called after each such fit with their number so far, and that of all on the data set.

    Returns
    -------
    list of Explanation
        One a data set; ``table`` is its table, a DataFrame.

    Raises
    ------
    mkldist.errors.SpecError
        For a `path` that is none, and a negative number of permutations.
    mkldist.errors.InputError
        For names that the results do not have, and results without kernel weights.
    mkldist.errors.StoreError
        If there are no results or they are damaged.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> [found] = mkldist.explain("results/quickstart", method="level")  # doctest: +SKIP
    >>> found.table.columns[:4].tolist()  # doctest: +SKIP
    ['level', 'name', 'n_kernels', 'rank']
    """
    if not isinstance(permutations, int) or permutations < 0:
        raise SpecError("permutations", f"{permutations!r:.60}", "a number of at least 0")
    results = Results.of(as_path("path", path))
    nodes = results.nodes()
    for key, asked in (("dataset", dataset), ("bank", bank), ("method", method)):
        known = list(dict.fromkeys(place_of(node)[key] for node in nodes))
        if asked is not None and asked not in known:
            raise InputError(
                f"--{key} {asked}", "nothing of this name", ", ".join(known) or "a run",
                nearest(asked, known),
            )  # fmt: skip
        nodes = [node for node in nodes if asked in (None, place_of(node)[key])]
    found = explanations(results, nodes, permutations, progress=progress)
    if not found:
        raise _nothing_to_explain(path, nodes)
    return found


def explanations(
    results: Results,
    nodes: Sequence[xr.DataTree],
    permutations: int = 0,
    most_values: float = MOST_VALUES,
    progress: Callable[[int, int], None] | None = None,
) -> list[Explanation]:
    """Explain the best of some methods on each data set; none of those without kernel weights."""
    found = []
    for name in dict.fromkeys(place_of(node)["dataset"] for node in nodes):
        own = [node for node in nodes if place_of(node)["dataset"] == name]
        candidates = _candidates(results, own)
        if candidates:
            best = _best(candidates)
            found.append(_explained(results, *best, permutations, most_values, progress))
    return found


def _nothing_to_explain(path: str | Path, nodes: Sequence[xr.DataTree]) -> InputError:
    """Return the error that says why none of these methods can be explained, and what to do."""
    where = str(path)
    names = ", ".join(dict.fromkeys(place_of(node)["method"] for node in nodes)) or "any method"
    if any((node.ds[STATE.name] == RunState.COMPLETE.value).any() for node in nodes):
        hint = "'mkldist list methods' says what each method finds"
        return InputError(where, f"no kernel weights of {names}", "a method that has them", hint)
    hint = f"'{command_line('status', path)}' says which runs failed and which are still to do"
    return InputError(where, f"no complete run of {names}", "at least one to explain", hint)


def _candidates(results: Results, nodes: Sequence[xr.DataTree]) -> list[Chosen]:
    """Return the methods on banks that have complete runs with weights."""
    found = []
    for node in nodes:
        if WEIGHTS.name not in node.ds:
            continue
        chosen = results.chosen(node, loss_name([node]))
        weights = np.nan_to_num(chosen.data[WEIGHTS.name].to_numpy())
        if weights.any() and chosen.complete.any():
            found.append(chosen)
    return found


def _best(candidates: Sequence[Chosen]) -> tuple[Chosen, int]:
    """Return the method of least mean loss of those on all splits, if any, and their number."""

    def losses(chosen: Chosen) -> Floats:
        metric = metric_of(chosen.node.attrs)
        parts: tuple[str, ...] = (
            ("validation",) if chosen.results.validated else ("test", "unlabelled")
        )
        found = [metric.loss(chosen.values(metric.variable(part))) for part in parts]
        return next((one for one in found if not np.isnan(one).all()), found[0])

    numbered: dict[Hashable, Chosen] = dict(enumerate(candidates))
    found = pd.DataFrame({number: losses(one) for number, one in numbered.items()})
    whole = without_gaps(found)
    means = (whole if len(whole.columns) else found).mean().fillna(np.inf)
    return numbered[means.idxmin()], len(means)


def _explained(
    results: Results,
    chosen: Chosen,
    n_candidates: int,
    permutations: int,
    most_values: float,
    progress: Callable[[int, int], None] | None,
) -> Explanation:
    """Return the explanation of one method on one data set."""
    splits = np.flatnonzero(chosen.complete)
    weights = chosen.data[WEIGHTS.name].isel(split=splits).load()
    metric = metric_of(chosen.node.attrs)
    parts: ExplainedRuns | str = "records of its runs are missing"
    records = [record for j in splits if (record := chosen.records[j]) is not None]
    if len(records) == len(splits):
        parts = explained_runs(results.path, records, metric, most_values)
    sets, n_kernels = kernel_sets(weights), weights.sizes["kernel"]
    nothing: Sequence[Floats | None] = [None] * len(sets)
    decision, left_out, null = nothing, nothing, nothing
    if not isinstance(parts, str):
        sets = parts.sets(sets, most_values)
        found = [parts.taken_apart(record, sets, n_kernels) for record in records]
        decision, left_out = ([np.array(of_set) for of_set in zip(*one, strict=True)]
                              for one in zip(*found, strict=True))  # fmt: skip
        null = [None] * len(sets)
        if permutations:
            null = [*parts.null(permutations, sets, n_kernels, progress)]
    selected, place = is_selected(weights), chosen.place
    overlap = overlap_of(chosen.data, splits.tolist())
    return Explanation(
        **place,
        task=str(chosen.node.attrs["task"]),
        metric=_metric_without_probabilities(metric),
        setting=chosen.settings(splits.tolist()),
        validated=results.validated,
        n_splits=len(splits),
        n_kernels=n_kernels,
        selected=float(selected.sum(axis=1).mean()),
        always=int(selected.all(axis=0).sum()),
        stability={
            "kernel": stability_of_choice(None, weights),
            **{own.level: stability_of_choice(own, weights) for own in sets},
        },
        shares=tuple(
            share
            for own, *known in zip(sets, decision, left_out, null, strict=True)
            for share in shares_of(own, weights, overlap, *known)
        ),
        no_decision=parts if isinstance(parts, str) else "",
        normalised=isinstance(parts, str)
        or not SCALES.isdisjoint(parts.source.bank.normalisations),
        n_permutations=0 if isinstance(parts, str) else permutations,
        no_better=_constant_as_good(chosen),
        n_candidates=n_candidates,
        n_settings=number_of_settings(chosen.node),
    )


def _constant_as_good(chosen: Chosen) -> str:
    """Return the constant prediction that a method is no better than, in words; empty for none."""
    splits = {name: chosen.data[name].to_numpy() for name in OF_SPLITS if name in chosen.data}
    metric, part = metric_of(chosen.node.attrs), scored_part(splits)
    standing = Standing.of(chosen.values(metric.variable(part)), metric, splits, part)
    if standing is None or not standing.no_better:
        return ""
    return constant_words(metric, standing.constant)


def _metric_without_probabilities(metric: Metric) -> Metric:
    """Return the metric, the default one in place of those of probabilities."""
    return default_metric(metric.task) if metric.probabilities else metric


@dataclass(frozen=True, eq=False)
class ExplainedRuns:
    """Complete runs of one method on one data set and bank, whose decisions are taken apart.

    Nothing is solved again: weights and coefficients are those of the records, and the rows those
    in the output folder of the sweep.  Only kernels with a weight are computed.
    """

    source: FittedFrom
    records: Sequence[RunRecord]
    metric: Metric

    def sets(self, of_kernels: Sequence[KernelSets], most_values: float) -> list[KernelSets]:
        """Return the views, groups and features of the data, and the other sets of kernels."""
        inputs = inputs_of(self.source, self.source.splits[self.records[0].split])
        dataset, kernels = inputs.dataset, inputs.kernels
        dense = inputs.points is not None and not is_sparse(inputs.points)
        tested = all(len(self.source.splits[one.split].test) for one in self.records)
        own = None if kernels is None or not kernels.are_of_features else kernels.of_features
        if not dense or not tested or own is None:
            return [*of_kernels]
        views = {name: one.columns for name, one in dataset.views.items()}
        named: dict[str, Mapping[str, Sequence[int]]] = {
            "view": views if len(views) > 1 else {},
            "group": {name: one for name, one in dataset.groups.items() if name not in views},
            "feature": {name: (j,) for j, name in enumerate(dataset.feature_names)},
        }
        values = self.n_values
        found = [
            _sets_of_features(level, columns, own)
            for level, columns in named.items()
            if columns and len(columns) * values <= OF_CHANGES * most_values
        ]
        told = {one.level for one in found}
        return [*found, *(one for one in of_kernels if one.level not in told)]

    @property
    def n_values(self) -> int:
        """Number of kernel values that the runs need at the rows that they are scored on."""
        return sum(
            len(one.kernels) * one.coefficients.shape[-1] * len(self._split(one)[1])
            for one in self.records
        )

    def taken_apart(
        self, record: RunRecord, sets: Sequence[KernelSets], n_kernels: int
    ) -> tuple[list[Floats], list[Floats]]:
        """Return the decision shares of every set in a run, and the rises of the loss without."""
        parts = self.parts(record, sets)
        of_kernels = decision_shares([(parts.kernels, parts.values)], n_kernels)
        whole = parts.values.sum(axis=1)[:, None]
        shares = [
            set_shares(own, of_kernels, [np.hstack([whole, parts.changes[own.level]])])
            if own.columns
            else set_shares(own, of_kernels, ())
            for own in sets
        ]
        pairs = zip(sets, shares, strict=True)
        return shares, [losses_without(parts, own, known) for own, known in pairs]

    def _split(self, record: RunRecord) -> tuple[Split, Ints, TrainingView]:
        """Return the split of a run, the rows that it is scored on, and what it learnt from."""
        split = self.source.splits[record.split]
        unlabelled = learns_unlabelled(METHODS[record.method]) and len(split.unlabelled) > 0
        scored = split.test if len(split.test) else split.unlabelled
        return split, scored, TrainingView(0, unlabelled)

    def parts(self, record: RunRecord, sets: Sequence[KernelSets] = ()) -> DecisionParts:
        """Return the parts of a run, and its changes by sets of features."""
        split, rows, learnt_from = self._split(record)
        inputs = inputs_of(self.source, split)
        if inputs.kernels is None:
            raise ValueError("parts of kernels need functions or matrices of views")
        inputs = replace(inputs, kernels=inputs.kernels.select(record.kernels), _found={})
        learnt, kernels = inputs.training_rows(learnt_from), inputs.source()
        all_coefficients = np.atleast_2d(record.coefficients)
        all_weights = np.broadcast_to(record.weights, (len(all_coefficients), len(record.kernels)))
        bias = np.atleast_1d(record.of_classes.get(CLASS_BIAS.name, record.bias))
        values = np.zeros((len(rows), len(record.kernels), len(all_coefficients)))
        intercepts, of_classes = [], []
        with threads_for(len(learnt)), closing(recomputed(kernels)) as bank:
            [view] = make_views(
                bank,
                [inputs.view_index(learnt_from)],
                inputs.view_normalisations,
                presence=kernels.presence,
                weights=inputs.row_weights,
            )
            points = inputs.new_points(view, rows, learnt)
            for c, (weights, own) in enumerate(zip(all_weights, all_coefficients, strict=True)):
                functions = BankFunctions.of(view, weights, own, float(bias[c]))
                shares = points.by_kernel(functions)
                values[:, functions.kernels, c] = shares[:, :, 0]
                intercepts.append(functions.bias[0])
                of_classes.append((functions, shares))
            changes = {
                own.level: np.concatenate(
                    [
                        _changes(inputs, view, rows, learnt, one, shares, own, record.kernels)
                        for one, shares in of_classes
                    ],
                    axis=2,
                )
                for own in sets
                if own.columns
            }
        loss = partial(self._loss, split, rows)
        return DecisionParts(record.kernels, values, np.array(intercepts), loss, changes)

    def _loss(self, split: Split, rows: Ints, values: Floats) -> float:
        """Return the loss of decision values (t, k) at some rows."""
        dataset, metric = self.source.dataset, _metric_without_probabilities(self.metric)
        if dataset.task == "regression":
            found = regression_scores(values[:, 0], dataset.y[rows])
        elif dataset.multiclass:
            numbers = dataset.class_numbers
            sizes = np.bincount(numbers[split.train], minlength=len(dataset.multiclass))
            order = np.argsort(-sizes, kind="stable")
            found, _ = multiclass_scores(values.T, numbers[rows], order)
        else:
            found, _ = two_class_scores(values[:, 0], dataset.y[rows])
        return float(metric.loss(found[metric.variable()]))

    def null(
        self,
        permutations: int,
        sets: Sequence[KernelSets],
        n_kernels: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Floats]:
        """Return the shares of every set in decisions that were fitted on permuted labels, (N, G).

        The labels of each training part are permuted, those of groups of rows together, and the
        run of its split fitted with its parameters; the shares are those at its scored rows, means
        over the splits.
        """
        total = [np.zeros((permutations, len(own.names))) for own in sets]
        dataset, numbers = self.source.dataset, np.arange(n_kernels)
        for place, record in enumerate(self.records):
            split, rows, learnt_from = self._split(record)
            params = validate(METHODS[record.method].params, record.key, record.params)
            run = run_of(replace(self.source, record=record), plain_settings(params))
            inputs = inputs_of(self.source, split)
            learnt = inputs.training_rows(learnt_from)
            with threads_for(len(learnt)), opened(inputs, self.source.bank) as bank:
                for number in range(permutations):
                    draw = np.random.default_rng([self.source.spec.seed, record.split, number])
                    labels = permuted_labels(dataset, split.train, draw)
                    permuted = replace(inputs, dataset=replace(dataset, y=labels))
                    fitted: list[Fitted | FailedFit] = []
                    fit(bank, permuted, [run], fitted.append, scored=False)
                    if isinstance(fitted[0], FailedFit):
                        raise fitted[0].error
                    solved = []
                    for found in fitted[0].on_all_rows.values():
                        points, one = inputs.new_points(found.view, rows, learnt), found.functions
                        solved.append((found.view, one, points.by_kernel(one)))
                    alone = [(one.kernels, parts) for _, one, parts in solved]
                    of_kernels = decision_shares(alone, n_kernels)
                    for own, means in zip(sets, total, strict=True):
                        changes = [
                            np.hstack(
                                [
                                    parts.sum(axis=1)[:, None],
                                    _changes(inputs, view, rows, learnt, one, parts, own, numbers),
                                ]
                            )
                            for view, one, parts in (solved if own.columns else ())
                        ]
                        # A decision that does not vary rests on nothing.
                        shares = np.nan_to_num(set_shares(own, of_kernels, changes))
                        means[number] += shares / len(self.records)
                    if progress is not None:
                        done = place * permutations + number + 1
                        progress(done, len(self.records) * permutations)
        return total


def _sets_of_features(
    level: str, columns: Mapping[str, Sequence[int]], kernels: KernelList
) -> KernelSets:
    """Return sets of features, with the kernels that have features in them."""
    sizes = [len(own) for own in columns.values()]
    flat = np.concatenate([np.asarray(own, dtype=np.intp) for own in columns.values()])
    width = 1 + int(max(flat.max(), kernels.subset_indices.max()))
    of_sets, of_subsets = (
        scipy.sparse.csr_array((np.ones(len(indices)), indices, indptr), (len(indptr) - 1, width))
        for indices, indptr in (
            (flat, np.cumsum([0, *sizes])),
            (kernels.subset_indices, kernels.subset_indptr),
        )
    )
    counts = (of_sets @ of_subsets.T).toarray()
    within = (counts == np.diff(kernels.subset_indptr))[:, kernels.subset]
    place = np.where(within.any(axis=0), within.argmax(axis=0), -1)
    apart = tuple(np.split(flat, np.cumsum(sizes)[:-1]))
    return KernelSets(level, tuple(columns), place, apart, counts[:, kernels.subset] > 0)


def _changes(
    inputs: BankInputs,
    view: BankView,
    rows: Ints,
    learnt: Ints,
    functions: BankFunctions,
    shares: Floats,
    sets: KernelSets,
    numbers: Ints,
) -> Floats:
    """Return the changes of functions at rows by each set, (t, G, k).

    `shares` (t, S, k) are those of their kernels there, as :meth:`NewPoints.by_kernel` has them.  A
    change is what functions lose where the features of the set stand at their means over the rows
    that were learnt from; values that a row lacks stay so.  Only kernels with such features are
    computed again.  `numbers` (M,) are those that the view's kernels have in the sets.
    """
    if inputs.points is None or sets.involved is None:
        raise ValueError("changes need features")
    known = ~np.isnan(inputs.points[learnt])
    sums = np.where(known, inputs.points[learnt], 0.0).sum(axis=0)
    means, points = sums / np.maximum(known.sum(axis=0), 1), inputs.points.copy()
    there = replace(inputs, points=points)

    found = []
    for columns, involved in zip(sets.columns, sets.involved, strict=True):
        some = np.flatnonzero(involved[numbers[functions.kernels]])
        block = np.ix_(rows, columns)
        own = points[block]
        points[block] = np.where(np.isnan(own), np.nan, means[columns])
        changed = there.new_points(view, rows, learnt).by_kernel(functions.part(some))
        found.append((shares[:, some] - changed).sum(axis=1))
        points[block] = own
    return np.stack(found, axis=1)


def permuted_labels(dataset: Dataset, rows: Ints, draw: np.random.Generator) -> Floats:
    """Return the labels of a data set, those of some rows permuted.

    Where rows belong to groups of one label each, the labels of groups are permuted.
    """
    labels, own = dataset.y.copy(), dataset.y[rows]
    units = np.arange(len(rows)) if dataset.row_groups is None else dataset.row_groups[rows]
    _, first, unit = np.unique(units, return_index=True, return_inverse=True)
    if (own != own[first][unit]).any():
        first = unit = np.arange(len(rows))
    labels[rows] = draw.permutation(own[first])[unit]
    return labels


def explained_runs(
    results: Path, records: Sequence[RunRecord], metric: Metric, most_values: float = MOST_VALUES
) -> ExplainedRuns | str:
    """Return complete runs of one method on one data set and bank, to be taken apart."""
    if not records:
        return "no record of a complete run is there"
    first = records[0]
    if METHODS[first.method].needs_laplacian:
        return "methods that learn from a graph are not taken apart"
    try:
        source = source_of(results, first.id)
    except (DataError, StoreError) as error:
        return f"{error.where}: {error.found}"
    if source.bank.backend == FACTORS and not _are_columns(source):
        return "the pivots' coefficients of runs on factors are not recorded"
    if source.bank.label in {place.split(".")[1] for place, _ in code_of(source.spec)}:
        return "kernel functions that are not mkldist's own are not called"
    if max(record.split for record in records) >= len(source.splits):
        return "runs learnt from a share of the training rows"
    found = ExplainedRuns(source, records, metric)
    if found.n_values > most_values:
        return f"{found.n_values:.1e} kernel values would be computed, more than {most_values:.0e}"
    return found


def _are_columns(source: FittedFrom) -> bool:
    """Return True if each kernel is linear on one column, which then is its factor."""
    kernels = inputs_of(source, source.splits[0]).kernels
    own = kernels.of_features if kernels is not None and kernels.are_of_features else None
    if own is None:
        return False
    single = np.diff(own.subset_indptr)[own.subset] == 1
    return bool((single & (own.function == FUNCTIONS["linear"].code)).all())
