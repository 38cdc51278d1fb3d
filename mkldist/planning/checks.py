"""Checks of a sweep before its first run: first those that read no data, then those of its data.

A method says itself what it refuses (:meth:`mkldist.solvers.base.Method.refuses`).  The checks
state the facts of the sweep file and of the data, ask, and name the place of the mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.bank.bank_kernels import BankKernels
from mkldist.bank.view import check_uncentred
from mkldist.core.arrays import Target
from mkldist.core.devices import CPU
from mkldist.core.memory import readable_bytes
from mkldist.core.metrics import default_metric, metrics_of
from mkldist.core.wording import pluralize
from mkldist.data.dataset import Dataset, Split
from mkldist.data.preprocessing import graph_points, preprocessed
from mkldist.errors import SpecError, nearest
from mkldist.kernel_functions.custom import search_first
from mkldist.kernels.evaluate import check_custom, check_points, check_scale
from mkldist.kernels.graph import adjacency
from mkldist.kernels.kernel_list import KernelList
from mkldist.methods.registry import METHODS, methods_for
from mkldist.planning.model import BankFacts, DatasetFacts
from mkldist.planning.planner import memory_of, most_points_of
from mkldist.solvers.base import Part, ProblemFacts, losses_by_target, one_of
from mkldist.solvers.grids import ENTRY_KEYS, MethodGrid, expand, searched, taking_C
from mkldist.solvers.solver_params import HingeParams
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.datasets import DatasetSpec, GraphTable, PreprocessingSpec
from mkldist.spec.kinds import LINKED, TRIAL, check_fits, spelled
from mkldist.spec.model import (
    FROM,
    MethodSpec,
    SearchSpec,
    SweepSpec,
    is_distribution,
    is_from_method,
)


def _check_known(
    where: str, what: str, name: str, known: Collection[str], expected: str = "one of"
) -> None:
    """Refuse a name that is none of those known."""
    if name not in known:
        words = f"{expected} {', '.join(known)}"
        raise SpecError(where, f"the unknown {what} {name!r}", words, nearest(name, known))


def check_code(spec: SweepSpec, folder: Path, *, allowed: bool) -> str:
    """Let the user's functions be imported from the folder of a sweep file, if that is allowed.

    Returns the folder, absolute; an empty text if the sweep has no such function.
    """
    functions = ((f"{place}.function", function) for place, function in code_of(spec))
    found = [*functions, *_code_of_methods(spec)]
    check_allowed(found, allowed=allowed)
    if not found:
        return ""
    search_first(str(folder.absolute()))
    return str(folder.absolute())


def check_allowed(code: Iterable[tuple[str, str]], *, allowed: bool) -> None:
    """Refuse the first of some places and names of code, unless code is allowed."""
    for place, function in code:
        if not allowed:
            raise SpecError(
                place,
                f"{function!r}, code that would run on this machine and on all workers",
                "what mkldist has, or --allow-code",
                "Repeat the command with --allow-code if you trust this code",
            )


def code_of(spec: SweepSpec) -> Iterator[tuple[str, str]]:
    """Yield place and name of every kernel function that a sweep would import."""
    for bank in spec.banks:
        for number, function in bank.imported.items():
            yield f"banks.{bank.label}.kernels[{number}]", function


def _code_of_methods(spec: SweepSpec) -> Iterator[tuple[str, str]]:
    """Yield place and name of all that regularisers of a sweep would import, but those at hand."""
    for entry in spec.methods:
        for settings in (entry.settings, *entry.on.values()):
            yield from code_of_settings(f"methods.{entry.key}", settings)


def code_of_settings(where: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield place and name of all that parameters of a method would import."""
    for parameter, given in settings.items():
        for value in given if isinstance(given, list) else [given]:
            if isinstance(value, str):
                from mkldist.methods.components import imported_by  # of such values alone

                yield from ((f"{where}.{parameter}", name) for name in imported_by(value))


