"""Layout of the tree of results: the place of each run of a plan, computed without storage."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.errors import SpecError
from mkldist.identity import content_id
from mkldist.plan.model import Plan, RunPlan
from mkldist.results.node_variables import NodeKind, node_variables
from mkldist.results.schema import (
    CLASS,
    COEFFICIENTS,
    DECISION_VALUES,
    KERNEL,
    LABEL,
    LAYOUT_VERSION,
    PREDICTED,
    RESERVED,
    RUNGS,
    SAMPLE,
    SPLIT,
    WEIGHTS,
    Variable,
)
from mkldist.solvers.settings import setting
from mkldist.spec.kinds import Task
from mkldist.spec.model import OutputsSpec, SweepSpec
from mkldist.spec.search import TRIAL


@dataclass(frozen=True, eq=False)
class TreeFacts:
    """Facts that the layout needs beside the plan.

    Parameters
    ----------
    dims : mapping of str to mapping of str to sequence
        Hyperparameters of each method and their values, by the method's key.
    kernel_names : mapping of (str, str) to sequence of str
        Names of the kernels, by data set and bank label; without them kernels have numbers only.
    labels : mapping of str to (n,) array
        Labels of all rows, by data set; needed if predictions or coefficients are kept.
    tasks : mapping of str to {"classification", "regression"}
        Task of each data set; classification by default.
    unlabelled : collection of str
        Data sets with unlabelled rows in some split.
    classes : mapping of str to sequence of str
        Names of the classes of each data set with more than two classes.
    searched : mapping of str to sequence of str
        Parameters that the trials of each searched method have, by the method's key.
    most_runs : int
        As many runs as a search may have; 0 without one.
    """

    dims: Mapping[str, Mapping[str, Sequence[Any]]]
    kernel_names: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    labels: Mapping[str, Array] = field(default_factory=dict)
    tasks: Mapping[str, Task] = field(default_factory=dict)
    unlabelled: Collection[str] = ()
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    searched: Mapping[str, Sequence[str]] = field(default_factory=dict)
    most_runs: int = 0


@dataclass(frozen=True, eq=False)
class MethodNode:
    """The node of one method on one bank.

    Parameters
    ----------
    path : str
        Path in the tree, without a leading slash.
    dims : dict of str to int
        Sizes of ``split`` and of the hyperparameters, in order.
    coordinates : dict of str to array
        Values of the hyperparameters.
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
    settings : dict of str to (n_splits, n_trials) array
        Parameters of the trials of a searched method, which are coordinates.
    """

    path: str
    dims: dict[str, int]
    coordinates: dict[str, Array]
    vectors: dict[str, int]
    run_ids: Array
    attributes: dict[str, str]
    variables: tuple[Variable, ...]
    traces: tuple[Variable, ...]
    settings: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """Layout of the whole tree.

    Parameters
    ----------
    nodes : tuple of MethodNode
        The nodes that hold runs.
    shared : dict of str to dict of str to array
        Coordinates that the nodes below a group inherit, by the group's path.
    """

    nodes: tuple[MethodNode, ...]
    shared: dict[str, dict[str, Array]]

    @property
    def id(self) -> str:
        """Content hash; two trees with the same id have the same runs at the same places."""
        return content_id(
            version=LAYOUT_VERSION,
            nodes=[[n.path, n.dims, n.vectors, n.run_ids.ravel().tolist()] for n in self.nodes],
            shared=[[path, *_named(arrays)] for path, arrays in self.shared.items()],
            variables=[[v.name for v in n.variables] + [bool(n.traces)] for n in self.nodes],
            attributes=[n.attributes for n in self.nodes],
        )


def _named(arrays: Mapping[str, Array]) -> list[Any]:
    """Return the names of coordinates, and those of the classes, as they determine places."""
    classes = [arrays[CLASS].tolist()] if CLASS in arrays else []
    return [sorted(arrays), *classes]


def tree_layout(plan: Plan, facts: TreeFacts) -> TreeLayout:
    """Lay out the results of a plan.

    Parameters
    ----------
    plan : Plan
        The plan.
    facts : TreeFacts
        Further facts.

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
    one_bank = len(plan.spec.banks) == 1
    kernels = {(bank.dataset, bank.spec.label): bank.n_kernels for bank in plan.banks}
    groups: dict[tuple[str, str, str], list[RunPlan]] = {}
    for run in plan.runs:
        groups.setdefault((run.dataset, run.bank_label, run.key), []).append(run)
    n_splits: dict[str, int] = {}
    for run in plan.runs:
        n_splits[run.dataset] = max(n_splits.get(run.dataset, 0), _split_of(run) + 1)
    nodes: list[MethodNode] = []
    shared: dict[str, dict[str, Array]] = {}
    for (dataset, bank, key), runs in sorted(groups.items()):
        above = dataset if one_bank else f"{dataset}/{bank}"
        kind = NodeKind(
            facts.tasks.get(dataset, "classification"),
            unlabelled=dataset in facts.unlabelled,
            validation=plan.spec.selection is not None,
            classes=dataset in facts.classes,
            shared=runs[0].shared_weights,
        )
        sizes = {SPLIT: n_splits[dataset], KERNEL: kernels[dataset, bank]}
        shared.setdefault(dataset, {SPLIT: np.arange(n_splits[dataset])})
        if kind.classes:
            classes = np.array(facts.classes[dataset], dtype=object)
            shared[dataset] |= {CLASS: classes, PREDICTED: classes}
            sizes |= {CLASS: len(classes), PREDICTED: len(classes)}
        if outputs.predictions or outputs.coefficients:
            labels = np.asarray(facts.labels[dataset], dtype=np.float64)
            shared[dataset] |= {SAMPLE: np.arange(len(labels)), LABEL: labels}
            sizes[SAMPLE] = len(labels)
        nodes.append(_node(f"{above}/{key}", runs, facts, sizes, kind, _vectors(outputs)))
        names = facts.kernel_names.get((dataset, bank))
        if outputs.weights and names is not None:
            shared.setdefault(above, {})[KERNEL] = np.array(names, dtype=object)
    return TreeLayout(tuple(nodes), shared)


