"""From the results of a sweep to a model: choose a setting, and fit it on all rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.losses import Standing
from mkldist.calibration import cross_calibrated
from mkldist.core.arrays import Array, Floats, Ints
from mkldist.core.devices import CPU
from mkldist.core.metrics import BESIDE, METRICS, Metric, metric_of_variable, part_of_variable
from mkldist.core.threads import threads_for
from mkldist.core.wording import pluralize
from mkldist.data.dataset import Dataset, SourceColumns, Split
from mkldist.data.preprocessing import fitted_preprocessing
from mkldist.data.snapshot import HEADER, load_snapshot, snapshot_header
from mkldist.data.splits import inner_folds, n_inner_folds
from mkldist.errors import DataError, InputError, StoreError, nearest
from mkldist.fit.decision import Expansion, LabelCoding
from mkldist.fit.engine import BankInputs, FailedFit, Fitted, fit, opened, subproblems_of
from mkldist.fit.model import Model
from mkldist.fit.new_rows import GivenRows, GivenView
from mkldist.fit.score import Scorer
from mkldist.methods.registry import METHODS
from mkldist.planning.checks import check_allowed, check_code, code_of_settings
from mkldist.planning.model import RunPlan
from mkldist.results.folder import OutputFolder, restored_manifest
from mkldist.results.journal import Journal, RunRecord, environment
from mkldist.results.layout import read_layout
from mkldist.results.rows import (
    complete_values,
    hyperparameters,
    is_pooled,
    is_validated,
    method_nodes,
    place_of,
    settings_of,
    to_frame,
)
from mkldist.results.schema import ON_FACTORS, RUN_ID, SPLIT, STATE, RunState, metric_of
from mkldist.results.tree import open_results
from mkldist.solvers.base import Solution, exact_proximity_of, proximity_of
from mkldist.solvers.progress import StopReason
from mkldist.solvers.solver_params import plain_settings, validate
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from mkldist.spec.kinds import LINKED, TRIAL
from mkldist.spec.model import FROM, MethodSpec, SelectionSpec, SweepSpec, is_from_method

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


BY_PART = {
    "validation": "by cross-validation",
    "test": "on the test parts",
    "unlabelled": "on the unlabelled parts",
}
PLACE = ["dataset", "bank", "method"]


@dataclass(frozen=True)
class Choice:
    """A setting of a sweep."""

    dataset: str
    bank: str
    method: str
    settings: dict[str, Any]  # values of the parameters that vary
    changed: dict[str, Any]  # parameters that the user asks for and the sweep did not run
    run_ids: tuple[str, ...]  # its complete runs, in the order of the splits
    score: float  # mean over the splits of the metric that chose it; NaN if there is none
    said: str  # how it was chosen, in words
    standing: Standing | None = None  # beside a constant prediction; None if that is not known
    note: str = ""  # what the sweep has not run yet, in words; empty if it has ended
    missing: int = 0  # number of its runs that are not complete
    beside: tuple[Standing, ...] = ()  # of the other scores that tables show

    @property
    def words(self) -> str:
        """Method and parameters in words."""
        return ", ".join([self.method, *_listed({**self.settings, **self.changed})])


def choose(
    results: Path,
    dataset: str | None = None,
    bank: str | None = None,
    method: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Choice:
    """Choose the setting of best mean metric over the splits among those that the user allows.

    It is the sweep's metric on inner folds where the sweep has any.  There the method comes first:
    the one that is best at the settings selected in each split, as tables rank methods.  Without
    inner folds it is the metric on the test parts, or on the unlabelled parts if there are no test
    parts; settings that are no better than a constant prediction take part only if all are.
    Settings with runs that are not complete take part only if no other has all, and then those with
    the most.  Of equal settings the first counts.
    """
    tree, wanted = open_results(results), settings or {}
    nodes = _nodes_at(method_nodes(tree), (dataset, bank, method), results)
    metric = metric_of(nodes[0].attrs)
    tested = [node.ds[metric.variable()] for node in nodes if metric.variable() in node.ds]
    scored = "test" if any(one.notnull().any() for one in tested) else "unlabelled"
    part = "validation" if is_validated(tree) else scored
    names = metric.variable(part), metric.variable(scored)
    shown = [METRICS[name] for name in BESIDE[metric.task] if name != metric.name]
    others = [one.variable(scored) for one in shown]
    methods = [(settings_of(node), _runs(node, *names, *others)) for node in nodes]
    varied = {name for own, _ in methods for name in own}
    _check_names(wanted, varied, [str(node.name) for node in nodes])
    able = [(own, runs) for own, runs in methods if wanted.keys() & varied <= {*own}]
    for own, runs in able:
        if not {*own} <= wanted.keys():
            _check_comparable(own, runs, metric, part, nodes[0].sizes[SPLIT], results)
    every = [one for own, runs in able for one in _settings(own, runs, *names, others)]
    run = {n: v for n, v in wanted.items() if any((n, v) in one.settings.items() for one in every)}
    found = [one for one in every if one.run_ids and run.items() <= one.settings.items()]
    if not found:
        raise _nothing(able or methods, run or wanted, results)
    most = max(len(one.run_ids) for one in found)
    whole = [one for one in found if not one.missing]
    whole = whole or [one for one in found if len(one.run_ids) == most]

    of_methods = _selected_losses(able, run, metric, names[0]) if part == "validation" else {}

    def order(one: Choice) -> tuple[bool, bool, float, float]:
        beaten = part != "validation" and one.standing is not None and one.standing.no_better
        of_method = of_methods.get((one.bank, one.method), 0.0)
        return beaten, np.isnan(one.score), of_method, metric.loss(one.score)

    best = min(whole, key=order)
    changed = {name: value for name, value in wanted.items() if best.settings.get(name) != value}
    unchanged = {name: value for name, value in best.settings.items() if name not in changed}
    said = _said(best, len(found), sum(one.missing > 0 for one in found), metric, part)
    if changed:
        best = replace(best, standing=None, beside=())
        said = f"as asked; the results have no run of {', '.join(_listed(changed))}, "
        said += "so the error of this setting is unknown"
    states = [state for _, runs in methods for state in runs[STATE.name]]
    waiting = states.count(RunState.WAITING.value)
    note = f"{waiting} of {pluralize(len(states), 'run')} {'is' if waiting == 1 else 'are'} waiting"
    note = f"{note}; resume the sweep first" if waiting else ""
    return replace(best, settings=unchanged, changed=changed, said=said, note=note)


def _nodes_at(
    nodes: Sequence[xr.DataTree], place: Sequence[str | None], results: Path
) -> Sequence[xr.DataTree]:
    """Return the nodes of the data set, bank and method that are asked for; refuse several data."""
    if not nodes:
        raise InputError(str(results), "results without runs", "a sweep with runs")
    for key, name in zip(PLACE, place, strict=True):
        known = list(dict.fromkeys(place_of(node)[key] for node in nodes))
        if name is not None and name not in known:
            hint = nearest(name, known)
            raise InputError(f"--{key} {name}", "nothing of this name", " or ".join(known), hint)
        if name is not None:
            nodes = [node for node in nodes if place_of(node)[key] == name]
        elif key == "dataset" and len(known) > 1:
            found = f"{len(known)} data sets: {', '.join(known)}"
            hint = f"Choose it: --dataset {known[0]}"
            raise InputError(str(results), found, "one, for a model is of one data set", hint)
    return nodes


def _runs(node: xr.DataTree, *scores: str) -> pd.DataFrame:
    """Return the runs of a node, one of each setting and split; with halving, of the last rung."""
    names = dict.fromkeys((RUN_ID.name, STATE.name, *scores))
    runs, dims = to_frame(node, [*names]), hyperparameters(node)
    ids = node[RUN_ID.name].transpose(SPLIT, *dims).to_numpy().ravel()
    for name in (one for one in scores if is_pooled(node, one)):
        values = complete_values(node, name, (SPLIT, *dims)).ravel()
        runs[name] = runs[RUN_ID.name].map(dict(zip(ids, values, strict=True)))
    for rungs in {*dims} - {TRIAL} if TRIAL in dims else ():
        runs = runs[runs[rungs] == node[rungs].to_numpy()[-1]]
    runs = runs.drop_duplicates([SPLIT, *settings_of(node)])  # trials of equal values
    return runs.assign(**{name: np.nan for name in scores if name not in runs})


def _selected_losses(
    methods: Sequence[tuple[Sequence[str], pd.DataFrame]],
    allowed: Mapping[str, Any],
    metric: Metric,
    score: str,
) -> dict[tuple[str, str], float]:
    """Return the loss of each bank and method at the best allowed setting of every split."""
    found: dict[tuple[str, str], float] = {}
    for names, runs in methods:
        for name in allowed.keys() & {*names}:
            runs = runs[runs[name] == allowed[name]]
        losses = runs.assign(loss=metric.loss(runs[score].astype(float)))
        for (bank, method), own in losses.groupby(["bank", "method"], sort=False, dropna=False):
            found[str(bank), str(method)] = float(own.groupby(SPLIT)["loss"].min().mean())
    return found


def _settings(
    names: Sequence[str], runs: pd.DataFrame, score: str, scored: str, others: Sequence[str]
) -> Iterator[Choice]:
    """Yield the settings of a node in the order of their first runs."""
    for _, own in runs.groupby([*PLACE, *names], sort=False, dropna=False):
        done = own[own[STATE.name] == RunState.COMPLETE.value]
        mean = float(done[score].to_numpy().mean()) if len(done) else np.nan
        splits = {str(name): done[name].to_numpy() for name in done.columns}
        standing, beside = None, []
        if "constant_score" in splits:
            constant = {"constant_score": splits.pop("constant_score")}
            standing = _standing(scored, splits | constant)
            beside = [one for name in others if (one := _standing(name, splits))]
        [first] = own.head(1).to_dict("records")
        dataset, bank, method, *values = (first[name] for name in [*PLACE, *names])
        yield Choice(
            dataset, bank, method, dict(zip(names, values, strict=True)), {},
            tuple(done[RUN_ID.name]), mean, "", standing, missing=len(own) - len(done),
            beside=tuple(beside),
        )  # fmt: skip


def _standing(name: str, splits: Mapping[str, Array]) -> Standing | None:
    """Return the standing of a variable of scores; None if it has no values."""
    values = splits[name].astype(float)
    return Standing.of(values, metric_of_variable(name), splits, part_of_variable(name))


def _check_names(wanted: Mapping[str, Any], varied: set[str], methods: Sequence[str]) -> None:
    """Refuse several methods if a parameter is asked for that none of them varied."""
    others, methods = [name for name in wanted if name not in varied], [*dict.fromkeys(methods)]
    if others and len(methods) > 1:
        known = sorted(varied)
        found = f"a parameter that no method of {', '.join(methods)} varied"
        expected = f"one of {', '.join(known)}" if known else "no parameter"
        hint = nearest(others[0], known) or "Choose a method by --method to change its parameters"
        raise InputError(f"--set {others[0]}", found, expected, hint)


def _check_comparable(
    names: Sequence[str],
    runs: pd.DataFrame,
    metric: Metric,
    part: str,
    n_splits: int,
    results: Path,
) -> None:
    """Refuse to compare the settings of a search that not all splits ran."""
    n_settings = len(runs.groupby([*PLACE, *names], dropna=False))
    losses = metric.loss(runs[metric.variable(part)].astype(float))
    if len(runs) == n_settings * n_splits or losses.isna().all():
        return
    [best] = runs.loc[[losses.idxmin()]].to_dict("records")
    method, split = best["method"], best[SPLIT]
    values = " ".join(f"--set {name}={_spelled(best[name])}" for name in names)
    found = f"a search that tried other settings of {method} on each split, so that no mean over "
    found += "the splits compares them"
    hint = f"Give one: --method {method} {values} is the best of split {split}; "
    hint += "mkldist.selected(tree) has the best of each"
    raise InputError(str(results), found, "one setting, or another method", hint)


def _nothing(
    methods: Sequence[tuple[Sequence[str], pd.DataFrame]], wanted: Mapping[str, Any], results: Path
) -> InputError:
    """Return the error of results in which no setting can be chosen."""
    if not wanted:
        hint = "Run or resume the sweep first"
        return InputError(str(results), "no complete run", "a complete run", hint)
    ran = {name: runs[name].unique().tolist() for names, runs in methods for name in names}
    values = "; ".join(f"{name} = {', '.join(map(_spelled, own))}" for name, own in ran.items())
    where = f"--set {', '.join(_listed(wanted))}"
    return InputError(where, "no complete run of this setting", f"one of {values}")


def _said(best: Choice, n_settings: int, n_partial: int, metric: Metric, part: str) -> str:
    """Return how a setting was chosen, in words."""
    if n_settings == 1 or np.isnan(best.score):
        return "the only setting" if n_settings == 1 else "the first setting: none has a score"
    splits = len(best.run_ids)
    over = f", mean of {splits} splits" if splits > 1 else ""
    said = f"the best of {n_settings} settings {BY_PART[part]} "
    said += f"({metric.words} {metric.text(best.score)}{over})"
    if not n_partial:
        return said
    if not best.missing:
        partial = f"{pluralize(n_partial, 'setting')} with runs that are not complete"
        return f"{said}; {partial} {'was' if n_partial == 1 else 'were'} left out"
    some = "all" if n_partial == n_settings else "some"
    return f"{said}; {some} have runs that are not complete, so that it may change"


def _listed(settings: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_spelled(value)}" for name, value in settings.items()]


def _spelled(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class FittedFrom:
    """Data and settings of a chosen run, from the output folder of its sweep."""

    spec: SweepSpec
    entry: DatasetSpec
    dataset: Dataset
    splits: tuple[Split, ...]
    """Without those that repeat others with fewer training rows for a search."""
    record: RunRecord

    @property
    def preprocessing(self) -> PreprocessingSpec:
        """Preprocessing of the data set."""
        return self.spec.preprocessing_of(self.entry)

    @property
    def bank(self) -> BankSpec:
        """Bank of the setting."""
        found = next(bank for bank in self.spec.sized_banks if bank.label == self.record.bank)
        thin = any(one.name in self.record.extra for one in ON_FACTORS)
        return found.on_factors if thin else found


def source_of(results: Path, run_id: str) -> FittedFrom:
    """Read the sweep, one of its runs, and the data that the run was made on."""
    folder = OutputFolder(results)
    spec = SweepSpec.model_validate_json(read_layout(results).attributes["spec"])
    record = Journal(folder.records).read(run_id)
    if record is None:
        place = str(folder.records)
        hint = "Repeat the sweep's command, which runs what is missing"
        raise StoreError(place, f"no record of run {run_id}", "the records of the sweep", hint)
    entry = next(entry for entry in spec.sized_datasets if entry.name == record.dataset)
    dataset, splits = _snapshot(folder.snapshots, record)
    if dataset.grams is not None:
        expected = "features, of which kernels between new rows and support vectors are computed"
        hint = "In Python, mkldist.solve on KernelBank.from_grams(K) predicts from cross blocks "
        hint += "(M, n_new, n): solution.decision_function(bank.on(cross))"
        raise DataError(f"data set {dataset.name!r}", "precomputed Gram matrices", expected, hint)
    return FittedFrom(spec, entry, dataset, splits, record)


def _snapshot(folder: Path, record: RunRecord) -> tuple[Dataset, tuple[Split, ...]]:
    """Return the data set and the splits that a run was made on."""
    origin, damaged = record.provenance, None
    for path in sorted(folder.glob(f"*/{HEADER}")):
        try:
            is_named = snapshot_header(path.parent).get("name") == record.dataset
        except StoreError as error:
            damaged = error  # another one may be that of the run
            continue
        if not is_named:
            continue
        dataset, splits = load_snapshot(path.parent)
        split = splits[record.split].fingerprint if record.split < len(splits) else ""
        found = dataset.fingerprint, split
        if found == (origin.get("data_fingerprint"), origin.get("split_fingerprint")):
            return dataset, splits
    raise damaged or StoreError(
        str(folder),
        f"no copy of the data of {record.dataset!r}",
        "the snapshot that the sweep wrote",
        "Repeat the sweep's command, or repeat the sweep in another folder",
    )


def with_anchors(
    dataset: Dataset, fitted: Ints, functions: Sequence[Expansion]
) -> tuple[GivenRows | None, tuple[Expansion, ...]]:
    """Return the rows that kernel values are needed with, and functions whose `rows` are these.

    `functions` are expansions over the rows `fitted` (n,) of the data set.  The rows are None for a
    data set without views of Gram matrices.
    """
    if not dataset.given:
        return None, tuple(functions)
    used = [function.rows for function in functions if function.rows is not None]
    anchors = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *used]))
    names = fitted if dataset.ids is None else dataset.ids[fitted]
    views = {
        name: GivenView(len(one.grams), tuple(one.present[fitted[anchors]].tolist()), one.missing)
        for name, one in dataset.given.items()
    }
    given = GivenRows(tuple(map(str, names.tolist())), tuple(anchors.tolist()), views)
    return given, tuple(
        function
        if function.rows is None
        else replace(function, rows=np.searchsorted(anchors, function.rows))
        for function in functions
    )


Prepared = tuple[FittedFrom, RunPlan]
"""The data and the run of a fit."""


def refit(
    results: Path, choice: Choice, split: int | None = None, prepared: Prepared | None = None
) -> Model:
    """Fit a chosen setting on all rows of its data set.

    The data are those that the sweep kept in its output folder, so that a model is of the same data
    as the results.  All labels count, those that the splits of a sweep of few labels hid among
    them.
    """
    source, run = prepared or prepared_fit(results, choice)
    inputs = inputs_of(source, rows_to_fit(source, split))
    if inputs.cosine and inputs.kernels is not None and inputs.kernels.given:
        place = f"bank {source.bank.label!r}"
        expected = "another one: k(x, x) of new rows is not known"
        hint = 'Divide k(x, z) by the root of k(x, x) k(z, z) before, and use "trace"'
        raise InputError(place, 'normalisation "cosine" of Gram matrices of a view', expected, hint)
    for view in source.entry.views:
        if view.indefinite in ("clip", "flip"):
            raise InputError(
                f"view {view.name!r}",
                f'indefinite = "{view.indefinite}", which changes kernel values of new rows too',
                'matrices without it, or indefinite = "shift", which changes diagonals alone',
                "Or score the new rows in the sweep, with one matrix of all rows",
            )
    found: list[tuple[Solution, Expansion]] = []

    def on_ended(ended: Fitted | FailedFit) -> None:
        if isinstance(ended, FailedFit):
            raise ended.error
        for subproblem, one in ended.on_all_rows.items():
            found.append((one.solution, inputs.expansion(subproblem.training_view, one)))

    with threads_for(len(inputs.splits[0].known)), opened(inputs, source.bank) as bank:
        fit(bank, inputs, [run], on_ended, scored=False)
    solutions, functions = zip(*found, strict=True)
    return _model(source, inputs, solutions, functions, choice, run, split)


def prepared_fit(results: Path, choice: Choice, *, allow_code: bool = False) -> Prepared:
    """Return the data and the run of a fit of :func:`refit`, with its parameters checked.

    Kernel functions that are not mkldist's are imported if `allow_code` says so, the folder of the
    sweep file searched first; otherwise a SpecError refuses them, as an InputError does parameters
    that the method does not take.
    """
    source = source_of(results, choice.run_ids[0])
    file = restored_manifest(results).file
    used = source.spec.model_copy(update={"banks": (source.bank,)})
    check_code(used, results if file is None else file.parent, allowed=allow_code)
    _check_one_C(source, choice)
    method = METHODS[source.record.method]
    settings = {**source.record.params, **choice.changed}
    check_allowed(code_of_settings(choice.method, settings), allowed=allow_code)
    params = validate(method.params, choice.method, settings)
    return source, run_of(source, plain_settings(params))


def _check_one_C(source: FittedFrom, choice: Choice) -> None:
    """Refuse a C that another method gave on each split, unless the user gives one."""
    entry = _entry(source)
    given = entry.settings_on(source.entry.series).get(LINKED)
    if is_from_method(given) and LINKED not in choice.changed:
        found = f"a method whose C comes from {given[FROM]} on each split"
        hint = f"Give it: --method {choice.method} --set C=... ; or fit {given[FROM]}"
        raise InputError(f"--method {choice.method}", found, "one value of C", hint)


def _entry(source: FittedFrom) -> MethodSpec:
    """Return the method's entry in the sweep file."""
    return next(method for method in source.spec.methods if method.key == source.record.key)