def code_lines(spec: SweepSpec) -> Iterator[str]:
    """Yield a line on each function whose code a sweep runs."""
    found = (*code_of(spec), *_code_of_methods(spec))
    for function in dict.fromkeys(function for _, function in found):
        yield f"runs code that is not mkldist's: {function}"


LOOSEST = 0.3  # tolerance of the first rung by default
DIGITS = 3  # of a level between the first and the last
EXAMPLE_RANGE = '{ low = 0.01, high = 1000, scale = "log" }'


def check_search(spec: SweepSpec) -> None:
    """Refuse a search that cannot be done, and distributions without a search."""
    places = [
        f"{where}.{name}"
        for entry in spec.methods
        for where, settings in (
            (f"methods.{entry.key}", entry.settings),
            *((f"methods.{entry.key}.on.{name}", own) for name, own in entry.on.items()),
        )
        for name, value in settings.items()
        if is_distribution(value)
    ]
    if spec.search is None:
        if places:
            raise SpecError(
                places[0],
                "a distribution without [search]",
                "a value, a list or a series such as { start = 1, stop = 100, num = 3 }",
                'Add [search] with kind = "random" and trials, and [selection]',
            )
        return
    if not places:
        raise SpecError(
            "search",
            "no parameter with a distribution",
            f"a method with one, such as C = {EXAMPLE_RANGE}",
            "Remove [search] to run all settings of the lists",
        )
    if spec.inner_folds is None:
        raise SpecError(
            "search",
            "[search] without inner folds",
            "[selection], whose inner folds give the scores that a search compares; "
            "test labels never do",
            "Add [selection]; an empty one has 5 folds",
        )


def _with_dims(grid: MethodGrid, search: SearchSpec, where: str) -> MethodGrid:
    """Return the space of a method with the dims that its trials have in the results."""
    dims: dict[str, list[object]] = {TRIAL: list(range(search.trials))}
    if search.kind == "halving":
        if grid.space is not None and "tol" in grid.space.names:
            raise SpecError(
                f"{where}.tol",
                "several tolerances, which the rungs of [search] vary too",
                "one, that of the last rung",
            )
        first, last = search.first or LOOSEST, grid.points[0].tol
        if first <= last:
            raise SpecError(
                "search.first",
                f"{first:g}" if search.first else f"{first:g} by default",
                f"a tolerance above {last:g}, that of {where}",
                "Set first, or a smaller tol",
            )
        levels = np.geomspace(first, last, search.rungs)[:-1]
        dims["tol"] = [*(float(f"{level:.{DIGITS}g}") for level in levels), last]
    return replace(grid, dims=dims)


EXAMPLE_SOURCE = '{ from = "spicymkl" }'
GIVER = 'spicymkl with loss = "hinge" and regularizer = "block1"'


def _check_source_of_C(where: str, entry: MethodSpec, settings: Mapping[str, Any]) -> None:
    """Refuse values from another method where they cannot stand."""
    for name, value in settings.items():
        if is_from_method(value) and name != LINKED:
            raise SpecError(
                f"{where}.{name}", spelled(value), "a value", f"Another method may give {LINKED}"
            )
    value, place = settings.get(LINKED), f"{where}.{LINKED}"
    if not is_from_method(value):
        for key in value if isinstance(value, dict) else ():
            if hint := nearest(key, [FROM]):
                raise SpecError(place, spelled(value), f"a table such as {EXAMPLE_SOURCE}", hint)
        return
    if not issubclass(METHODS[entry.name].params, HingeParams):
        able = [name for name, method in METHODS.items() if issubclass(method.params, HingeParams)]
        raise SpecError(
            place,
            f"{spelled(value)} for {entry.name}",
            f"a method whose C weighs the hinge loss: {', '.join(able)}",
        )
    if value.keys() != {FROM} or not isinstance(value[FROM], str):
        raise SpecError(place, spelled(value), f"a table such as {EXAMPLE_SOURCE}")
    if any(map(is_distribution, settings.values())):
        raise SpecError(
            place,
            f"{spelled(value)} beside a distribution",
            "values or lists for the other parameters",
        )


