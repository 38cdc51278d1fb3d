"""Layout of the tree of results: the place of each run of a plan, computed without storage."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Array
from mkldist.core.identity import content_id
from mkldist.core.natural_order import natural_path_key
from mkldist.errors import SpecError
from mkldist.results.coordinates import (
    DTYPES,
    Coordinate,
    bank_coordinates,
    of_runs,
    of_values,
    positions_of,
)
from mkldist.results.node_variables import NodeKind, node_variables
from mkldist.results.schema import (
    BANK_SERIES,
    CLASS,
    COEFFICIENTS,
    COORDINATES,
    DATASET_SERIES,
    DECISION_VALUES,
    KERNEL,
    LABEL,
    LAYOUT_VERSION,
    METRIC,
    PREDICTED,
    RESERVED,
    RUNGS,
    SAMPLE,
    SPLIT,
    VECTORS,
    WEIGHTS,
    Variable,
)
from mkldist.spec.model import TRIAL

if TYPE_CHECKING:
    from mkldist.planning.model import Plan, RunPlan
    from mkldist.spec.kinds import Task
    from mkldist.spec.model import OutputsSpec, SweepSpec

_COORDINATES = {variable.name: variable for variable in COORDINATES}


@dataclass(frozen=True, eq=False)
class TreeFacts:
    """Facts that the layout needs beside the plan.

    Parameters
    ----------
    dims : mapping of str to mapping of str to mapping of str to sequence
        Hyperparameters of each method and their values, by data set and the method's key.
    kernels : mapping of (str, str) to mapping of str to (M,) array
        Coordinates along kernels, by data set and bank label, see
        :func:`mkldist.results.coordinates.kernel_coordinates`; without them kernels have
        numbers only.
    labels : mapping of str to (n,) array
        Labels of all rows, by data set; needed if predictions or coefficients are kept.
    predictions : bool
        True if decision values are kept.
    data : mapping of str to mapping
        What a reader needs to know of each data set, JSON-serialisable: ``rows``, ``features``,
        ``missing`` cells, numbers of rows by class in ``classes``, of features by view in
        ``views`` and of Gram matrices in ``matrices``, and the number of ``groups`` of rows.
    tasks : mapping of str to {"classification", "regression"}
        Task of each data set; classification by default.
    unlabelled : collection of str
        Data sets with unlabelled rows in some split.
    classes : mapping of str to sequence of str
        Names of the classes of each data set of classes, of two first that of -1.
    splits : mapping of str to mapping of str to array
        Coordinates along the splits of each data set: ``repeat``, ``fold``, ``n_train``, ``n_test``
        and ``n_unlabelled``.
    n_features : mapping of str to int
        Number of features of each data set.
    run_parameters : mapping of str to mapping of str to sequence of str
        Parameters of which every run of a method has a value of its own, and which are no dims, by
        data set and the method's key: those of trials, and a C that another method gives.
    most_runs : int
        As many runs as a sweep may have of which some depend on others; 0 for any other.
    """

    dims: Mapping[str, Mapping[str, Mapping[str, Sequence[Any]]]]
    kernels: Mapping[tuple[str, str], Mapping[str, Array]] = field(default_factory=dict)
    labels: Mapping[str, Array] = field(default_factory=dict)
    predictions: bool = False
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tasks: Mapping[str, Task] = field(default_factory=dict)
    unlabelled: Collection[str] = ()
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    splits: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    n_features: Mapping[str, int] = field(default_factory=dict)
    run_parameters: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    most_runs: int = 0

    @property
    def parameters(self) -> frozenset[str]:
        """Names of the parameters that vary in some method on some data set."""
        every = (*self.dims.values(), *self.run_parameters.values())
        return frozenset().union(*(names for of_dataset in every for names in of_dataset.values()))

    def dims_of(self, run: RunPlan) -> Mapping[str, Sequence[Any]]:
        """Return the dims along which the runs of a run's node lie, and their values."""
        return self.dims[run.dataset][run.key]

    def run_parameters_of(self, run: RunPlan) -> Sequence[str]:
        """Return the parameters of which the runs of a run's node have values of their own."""
        return self.run_parameters.get(run.dataset, {}).get(run.key, ())


