"""The fit of a setting on all rows of a data set, or on the training part of one split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Ints
from mkldist.blas_threads import threads_for
from mkldist.data.dataset import Dataset, Split
from mkldist.data.preprocessing import fitted_preprocessing
from mkldist.data.snapshot import HEADER, load_snapshot, snapshot_header
from mkldist.data.source_columns import SourceColumns
from mkldist.devices import CPU
from mkldist.errors import DataError, InputError, StoreError
from mkldist.fit.decision import Expansion
from mkldist.fit.engine import FailedFit, Fitted, fit, opened
from mkldist.fit.model import LabelCoding, Model
from mkldist.fit.new_rows import GivenRows, GivenView
from mkldist.fit.problem import BankInputs, subproblems_of
from mkldist.fit.select import Choice
from mkldist.methods.registry import METHODS
from mkldist.planning.model import RunPlan
from mkldist.resolve.code_check import check_allowed, check_code, code_of_settings
from mkldist.resolve.search_check import n_asked
from mkldist.results.manifest import restored_manifest
from mkldist.results.output import OutputFolder
from mkldist.results.provenance import environment
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.schema import ON_FACTORS
from mkldist.results.tree import current
from mkldist.results.zarr_documents import read_root
from mkldist.solvers.base import Solution
from mkldist.solvers.outcome import StopReason
from mkldist.solvers.proximity import exact_proximity_of, proximity_of
from mkldist.solvers.settings import plain_settings
from mkldist.solvers.validation import validate
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from mkldist.spec.model import MethodSpec, SweepSpec
from mkldist.spec.source import FROM, GIVEN, is_from_method


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
    """Read the sweep, one of its runs, and the data that the run was made on.

    Raises
    ------
    mkldist.errors.StoreError
        If the folder lacks the record or the data.
    mkldist.errors.DataError
        For a data set of Gram matrices alone, which knows nothing of new rows.
    """
    folder = OutputFolder(results)
    spec = SweepSpec.model_validate_json(read_root(current(results))["attributes"]["spec"])
    record = RecordStore(folder.records).read(run_id)
    if record is None:
        raise StoreError(
            str(folder.records),
            f"no record of run {run_id}",
            "the records of the sweep",
            "Repeat the sweep's command, which runs what is missing",
        )
    entry = next(entry for entry in spec.sized_datasets if entry.name == record.dataset)
    dataset, splits = _snapshot(folder.snapshots, record)
    if dataset.grams is not None:
        raise DataError(
            f"data set {dataset.name!r}",
            "precomputed Gram matrices",
            "features, of which kernels between new rows and support vectors are computed",
            "In Python, mkldist.solve on KernelBank.from_grams(K) predicts from cross blocks "
            "(M, n_new, n): solution.decision_function(bank.on(cross))",
        )
    return FittedFrom(spec, entry, dataset, splits[: n_asked(len(splits), spec.search)], record)


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
        "Run 'mkldist verify RESULTS --repair', or repeat the sweep in another folder",
    )


def with_anchors(
    dataset: Dataset, fitted: Ints, functions: Sequence[Expansion]
) -> tuple[GivenRows | None, tuple[Expansion, ...]]:
    """Return the rows that kernel values are needed with, and functions whose rows are these.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    fitted : (n,) intp
        Its rows that the functions are expansions over.
    functions : sequence of Expansion
        The functions, whose `rows` are places among these.

    Returns
    -------
    GivenRows or None, and tuple of Expansion
        None for a data set without views of Gram matrices.
    """
    if not dataset.given:
        return None, tuple(functions)
    used = [function.rows for function in functions if function.rows is not None]
    anchors = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *used]))
    names = fitted if dataset.ids is None else dataset.ids[fitted]
    views = {
        name: GivenView(len(one.grams), one.present[fitted[anchors]], one.missing)
        for name, one in dataset.given.items()
    }
    given = GivenRows(tuple(str(name) for name in names.tolist()), anchors, views)
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

    Parameters
    ----------
    results : Path
        Output folder of the sweep.
    choice : Choice
        The setting.
    split : int, optional
        Fit on the training part of this split instead, and on its unlabelled part if the method
        learns from that: the model then predicts as the sweep did.
    prepared : tuple of FittedFrom and RunPlan, optional
        The answer of :func:`prepared_fit`, where it has been called.

    Raises
    ------
    mkldist.errors.InputError
        For parameters that the method does not take, and for cosines of Gram matrices of a view.
    mkldist.errors.DataError
        For a data set of Gram matrices alone.
    mkldist.errors.StoreError
        If the folder lacks what the sweep kept.
    """
    source, run = prepared or prepared_fit(results, choice)
    inputs = inputs_of(source, _divided(source, split))
    if inputs.cosine and inputs.kernels is not None and inputs.kernels.given:
        raise InputError(
            f"bank {source.bank.label!r}",
            'normalisation "cosine" of Gram matrices of a view',
            "another one: k(x, x) of new rows is not known",
            'Divide k(x, z) by the root of k(x, x) k(z, z) before, and use "trace"',
        )
    found: list[tuple[Solution, Expansion]] = []

    def on_ended(ended: Fitted | FailedFit) -> None:
        if isinstance(ended, FailedFit):
            raise ended.error
        for subproblem, one in ended.on_all_rows.items():
            found.append((one.solution, inputs.expansion(subproblem.training_view, one)))

    with threads_for(len(inputs.splits[0].known)), opened(inputs, source.bank) as bank:
        fit(bank, inputs, [run], on_ended)
    solutions, functions = zip(*found, strict=True)
    return _model(source, inputs, solutions, functions, choice, run, split)