def _source_entry(
    spec: SweepSpec, entry: MethodSpec, dataset: str, where: str, key: str
) -> MethodSpec:
    """Return the entry of the method that gives another its C."""
    others = {method.key: method for method in spec.methods if method is not entry}
    if key == entry.key:
        raise SpecError(where, "its own method", f"another of [[methods]]: {', '.join(others)}")
    _check_known(where, "method", key, others, "another of [[methods]]:")
    if is_from_method(others[key].settings_on(dataset).get(LINKED)):
        raise SpecError(
            where, f"{key}, whose own C comes from a method", "a method with values of C"
        )
    for bank in spec.sized_banks:
        if entry.runs_on(bank) and not others[key].runs_on(bank):
            raise SpecError(
                where,
                f"{key}, which does not run on bank {bank.label!r} as {entry.key} does",
                "a method on the same banks",
                f"Add {bank.label!r} to the banks of {key}, or name the banks of {entry.key}",
            )
    return others[key]


def check_method(spec: SweepSpec, where: str, entry: MethodSpec) -> None:
    """Refuse a method that lacks a graph, or can neither weigh points nor share kernel weights."""
    method = METHODS[entry.name]
    for dataset in spec.datasets:
        has_graph = spec.graph_of(dataset) is not None
        refusal = None if has_graph else method.refuses(ProblemFacts(laplacian=False))
        if refusal is not None:
            raise SpecError(
                f"{where}.name",
                f"{entry.name}, which {refusal.reason}, but data set {dataset.name!r} has none",
                "a table [graph], or graph = {...} under each data set",
                "An empty [graph] joins each point to its 10 nearest neighbours",
            )
        weighted = [key for key in ("class_weight", "weights") if getattr(dataset, key) is not None]
        problem = ProblemFacts(weighted=bool(weighted))
        if (refusal := method.refuses(problem)) is not None:
            raise SpecError(
                f"{where}.name",
                f"{entry.name}, which {refusal.reason}, but data set {dataset.name!r} has "
                f"{weighted[0]}",
                f"{refusal.others}: {one_of(methods_for(problem))}",
                f"Or remove the method, or {weighted[0]}",
            )
    problem = ProblemFacts(shared_weights=entry.kernel_weights == "shared")
    if (refusal := method.refuses(problem)) is not None:
        raise SpecError(
            f"{where}.kernel_weights",
            f'"shared" for {entry.name}, which {refusal.reason}',
            f"{refusal.others}: {one_of(methods_for(problem))}",
            'Or remove it: kernel_weights = "per-class" is for every method',
        )


def check_graph_has_use(spec: SweepSpec) -> None:
    """Refuse graphs in a sweep whose methods all refuse one."""
    problem = ProblemFacts(laplacian=True)
    refusals = [METHODS[entry.name].refuses(problem) for entry in spec.methods]
    given = ["graph"] if spec.graph else []
    given += [f"datasets.{entry.name}.graph" for entry in spec.datasets if entry.graph]
    if given and all(refusals):
        [refusal, *_] = filter(None, refusals)
        raise SpecError(
            given[0],
            "a graph, which no method of this sweep uses",
            f"{refusal.expected}, or {refusal.others}: {one_of(methods_for(problem))}",
            "Remove it, or add such a method",
        )


def check_banks(spec: SweepSpec) -> None:
    """Refuse methods on banks that are not there, and banks on which no method runs."""
    names = list(dict.fromkeys(n for bank in spec.sized_banks for n in (bank.series, bank.label)))
    for entry in spec.methods:
        for name in entry.banks or ():
            _check_known(f"methods.{entry.key}.banks", "bank", name, names, "names of [[banks]]:")
    for bank in spec.sized_banks:
        if not any(entry.runs_on(bank) for entry in spec.methods):
            raise SpecError(
                f"banks.{bank.label}",
                "a bank on which no method runs",
                f"a method without banks, or one whose banks hold {bank.label!r}",
                "Remove it, or add it to the banks of a method",
            )