def rows_to_fit(source: FittedFrom, split: int | None) -> Split:
    """Return the rows to fit on as the training part of a split."""
    if split is None:
        has, labelled = source.dataset.weighing, source.dataset.labelled
        none = np.zeros(0, dtype=np.intp)
        return Split(np.flatnonzero(has & labelled), none, np.flatnonzero(has & ~labelled))
    if not 0 <= split < len(source.splits):
        last = len(source.splits) - 1
        raise InputError(f"--split {split}", "no such split", f"a number from 0 to {last}")
    return source.splits[split]


def run_of(source: FittedFrom, params: dict[str, Any]) -> RunPlan:
    """Return the run that fits the setting, apart from the plan of the sweep."""
    spec, record = source.spec, source.record
    entry = _entry(source)
    graph = spec.graph_of(source.entry) if METHODS[record.method].needs_laplacian else None
    shared = entry.kernel_weights == "shared" and bool(source.dataset.multiclass)
    return RunPlan(
        "", record.dataset, "", record.bank, 0, record.method, record.key, params,
        graph=graph, shared_weights=shared, class_weight=source.entry.class_weight,
    )  # fmt: skip


def inputs_of(source: FittedFrom, divided: Split) -> BankInputs:
    """Return points and kernels as the sweep has them for a split."""
    fitted_on = None if source.preprocessing.fit == "all" else 0
    bank = source.bank.model_copy(update={"device": CPU})
    seed, dataset = source.spec.seed, source.dataset
    return BankInputs.of(bank, source.preprocessing, dataset, (divided,), fitted_on, seed)