def prepared_fit(results: Path, choice: Choice, *, allow_code: bool = False) -> Prepared:
    """Return the data and the run of a fit, with its parameters checked.

    Parameters
    ----------
    results, choice
        As for :func:`refit`.
    allow_code : bool
        True to import kernel functions that are not mkldist's; the folder of the sweep file is
        searched first.

    Raises
    ------
    mkldist.errors.InputError
        For parameters that the method does not take.
    mkldist.errors.SpecError
        For such functions without `allow_code`.
    mkldist.errors.StoreError
        If the folder lacks what the sweep kept.
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
    return source, _run(source, plain_settings(params))


def _check_one_C(source: FittedFrom, choice: Choice) -> None:
    """Refuse a C that another method gave on each split, unless the user gives one."""
    entry = _entry(source)
    given = entry.settings_on(source.entry.series).get(GIVEN)
    if is_from_method(given) and GIVEN not in choice.changed:
        raise InputError(
            f"--method {choice.method}",
            f"a method whose C comes from {given[FROM]} on each split",
            "one value of C",
            f"Give it: --method {choice.method} --set C=... ; or fit {given[FROM]}",
        )


def _entry(source: FittedFrom) -> MethodSpec:
    """Return the method's entry in the sweep file."""
    return next(method for method in source.spec.methods if method.key == source.record.key)


def _divided(source: FittedFrom, split: int | None) -> Split:
    """Return the rows to fit on as the training part of a split."""
    if split is None:
        return Split(np.arange(source.dataset.n_points), np.zeros(0, dtype=np.intp))
    if not 0 <= split < len(source.splits):
        last = len(source.splits) - 1
        raise InputError(f"--split {split}", "no such split", f"a number from 0 to {last}")
    return source.splits[split]


def _run(source: FittedFrom, params: dict[str, Any]) -> RunPlan:
    """Return the run that fits the setting, apart from the plan of the sweep."""
    spec, record = source.spec, source.record
    entry = _entry(source)
    graph = spec.graph_of(source.entry) if METHODS[record.method].needs_laplacian else None
    shared = entry.kernel_weights == "shared" and bool(source.dataset.multiclass)
    return RunPlan(
        "", record.dataset, "", record.bank, 0, record.method, record.key, params,
        graph=graph, shared_weights=shared,
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
    numbers = np.zeros(0, dtype=np.intp)
    if dataset.classes is not None:
        numbers = dataset.class_numbers[rows.train]
    weights = tuple(
        solution.kernel_weights[function.index]
        for solution, function in zip(solutions, functions, strict=True)
    )
    given, functions = with_anchors(dataset, fitted_rows, functions)
    columns = dataset.columns or SourceColumns.of_features(dataset.feature_names)
    return Model(
        columns,
        dataset.feature_names,
        fitted_preprocessing(source.preprocessing, dataset, source.entry.impute, rows),
        functions,
        weights,
        LabelCoding.of_dataset(dataset, numbers),
        _facts(source, solutions, choice, run, split) | {"rows": len(rows.known)},
        dataset.views,
        dataset.view_columns,
        given,
    ).with_texts(dataset.texts)


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
        "chosen": choice.said,
        "objective": objective,
        "dual_objective": bound,
        **proximity_of(solutions),
        **exact_proximity_of(solutions),
        "stop_reason": (early or reasons)[0],
        "versions": machine["versions"],
        "python": machine["python"],
    }