def resolve_methods(spec: SweepSpec) -> dict[str, dict[str, MethodGrid]]:
    """Return the grid of every method, by data set and the method's key; no data are read.

    Data sets on which a method has no parameters of their own share its grid.
    """
    names = [dataset.name for dataset in spec.datasets]
    for entry in spec.methods:
        _check_names(entry, names)
        check_method(spec, f"methods.{entry.key}", entry)
    grids: dict[str, dict[str, MethodGrid]] = {name: {} for name in names}
    for entry in spec.methods:
        everywhere = _grid(spec, entry)
        for name in names:
            differs = name in entry.on or everywhere.source
            grids[name][entry.key] = _grid(spec, entry, name) if differs else everywhere
    return grids


def _check_names(entry: MethodSpec, datasets: list[str]) -> None:
    """Refuse an unknown method, unknown data sets, and what differs on no single data set."""
    where = f"methods.{entry.key}"
    _check_known(f"{where}.name", "method", entry.name, METHODS)
    for name, own in entry.on.items():
        _check_known(f"{where}.on.{name}", "data set", name, datasets, "names of [[datasets]]:")
        for key in own:
            if key in ("name", *ENTRY_KEYS):
                raise SpecError(
                    f"{where}.on.{name}.{key}",
                    "a key of the whole entry",
                    f"parameters of {entry.name}",
                    f"Move it above, out of on.{name}",
                )


def _grid(spec: SweepSpec, entry: MethodSpec, dataset: str = "") -> MethodGrid:
    """Return the settings of a method on a data set, or those that hold where it has no table."""
    where = f"methods.{entry.key}.on.{dataset}" if dataset in entry.on else f"methods.{entry.key}"
    method, settings = METHODS[entry.name], entry.settings_on(dataset)
    _check_source_of_C(where, entry, settings)
    if is_from_method(given := settings.get(LINKED)):
        place, key = f"{where}.{LINKED}", given[FROM]
        of_source = _grid(spec, _source_entry(spec, entry, dataset, place, key), dataset)
        if of_source.space is not None:
            found = f"{key}, whose settings are searched"
            raise SpecError(place, found, "a method with values of C")
        if not all(point.gives_C for point in of_source.points):
            raise SpecError(place, f"{key}, whose solutions give no C", f"a {GIVER}, by its label")
        return taking_C(method, where, settings, spec.tol, key, of_source)
    if not any(map(is_distribution, settings.values())):
        return expand(method, where, settings, spec.tol)
    space = searched(method, where, settings, spec.tol)
    return _with_dims(space, spec.search, where) if spec.search else space


def check_labels(grids: Mapping[str, MethodGrid], dataset: Dataset) -> None:
    """Refuse methods that cannot learn the labels of a data set."""
    targets = tuple(Target) if dataset.task == "classification" else (Target.VALUES,)
    problem = ProblemFacts(targets=targets)
    for key, grid in grids.items():
        for params in grid.points:
            if (refusal := grid.method.refuses(problem, params.target)) is None:
                continue
            loss = getattr(params, "loss", grid.method.loss)
            losses = losses_by_target(grid.method.params).get(Target.VALUES, [])
            others = methods_for(ProblemFacts(targets=(Target.VALUES,)))
            raise SpecError(
                f"methods.{key}",
                f"{grid.method.name} with loss {loss}, which {refusal.reason}, but data set "
                f"{dataset.name!r} is one of regression",
                "loss = " + one_of([f'"{one}"' for one in losses])
                if losses
                else f"{refusal.others}: {one_of(others)}",
                "Or remove the method or the data set",
            )