def _model(
    source: FittedFrom,
    inputs: BankInputs,
    solutions: Sequence[Solution],
    functions: Sequence[Expansion],
    choice: Choice,
    run: RunPlan,
    split: int | None,
) -> Model:
    """Return the model of solutions, with the facts of its origin."""
    dataset, rows = source.dataset, inputs.splits[0]
    [subproblem, *_] = subproblems_of(inputs, run)
    fitted_rows = inputs.training_rows(subproblem.training_view)
    weights = tuple(
        solution.kernel_weights[function.index]
        for solution, function in zip(solutions, functions, strict=True)
    )
    given, functions = with_anchors(dataset, fitted_rows, functions)
    columns = dataset.columns or SourceColumns(dataset.feature_names)
    return Model(
        columns,
        dataset.feature_names,
        fitted_preprocessing(source.preprocessing, dataset, source.entry.impute, rows),
        functions,
        weights,
        LabelCoding.of_dataset(dataset, rows.train),
        _facts(source, solutions, choice, run, split) | {"rows": len(rows.known)},
        dataset.views,
        dataset.view_columns,
        given,
        ranges=_ranges(dataset, rows.known),
    ).with_texts(dataset.texts)


def _ranges(dataset: Dataset, rows: Ints) -> Floats | None:
    """Return the least and the greatest value (2, d) of each feature in some rows."""
    if dataset.x is None:
        return None
    x = dataset.x[rows]
    return np.stack([np.fmin.reduce(x), np.fmax.reduce(x)])