def _vectors(outputs: OutputsSpec) -> list[Variable]:
    """Return the vectors per run that a sweep keeps."""
    asked = (
        (WEIGHTS, outputs.weights),
        (DECISION_VALUES, outputs.predictions),
        (COEFFICIENTS, outputs.coefficients),
    )
    return [variable for variable, wanted in asked if wanted]


def _node(
    path: str,
    runs: Sequence[RunPlan],
    facts: TreeFacts,
    sizes_of: Mapping[str, int],
    kind: NodeKind,
    vectors: Sequence[Variable],
) -> MethodNode:
    """Place the runs of one method on one bank."""
    dims = facts.dims[runs[0].key]
    taken = sorted(RESERVED.intersection(dims))
    if taken:
        raise ValueError(f"{path}: a hyperparameter cannot be called {taken[0]!r}")
    values = {name: list(series) for name, series in dims.items()}
    sizes = {SPLIT: sizes_of[SPLIT]} | {name: len(series) for name, series in values.items()}
    run_ids = np.full(tuple(sizes.values()), "", dtype=object)
    for run in runs:
        place = tuple(
            series.index(run.at[name] if name in run.at else setting(run.params, name))
            for name, series in values.items()
        )
        run_ids[_split_of(run), *place] = run.id
    searched = facts.searched.get(runs[0].key, ())
    dims_of_rungs = [name for name in dims if name != TRIAL] if searched else []
    settings = {name: v for name, v in runs[0].params.items() if name not in (*dims, *searched)}
    variables = node_variables(kind, vectors)
    of_classes = {"kernel_weights": "shared" if kind.shared else "per-class"}
    return MethodNode(
        path=path,
        dims=sizes,
        coordinates={name: _coordinate(series) for name, series in values.items()},
        vectors={dim: sizes_of[dim] for variable in variables for dim in variable.dims},
        run_ids=run_ids,
        attributes={
            "method": runs[0].method,
            "bank": runs[0].bank_label,
            "task": kind.task,
            "settings": json.dumps(settings, sort_keys=True, default=str),
            **(of_classes if kind.classes else {}),
            **({"coordinates": " ".join(searched)} if searched else {}),
            **({RUNGS: dims_of_rungs[0]} if dims_of_rungs else {}),
        },
        variables=variables,
        traces=kind.traces if any(run.params.get("trace") for run in runs) else (),
        settings={name: _of_trials(runs, name, tuple(sizes.values())[:2]) for name in searched},
    )


def _split_of(run: RunPlan) -> int:
    """Return the split of the sweep of which a run learns the training rows, or some of them."""
    return int(run.at.get(SPLIT, run.split))


def _of_trials(runs: Iterable[RunPlan], name: str, shape: tuple[int, ...]) -> Array:
    """Return a parameter of all trials: NaN, or an empty text, where there is no trial."""
    values = {(_split_of(run), run.at[TRIAL]): setting(run.params, name) for run in runs}
    series = _coordinate(values.values())
    if series.dtype.kind in "if":
        found = np.full(shape, np.nan)
    else:
        series, found = series.astype(str).astype(object), np.full(shape, "", dtype=object)
    for place, value in zip(values, series, strict=True):
        found[place] = value
    return found


def check_names(spec: SweepSpec) -> None:
    """Reject names of methods and banks that clash with coordinates.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first.
    """
    places = [("methods", "label", method.key) for method in spec.methods]
    if len(spec.banks) > 1:
        places += [("banks", "name", bank.label) for bank in spec.banks]
    for table, key, name in places:
        if name in (SPLIT, KERNEL, SAMPLE, LABEL, CLASS, PREDICTED):
            raise SpecError(
                f"{table}.{name}.{key}",
                f"found {name!r}",
                "a name other than that of a coordinate",
                "Rename it",
            )


def _coordinate(values: Iterable[Any]) -> Array:
    """Return values of a hyperparameter as numbers if all are numbers, else as text."""
    series = list(values)
    kinds = {type(value) for value in series}
    if kinds == {bool}:
        return np.array(series, dtype=np.bool_)
    if kinds == {int}:
        return np.array(series, dtype=np.int64)
    if kinds <= {int, float}:
        return np.array(series, dtype=np.float64)
    return np.array([str(value) for value in series], dtype=object)