def check_two_classes(grids: Mapping[str, MethodGrid], dataset: Dataset) -> None:
    """Refuse a C from another method for more than two classes: each would need its own."""
    for key, grid in grids.items():
        if grid.source and dataset.multiclass:
            raise SpecError(
                f"methods.{key}.{LINKED}",
                f"C from {grid.source} for the {len(dataset.multiclass)} classes of data set "
                f"{dataset.name!r}",
                "a data set of two classes",
                "Name two of them by classes = [...], or give values of C",
            )


def check_metric(spec: SweepSpec, grids: Mapping[str, MethodGrid], dataset: Dataset) -> None:
    """Refuse a metric of another task, and one of probabilities where a method has none."""
    metric = spec.metric_of(dataset.task)
    if metric.task != dataset.task:
        kind = "values of regression" if dataset.task == "regression" else "classes"
        raise SpecError(
            "selection.metric",
            f'"{metric.name}" for {dataset.name!r}, which has {kind}',
            ", ".join(one.name for one in metrics_of(dataset.task)),
            "Data sets of classes and of regression need sweeps of their own if metric is set",
        )
    if not metric.probabilities or spec.inner_folds:
        return
    for key, grid in grids.items():
        if dataset.multiclass or not all(params.gives_log_odds for params in grid.points):
            raise SpecError(
                "selection.metric",
                f'"{metric.name}" without inner folds, which fit the probabilities of {key}',
                "folds of 2 or more, or another metric",
                f'Remove folds = 0, or set metric = "{default_metric(dataset.task).name}"',
            )


def check_unscaled(preprocessing: PreprocessingSpec, entry: DatasetSpec, dataset: Dataset) -> None:
    """Refuse to scale sparse features, but for counts of terms, whose zeros stay zero."""
    if dataset.sparse is None or preprocessing.scale in UNFILLED:
        return
    own = entry.preprocessing is not None
    n_bytes = 8 * dataset.n_points * dataset.n_features
    raise SpecError(
        f"datasets.{entry.name}.preprocessing.scale" if own else "preprocessing.scale",
        f'"{preprocessing.scale}" for the sparse features of {dataset.name!r}, which would take '
        f"{readable_bytes(n_bytes)} as dense ones",
        '"none", or "tfidf" for counts of terms: they leave zeros as they are',
        'Set preprocessing = { scale = "none" } under the data set, or remove sparse = true',
    )


UNFILLED = ("none", "tfidf")