@dataclass(frozen=True, eq=False)
class MethodNode:
    """The node of one method on one bank.

    Parameters
    ----------
    path : str
        Path in the tree, without a leading slash.
    dims : dict of str to int
        Sizes of ``split`` and of the hyperparameters, in order.
    coordinates : dict of str to Coordinate
        Values of the hyperparameters; those of which every run has its own along several dims.
    sizes : dict of str to Coordinate
        Numbers of kernels and features; bytes and build times of the banks.
    vectors : dict of str to int
        Sizes of the further dims of its variables: ``kernel``, ``sample``, ``class_name`` …
    run_ids : array of str, of the shape of `dims`
        Id of the run at each place; an empty string at places without a run.
    attributes : dict of str to str
        Method, bank, task, and the parameters that all runs share.
    variables : tuple of Variable
        Variables of the node.
    traces : tuple of Variable
        Convergence traces, empty if no run records any.
    """

    path: str
    dims: dict[str, int]
    coordinates: dict[str, Coordinate]
    sizes: dict[str, Coordinate]
    vectors: dict[str, int]
    run_ids: Array
    attributes: dict[str, str]
    variables: tuple[Variable, ...]
    traces: tuple[Variable, ...]

    def places(self) -> Iterator[tuple[tuple[int, ...], str]]:
        """Yield the place and the id of every run."""
        ids = self.run_ids
        for place, run_id in zip(np.ndindex(ids.shape), ids.ravel().tolist(), strict=True):
            if run_id:
                yield place, run_id


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """Layout of the whole tree.

    Parameters
    ----------
    nodes : tuple of MethodNode
        The nodes that hold runs.
    shared : dict of str to dict of str to Coordinate
        Coordinates that the nodes below a group share, by the group's path.
    attributes : dict of str to str or int
        Attributes of the root.
    """

    nodes: tuple[MethodNode, ...]
    shared: dict[str, dict[str, Coordinate]]
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Content hash; two trees with the same id have the same runs at the same places."""
        return content_id(
            version=LAYOUT_VERSION,
            nodes=[[n.path, n.dims, n.vectors, n.run_ids.ravel().tolist()] for n in self.nodes],
            shared=[[path, *_named(arrays)] for path, arrays in self.shared.items()],
            variables=[
                [[v.name for v in n.variables], [v.name for v in n.traces]] for n in self.nodes
            ],
            attributes=[n.attributes for n in self.nodes],
        )


def _named(coordinates: Mapping[str, Coordinate]) -> list[Any]:
    """Return the names of coordinates, and those of the classes, as they determine places."""
    classes = [coordinates[CLASS].values.tolist()] if CLASS in coordinates else []
    return [sorted(coordinates), *classes]


def tree_layout(plan: Plan, facts: TreeFacts) -> TreeLayout:
    """Lay out the results of a plan.

    Raises
    ------
    mkldist.errors.SpecError
        If a method or bank has the name of a coordinate.
    ValueError
        If the schema reserves the name of a hyperparameter, or a run has a value that is not
        among the values of its hyperparameter.
    """
    check_names(plan.spec)
    outputs = plan.spec.outputs
    one_bank = len(plan.spec.sized_banks) == 1
    kernels = {(bank.dataset, bank.spec.label): bank.n_kernels for bank in plan.banks}
    groups: dict[tuple[str, str, str], list[RunPlan]] = {}
    for run in plan.runs:
        groups.setdefault((run.dataset, run.bank_label, run.key), []).append(run)
    n_splits: dict[str, int] = {}
    for run in plan.runs:
        n_splits[run.dataset] = max(n_splits.get(run.dataset, 0), run.asked_split + 1)
    taken = RESERVED.union(facts.parameters, *groups)
    nodes: list[MethodNode] = []
    shared: dict[str, dict[str, Coordinate]] = {}
    for (dataset, bank, key), runs in sorted(
        groups.items(), key=lambda group: natural_path_key("/".join(group[0]))
    ):
        above = dataset if one_bank else f"{dataset}/{bank}"
        names = facts.classes.get(dataset, ())
        kind = NodeKind(
            facts.tasks.get(dataset, "classification"),
            unlabelled=dataset in facts.unlabelled,
            validation=plan.spec.inner_folds is not None,
            n_classes=len(names),
            shared=runs[0].shared_weights,
        )
        if dataset not in shared:
            shared[dataset] = _of_dataset(dataset, n_splits[dataset], facts, outputs)
        sizes = {dim: len(c.values) for dim, c in shared[dataset].items()}
        sizes[KERNEL] = kernels[dataset, bank]
        node = _node(f"{above}/{key}", runs, facts, sizes, kind, _vectors(facts, outputs))
        own = [b for b in plan.banks if (b.dataset, b.spec.label) == (dataset, bank)]
        nodes.append(
            replace(
                node,
                sizes=node.sizes | bank_coordinates(own, sizes[SPLIT]),
                attributes=node.attributes
                | _series(plan.spec, dataset, bank)
                | {METRIC: plan.spec.metric_of(kind.task).name},
            )
        )
        if outputs.weights:
            shared.setdefault(above, {}).update(_along_kernels(facts, dataset, bank, taken))
    return TreeLayout(tuple(nodes), shared)


def _of_dataset(
    dataset: str, n_splits: int, facts: TreeFacts, outputs: OutputsSpec
) -> dict[str, Coordinate]:
    """Return the coordinates of a data set: splits, classes, and rows with their labels."""
    splits = facts.splits.get(dataset, {})
    numbers: Array = np.arange(n_splits)
    found: dict[str, Array] = {SPLIT: numbers}
    found |= {name: values[:n_splits] for name, values in splits.items()}
    if dataset in facts.classes:
        classes = np.array(facts.classes[dataset], dtype=object)
        found |= {CLASS: classes, PREDICTED: classes}
    if facts.predictions or outputs.coefficients:
        labels = np.asarray(facts.labels[dataset], dtype=np.float64)
        found |= {SAMPLE: np.arange(len(labels)), LABEL: labels}
    return {name: Coordinate(_COORDINATES[name], values) for name, values in found.items()}


def _along_kernels(
    facts: TreeFacts, dataset: str, bank: str, taken: Collection[str]
) -> dict[str, Coordinate]:
    """Return the coordinates along the kernels of a bank; parameters keep clear of other names."""
    found = {}
    for name, values in facts.kernels.get((dataset, bank), {}).items():
        known = _COORDINATES.get(name)
        if known is None:
            own = f"kernel_{name}" if name in taken else name
            text = f"parameter {name} of the kernel function"
            dtype = DTYPES[values.dtype.kind]
            known = Variable(own, "1" * (dtype != "string"), text, dtype, (KERNEL,))
        found[known.name] = Coordinate(known, values)
    return found


def _vectors(facts: TreeFacts, outputs: OutputsSpec) -> list[Variable]:
    """Return the vectors per run that a sweep keeps."""
    asked = {
        WEIGHTS: outputs.weights,
        DECISION_VALUES: facts.predictions,
        COEFFICIENTS: outputs.coefficients,
    }
    return [variable for variable in VECTORS if asked.get(variable, True)]


def _node(
    path: str,
    runs: Sequence[RunPlan],
    facts: TreeFacts,
    sizes_of: Mapping[str, int],
    kind: NodeKind,
    vectors: Sequence[Variable],
) -> MethodNode:
    """Place the runs of one method on one bank."""
    method, dims, own = runs[0].method, facts.dims_of(runs[0]), facts.run_parameters_of(runs[0])
    taken = sorted(RESERVED.intersection((*dims, *own)))
    if taken:
        raise ValueError(f"{path}: a hyperparameter cannot be called {taken[0]!r}")
    values = {name: list(series) for name, series in dims.items()}
    sizes = {SPLIT: sizes_of[SPLIT]} | {name: len(series) for name, series in values.items()}
    run_ids = np.full(tuple(sizes.values()), "", dtype=object)
    for run, position in zip(runs, positions_of(runs, values), strict=True):
        run_ids[position] = run.id
    variables = node_variables(kind, vectors)
    return MethodNode(
        path=path,
        dims=sizes,
        coordinates={
            **{name: of_values(name, series, method) for name, series in values.items()},
            **{name: of_runs(name, runs, sizes[SPLIT], values) for name in own},
        },
        sizes=_sizes(sizes_of[KERNEL], facts.n_features.get(runs[0].dataset)),
        vectors={dim: sizes_of[dim] for variable in variables for dim in variable.dims},
        run_ids=run_ids,
        attributes=_attributes(runs[0], facts, kind),
        variables=variables,
        traces=kind.traces if any(run.params.get("trace") for run in runs) else (),
    )


def _attributes(run: RunPlan, facts: TreeFacts, kind: NodeKind) -> dict[str, str]:
    """Return the attributes of the node of a run."""
    dims, own = facts.dims_of(run), facts.run_parameters_of(run)
    settings = {n: value for n, value in run.params.items() if n not in (*dims, *own)}
    attributes = {
        "method": run.method,
        "bank": run.bank_label,
        "task": kind.task,
        "settings": json.dumps(settings, sort_keys=True, default=str),
    }
    if kind.classes:
        attributes["kernel_weights"] = "shared" if kind.shared else "per-class"
    elif kind.n_classes:
        attributes["positive_class"] = facts.classes[run.dataset][1]
    rungs = [name for name in dims if name != TRIAL] if TRIAL in dims else []
    if rungs:
        attributes[RUNGS] = rungs[0]
    return attributes


def _series(spec: SweepSpec, dataset: str, bank: str) -> dict[str, str]:
    """Return the names of data set and bank in the sweep file, where sizes share one."""
    return {
        DATASET_SERIES: next(d.series for d in spec.sized_datasets if d.name == dataset),
        BANK_SERIES: next(b.series for b in spec.sized_banks if b.label == bank),
    }


def _sizes(n_kernels: int, n_features: int | None) -> dict[str, Coordinate]:
    """Return the sizes of bank and data that are known."""
    known = {"n_kernels": n_kernels, "n_features": n_features}
    return {
        name: Coordinate(_COORDINATES[name], np.array(size))
        for name, size in known.items()
        if size is not None
    }


def check_names(spec: SweepSpec) -> None:
    """Reject names of methods and banks that clash with coordinates.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first.
    """
    several = len(spec.sized_banks) > 1
    of_dataset = {name for name, v in _COORDINATES.items() if v.dims != (KERNEL,)}
    places = [("methods", "label", method.key, {*_COORDINATES}) for method in spec.methods]
    # The group of a bank stands beside the coordinates of its data set, not beside its own.
    places += [("banks", "name", bank.label, of_dataset) for bank in spec.sized_banks if several]
    for table, key, name, taken in places:
        if name in taken:
            raise SpecError(
                f"{table}.{name}.{key}",
                f"{name!r}",
                "a name other than that of a coordinate",
                "Rename it",
            )