def _facts(
    source: FittedFrom,
    solutions: Sequence[Solution],
    choice: Choice,
    run: RunPlan,
    split: int | None,
) -> dict[str, Any]:
    """Return the origin of a model, JSON-serialisable."""
    objective = float(sum(solution.objective for solution in solutions))
    bound = float(sum(solution.dual_objective for solution in solutions))
    reasons = [str(solution.stop_reason) for solution in solutions]
    early = [reason for reason in reasons if reason != StopReason.CONVERGED]
    machine = environment()
    return {
        "sweep": source.spec.name,
        "dataset": source.dataset.name,
        "origin": source.dataset.origin,
        "data_fingerprint": source.dataset.fingerprint,
        "split": split,
        "bank": run.bank_label,
        "normalisation": list(source.bank.normalisations),
        "method": choice.method,
        "params": run.params,
        **({} if run.class_weight is None else {"class_weight": run.class_weight}),
        "chosen": choice.said,
        **({} if choice.standing is None else {"standing": choice.standing.as_dict()}),
        "objective": objective,
        "dual_objective": bound,
        **proximity_of(solutions),
        **exact_proximity_of(solutions),
        "stop_reason": (early or reasons)[0],
        "versions": machine["versions"],
        "python": machine["python"],
    }


def calibrated(model: Model, prepared: Prepared, method: str, split: int | None = None) -> Model:
    """Return a model with probabilities, and the predictions that are best by the sweep's metric.

    The setting is fitted on all folds but one in turn, with preprocessing of its own; each class
    is divided in proportion, or the groups of a grouped data set stay together.  The calibration is
    fitted to the decision values of the held-out rows of all folds.
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

    The rows (n,) are all labelled ones, or the training rows of the split; the values are (n, 1),
    or (n, k) of several classes.
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