def check_unlabelled(entry: DatasetSpec, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse labels -1, 0 and 1 where 0 may stand for points without a label.

    In a sweep the splits decide which points are unlabelled, and the labels of these points score
    the methods.
    """
    if set(dataset.classes or ()) != {"-1", "0", "1"} or entry.classes:
        return
    if any(len(split.unlabelled) for split in splits):
        raise SpecError(
            f"datasets.{entry.name}",
            "labels -1, 0 and 1, and unlabelled points by [splits]",
            "the label of every point, by which methods are scored on the unlabelled ones",
            'Set classes = ["-1", "0", "1"] if 0 is a class, or classes = ["-1", "1"] to leave '
            "these points out; use mkldist.solve for points whose label is unknown",
        )


def check_folds(grids: Mapping[str, MethodGrid], dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse more folds of a method's own cross-validation than a class has labelled points.

    Only a number that the user gave is refused; a method cuts its default to the data.
    """
    if dataset.task != "classification":
        return
    smallest = min(int(np.bincount(dataset.class_numbers[split.train]).min()) for split in splits)
    facts = ProblemFacts(smallest_class=smallest)
    for key, grid in grids.items():
        for params in grid.points:
            if grid.method.refuses(facts, folds=params.chosen_folds) is not None:
                raise SpecError(
                    f"methods.{key}.folds",
                    f"{params.chosen_folds}",
                    f"at most {smallest}, the labelled points of the smallest class in a training "
                    f"part of {dataset.name!r}",
                    "Lower it, or omit it",
                )


def check_graph(
    spec: SweepSpec,
    entry: DatasetSpec,
    dataset: Dataset,
    splits: Sequence[Split],
    grids: Iterable[MethodGrid],
) -> None:
    """Refuse a graph that a method needs but that the points of a data set cannot form."""
    graph = spec.graph_of(entry)
    if graph is None or not any(grid.method.needs_laplacian for grid in grids):
        return
    where = f"datasets.{entry.name}.graph" if entry.graph else "graph"
    check_joined(graph, dataset, min(len(split.known) for split in splits), where)
    if graph.kind == "epsilon":
        points = graph_points(graph, spec.preprocessing_of(entry), dataset, splits[0])
        if adjacency(points, graph.graph).nnz == 0:
            raise SpecError(
                f"{where}.epsilon",
                f"no two of {len(points)} points of {dataset.name!r} within {graph.epsilon:g}",
                "a distance within which points have neighbours",
                'Raise it, or set kind = "knn"',
            )


def check_joined(graph: GraphTable, dataset: Dataset, n_points: int, where: str) -> None:
    """Refuse a graph that so many points of a data set cannot form, by features and number."""
    if graph.distances is None and (dataset.x is None or dataset.absent is not None):
        found, hint = "points that lack a view", 'Set missing = "impute" for the view'
        if dataset.x is None:
            found = "Gram matrices" if dataset.sparse is None else "sparse features"
            hint = "Give distances = FILE.npy to the graph"
        raise SpecError(
            where,
            f"a graph over {dataset.name!r}, which has {found}",
            "dense features of all points",
            f"{hint}, or remove the graph and the methods that need one",
        )
    if graph.kind == "knn" and graph.neighbours >= n_points:
        raise SpecError(
            f"{where}.neighbours",
            f"{graph.neighbours} neighbours among {n_points} points of {dataset.name!r}",
            f"at most {n_points - 1}",
        )


def check_graph_views(entry: DatasetSpec, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse splits that hide the features of points from methods, which the graphs join."""
    hidden = max((dataset.n_points - len(split.known) for split in splits), default=0)
    for view in entry.views:
        if view.graphs is not None and hidden:
            raise SpecError(
                f"datasets.{entry.name}.views.{view.name}.graphs",
                f"graphs over all points of {dataset.name!r}, of which a split tests {hidden}",
                "splits without a test part",
                'Set kind = "semi-supervised" and test_fraction = 0 under [splits]',
            )


def check_device(bank: BankSpec, kernels: BankKernels, dataset: Dataset) -> None:
    """Refuse a device that is not there, or that does not compute the kernels of a bank."""
    if bank.device == CPU:
        return
    from mkldist.bank.device import device_for  # which few need

    own = kernels.of_features
    alone = own is not None and dataset.x is not None and len(own) == len(kernels)
    device_for(own if alone else None, bank.device, f"banks.{bank.label}.device")


def check_presence(bank: BankSpec, dataset: Dataset, kernels: BankKernels) -> None:
    """Refuse to centre kernels that some points of a data set lack."""
    some_absent = any(not dataset.given[one.view].present.all() for one in kernels.given)
    texts = None if dataset.texts is None else dataset.texts.absent
    for absent, own in ((dataset.absent, kernels.of_features), (texts, kernels.of_texts)):
        if absent is not None and own is not None:
            some_absent |= bool(absent[:, own.subset_indices].any())
    if some_absent:
        check_uncentred(bank.normalisations, f"banks.{bank.label}.normalisation")


def check_kernels(
    bank: BankSpec,
    kernels: KernelList,
    preprocessing: PreprocessingSpec,
    dataset: Dataset,
    splits: Sequence[Split],
) -> None:
    """Check that kernel functions take the features, and that those of the user work on them."""
    check_scale(bank, kernels, preprocessing.scale)
    if dataset.x is not None:
        names, rows = dataset.feature_names, dataset.row_labels
        check_points(kernels, dataset.x, names, dataset.name, rows)
    if kernels.custom:
        points = preprocessed(preprocessing, dataset, splits[0])
        check_custom(kernels, points[splits[0].known])


RUN_BYTES = 2000  # of a run in a plan, while the plan is made


def check_number_of_runs(
    spec: SweepSpec,
    facts: Mapping[str, DatasetFacts],
    grids: Mapping[str, Mapping[str, MethodGrid]],
) -> None:
    """Refuse more runs than a plan can hold in half of this machine's memory."""
    n_settings = {
        dataset: sum(
            len(own[method.key].points)
            for method in spec.methods
            for bank in spec.sized_banks
            if method.runs_on(bank) and not own[method.key].is_open
        )
        for dataset, own in grids.items()
    }
    n_runs = sum(facts[dataset].n_splits * n_settings[dataset] for dataset in facts)
    check_fits(n_runs, RUN_BYTES, "methods", "runs", "Lower splits.repeats, or give fewer values")


def check_kernel_numbers(
    spec: SweepSpec,
    grids: Mapping[str, Mapping[str, MethodGrid]],
    banks: Mapping[tuple[str, str], BankFacts],
) -> None:
    """Refuse the number of a kernel that a bank does not have."""
    keys = {
        bank.label: [entry.key for entry in spec.methods if entry.runs_on(bank)]
        for bank in spec.sized_banks
    }
    for (dataset, bank), facts in banks.items():
        for key in keys[bank]:
            grid = grids[dataset][key]
            highest = max((point.chosen_kernel or 0 for point in grid.points), default=0)
            if highest >= facts.n_kernels:
                raise SpecError(
                    f"methods.{key}.kernel_number",
                    f"{highest}",
                    f"a number from 0 to {facts.n_kernels - 1}: bank {bank!r} of data set "
                    f"{dataset!r} has {pluralize(facts.n_kernels, 'kernel')}",
                )


def check_factors(
    spec: SweepSpec,
    grids: Mapping[str, Mapping[str, MethodGrid]],
    banks: Mapping[tuple[str, str], BankFacts],
    datasets: Mapping[str, tuple[Dataset, Sequence[Split]]],
) -> None:
    """Refuse methods that cannot solve on a bank of factors, and unlabelled rows in such a bank."""
    for bank in (one for one in spec.sized_banks if one.may_be_factors):
        thin = [name for name in datasets if banks[name, bank.label].on_factors]
        for entry in (one for one in spec.methods if thin and one.runs_on(bank)):
            problem = ProblemFacts(factors=True, rounded=bank.dtype == "float32")
            if (refusal := METHODS[entry.name].refuses(problem)) is None:
                continue
            found = f"{entry.name} on bank {bank.label!r} of factors, but it {refusal.reason}"
            if refusal.part is not Part.ROUNDED:
                n_bytes = memory_of(spec)
                n_kernels = max(banks[name, bank.label].n_kernels for name in thin)
                most = most_points_of(grids[thin[0]][entry.key], n_kernels, n_bytes)
                found += f", which {n_bytes / 2**30:.1f} GiB of a solver hold up to {most:,} points"
            raise SpecError(
                f"methods.{entry.key}",
                found,
                f"{refusal.others}: {one_of(methods_for(problem))}",
                f"Or give the bank {refusal.expected}, or the method another by banks = [...]",
            )
        for name in thin:
            if any(len(split.unlabelled) for split in datasets[name][1]):
                raise SpecError(
                    f"banks.{bank.label}.backend",
                    f'"{FACTORS}" for data set {name!r}, which has unlabelled rows',
                    "labelled rows alone, among which the pivots of factors are",
                    "Choose another backend, or remove the unlabelled rows",
                )
