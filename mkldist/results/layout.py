"""Layout of the tree of results: the place of each run of a plan, computed without storage."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Array
from mkldist.core.checksums import Arrays, content_id, frame, unframed
from mkldist.core.durable import discard, write_file
from mkldist.core.wording import natural_path_key
from mkldist.errors import SpecError, StoreError
from mkldist.results.schema import (
    BANK_BYTES,
    BANK_SERIES,
    BUILD_TIMES,
    CLASS,
    COEFFICIENTS,
    COORDINATES,
    DATA,
    DATASET_SERIES,
    DECISION_VALUES,
    GAP_DEFINITION,
    KERNEL,
    LABEL,
    LAYOUT_VERSION,
    METRIC,
    MOST_RUNS,
    OF_TRIALS,
    PREDICTED,
    RESERVED,
    SAMPLE,
    SPLIT,
    VECTORS,
    WEIGHTS,
    NodeKind,
    Variable,
    node_variables,
)
from mkldist.solvers.solver_params import setting
from mkldist.spec.kinds import SOURCE_PREFIX, TRIAL, Task

if TYPE_CHECKING:
    import pandas as pd

    from mkldist.bank.bank_kernels import BankKernels
    from mkldist.kernels.kernel_list import KernelList
    from mkldist.planning.model import BankPlan, Plan, RunPlan
    from mkldist.spec.banks import BankSpec
    from mkldist.spec.model import OutputsSpec, SweepSpec


_COORDINATES = {variable.name: variable for variable in COORDINATES}


@dataclass(frozen=True, eq=False)
class TreeFacts:
    """Facts that the layout needs beside the plan."""

    # Hyperparameters of each method and their values, by data set and the method's key
    dims: Mapping[str, Mapping[str, Mapping[str, Sequence[Any]]]]
    # Coordinates along kernels, by data set and bank label, see
    # `results.layout.kernel_coordinates`; without them kernels have numbers only
    kernels: Mapping[tuple[str, str], Mapping[str, Array]] = field(default_factory=dict)
    # Labels of all rows, by data set; needed if predictions or coefficients are kept
    labels: Mapping[str, Array] = field(default_factory=dict)
    predictions: bool = False  # True if decision values are kept
    # What a reader needs to know of each data set, JSON-serialisable: `rows`, `features`,
    # `missing` cells, numbers of rows by class in `classes`, of features by view in
    # `views` and of Gram matrices in `matrices`, and the number of `groups` of rows
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Task of each data set; classification by default
    tasks: Mapping[str, Task] = field(default_factory=dict)
    unlabelled: Collection[str] = ()  # Data sets with unlabelled rows in some split
    # Names of the classes of each data set of classes, of two first that of -1
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Coordinates along the splits of each data set: `repeat`, `fold`, `n_train`, `n_test`
    # and `n_unlabelled`
    splits: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    # Number of features of each data set
    n_features: Mapping[str, int] = field(default_factory=dict)
    # Parameters of which every run of a method has a value of its own, and which are no
    # dims, by data set and the method's key: those of trials, and a C that another method
    # gives
    run_parameters: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    # As many runs as a sweep may have of which some depend on others; 0 for any other
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
    """The node of one method on one bank."""

    path: str  # Path in the tree, without a leading slash
    dims: dict[str, int]  # Sizes of `split` and of the hyperparameters, in order
    # Values of the hyperparameters; those of which every run has its own along several
    # dims
    coordinates: dict[str, Coordinate]
    # Numbers of kernels and features; bytes and build times of the banks
    sizes: dict[str, Coordinate]
    # Sizes of the further dims of its variables: `kernel`, `sample`, `class_name` …
    vectors: dict[str, int]
    run_ids: Array  # Id of the run at each place; an empty string at places without a run
    attributes: dict[str, str]  # Method, bank, task, and the parameters that all runs share
    variables: tuple[Variable, ...]  # Variables of the node
    traces: tuple[Variable, ...]  # Convergence traces, empty if no run records any

    def places(self) -> Iterator[tuple[tuple[int, ...], str]]:
        """Yield the place and the id of every run."""
        ids = self.run_ids
        for place, run_id in zip(np.ndindex(ids.shape), ids.ravel().tolist(), strict=True):
            if run_id:
                yield place, run_id


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """Layout of the whole tree."""

    nodes: tuple[MethodNode, ...]  # The nodes that hold runs
    # Coordinates that the nodes below a group share, by the group's path
    shared: dict[str, dict[str, Coordinate]]
    attributes: dict[str, Any] = field(default_factory=dict)  # Attributes of the root

    @property
    def run_ids(self) -> frozenset[str]:
        """Ids of the runs that have a place in the tree."""
        return frozenset(i for node in self.nodes for i in node.run_ids.ravel().tolist())

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
    """Lay out the results of a plan."""
    check_names(plan.spec)
    outputs = plan.spec.outputs
    one_bank = len(plan.spec.sized_banks) == 1
    kernels = {(bank.dataset, bank.spec.label): bank.n_kernels for bank in plan.banks}
    groups: dict[tuple[str, str, str], list[RunPlan]] = {}
    for run in plan.runs:
        groups.setdefault((run.dataset, run.bank_label, run.key), []).append(run)
    n_splits: dict[str, int] = {}
    for run in plan.runs:
        n_splits[run.dataset] = max(n_splits.get(run.dataset, 0), run.split + 1)
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
    """Reject names of methods and banks that clash with coordinates."""
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


DTYPES = {"f": "float64", "i": "int64", "b": "bool", "O": "string"}
"""Data types of coordinates by the kind of their arrays."""


@dataclass(frozen=True, eq=False)
class Coordinate:
    """A coordinate and its values."""

    variable: Variable  # Name, units, meaning and dims of the coordinate
    values: Array  # Values; text as objects


def of_values(name: str, series: Sequence[Any], method: str) -> Coordinate:
    """Return the values of a hyperparameter: numbers if all are numbers, else text."""
    values = _array(series)
    own = OF_TRIALS if name == TRIAL else _variable(name, values, method, (name,))
    return Coordinate(own, values)


def positions_of(
    runs: Iterable[RunPlan], dims: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[int, ...]]:
    """Yield the position of each run in its node: its split, then where it is along some dims."""
    known: dict[int, tuple[int, ...]] = {}  # along the dims, of settings that splits share
    for run in runs:
        along = None if run.at else known.get(id(run.params))
        if along is None:
            at = (run.at[n] if n in run.at else setting(run.params, n) for n in dims)
            along = tuple(series.index(v) for series, v in zip(dims.values(), at, strict=True))
            known[id(run.params)] = along
        yield run.split, *along


def of_runs(
    name: str, runs: Sequence[RunPlan], n_splits: int, dims: Mapping[str, Sequence[Any]]
) -> Coordinate:
    """Return a parameter of which every run has a value of its own.

    It lies along ``split`` and the dims of the node; that of trials along ``split`` and ``trial``
    alone, since the rungs of a trial share it.  It is NaN, or an empty text, where there is no run.
    """
    along = {TRIAL: dims[TRIAL]} if TRIAL in dims else dims
    values_of_runs = (setting(run.params, name) for run in runs)
    places = dict(zip(positions_of(runs, along), values_of_runs, strict=True))
    series = _array(list(places.values()))
    is_number = series.dtype.kind in "if"
    shape = n_splits, *map(len, along.values())
    values: Array = np.full(shape, np.nan) if is_number else np.full(shape, "", dtype=object)
    for place, value in zip(places, series.tolist(), strict=True):
        values[place] = value if is_number else str(value)
    return Coordinate(_variable(name, values, runs[0].method, (SPLIT, *along)), values)


def _variable(name: str, values: Array, method: str, dims: tuple[str, ...]) -> Variable:
    """Return the variable of a hyperparameter, described as the method describes it."""
    from mkldist.methods.registry import METHODS  # not for those who only read results

    fields = METHODS[method].params.model_fields if method in METHODS else {}
    known = fields[name].description if name in fields else None
    dtype = DTYPES[values.dtype.kind]
    text = f"{name}: {known}" if known else f"hyperparameter {name}"
    if name.startswith(SOURCE_PREFIX):
        text = f"{name.removeprefix(SOURCE_PREFIX)} of the method that gives C"
    return Variable(name, "1" * (dtype != "string"), text, dtype, dims)


def _array(series: Sequence[Any]) -> Array:
    kinds = {type(value) for value in series}
    if kinds == {bool}:
        return np.array(series, dtype=np.bool_)
    if kinds == {int}:
        return np.array(series, dtype=np.int64)
    if kinds <= {int, float}:
        return np.array(series, dtype=np.float64)
    return np.array([str(value) for value in series], dtype=object)


def bank_coordinates(banks: Iterable[BankPlan], n_splits: int) -> dict[str, Coordinate]:
    """Return bytes and build times of the banks of a node, along its splits.

    The times of stored banks come with the runs, and are NaN until then; a bank that is not stored
    takes none.
    """
    n_bytes = np.full(n_splits, np.nan)
    seconds = np.full(n_splits, np.nan)
    for bank in banks:
        if bank.split is None or bank.split < n_splits:
            where = slice(None) if bank.split is None else bank.split
            n_bytes[where] = bank.n_bytes
            seconds[where] = np.nan if bank.stored else 0.0
    times = {time.name: Coordinate(time, seconds) for time in BUILD_TIMES}
    return {BANK_BYTES.name: Coordinate(BANK_BYTES, n_bytes), **times}


CUSTOM = "custom"


def kernel_coordinates(
    bank: BankSpec,
    names: Sequence[str],
    kernels: BankKernels | None,
    feature_names: Sequence[str] = (),
    views: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> dict[str, Array]:
    """Return the coordinates of a bank's M kernels, by name; text as objects, each of shape (M,).

    ``kernel``, the names; ``function`` and each of its parameters, such as ``width``, NaN for
    kernels without it; ``features`` as in the names, and ``feature_group``: ``all``, the name by
    which the sweep file calls the features, ``single`` or ``several``; ``view``, if there are
    views; ``family``, ``normalisation`` and ``bank``, which all kernels of a bank share.  The
    function of a Gram matrix is ``precomputed``, and its features are its view.
    """
    import pandas as pd

    from mkldist.spec.banks import PRECOMPUTED  # commands that read need none

    given = [] if kernels is None else [one.view for one in kernels.given]
    places = {"features": given, "feature_group": given, "view": given}
    parts = [pd.DataFrame({"function": PRECOMPUTED, **places})]
    if kernels is None:
        parts = [pd.DataFrame({"function": [PRECOMPUTED] * len(names)})]
    else:
        of_texts = kernels.of_texts, kernels.text_names, kernels.text_views
        for functions, columns, blocks in (of_texts, (kernels.of_features, feature_names, views)):
            if functions is not None:
                parts.insert(0, _of_functions(functions, columns, blocks))
    parts = [part for part in parts if len(part)]
    found = {KERNEL: np.array(names, dtype=object)}
    for name, column in pd.concat(parts, ignore_index=True).items():
        is_text = column.dtype.kind not in "fiub"
        values = column.fillna("").astype(str).astype(object) if is_text else column
        found[str(name)] = values.to_numpy()
    if "view" in found and not any(found["view"].tolist()):
        del found["view"]
    shared = {
        "family": bank.family or CUSTOM,
        "normalisation": "+".join(bank.normalisations),
        "bank": bank.label,
    }
    return found | {name: np.full(len(names), text, dtype=object) for name, text in shared.items()}


def _of_functions(
    kernels: KernelList, feature_names: Sequence[str], views: Mapping[str, Collection[int]]
) -> pd.DataFrame:
    """Return the coordinates that functions of features have; a row a kernel."""
    import pandas as pd

    groups, names = [], kernels.subset_names(feature_names)
    for s, size in enumerate(np.diff(kernels.subset_indptr).tolist()):
        label = kernels.subset_labels.get(s)
        first = feature_names[kernels.subset_indices[kernels.subset_indptr[s]]]
        own_name = size == 1 and label == first  # a feature by its own name is a single one
        named = label is not None and not own_name
        groups.append(label if named else "single" if size == 1 else "several")
    found = pd.DataFrame(kernels.columns())
    found["features"] = np.array(names, dtype=object)[kernels.subset]
    found["feature_group"] = np.array(groups, dtype=object)[kernels.subset]
    found["view"] = ""
    for name, columns in views.items():
        own = np.isin(kernels.subset_indices, [*columns])
        within = np.logical_and.reduceat(own, kernels.subset_indptr[:-1])
        found.loc[within[kernels.subset], "view"] = name
    return found


LAYOUT = "tree.layout"
_COMPRESSION = 1
_PACKED = "packed"  # one array of compressed bytes, every bit of which the frame checks
_MOST_DIFFERENT = 2**16
"""Texts of an array that are stored once each, with a number for every entry."""


def lay_out(
    folder: Path,
    plan: Plan,
    facts: TreeFacts,
    provenance: Callable[[], Mapping[str, Any]] | None = None,
) -> bool:
    """Write the layout of a plan into an output folder, unless it is there already."""
    layout = tree_layout(plan, facts)
    there, path = _read(folder / LAYOUT), folder / LAYOUT
    if there is not None:
        known = there.attributes
        if (known["layout_id"], known.get(MOST_RUNS, 0)) == (layout.id, facts.most_runs):
            return False
    was_damaged = there is None and path.exists()
    if was_damaged:
        discard(path)  # a folder is moved away
    made_by = {} if provenance is None else provenance()
    attributes: dict[str, str | int] = {  # of netCDF, which allows text and numbers alone
        "title": f"Results of the sweep {plan.spec.name}",
        "sweep": plan.spec.name,
        "description": plan.spec.description,
        "gap_definition": GAP_DEFINITION,
        "layout_version": LAYOUT_VERSION,
        "layout_id": layout.id,
        "plan_id": plan.id,
        "mkldist_version": metadata.version("mkldist"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "spec": plan.spec.model_dump_json(exclude_defaults=True),
        "provenance": json.dumps(dict(made_by), sort_keys=True),
        DATA: json.dumps({name: dict(of) for name, of in facts.data.items()}),
        **({MOST_RUNS: facts.most_runs} if facts.most_runs else {}),
    }
    write_layout(folder, replace(layout, attributes=attributes))
    return was_damaged


def write_layout(folder: Path, layout: TreeLayout) -> None:
    """Write a layout into an output folder, in place of a former one."""
    arrays = Arrays()

    def described(where: str, coordinates: Mapping[str, Coordinate]) -> dict[str, Any]:
        for name, coordinate in coordinates.items():
            arrays.update(_packed(f"{where}/{name}", coordinate.values))
        return {name: astuple(one.variable) for name, one in coordinates.items()}

    nodes = []
    for node in layout.nodes:
        arrays[f"{node.path}//runs"] = node.run_ids
        nodes.append(
            {
                "path": node.path,
                "dims": node.dims,
                "coordinates": described(f"{node.path}//own", node.coordinates),
                "sizes": described(f"{node.path}//sizes", node.sizes),
                "vectors": node.vectors,
                "attributes": node.attributes,
                "variables": [*map(astuple, node.variables)],
                "traces": [*map(astuple, node.traces)],
            }
        )
    head = {
        "version": LAYOUT_VERSION,
        "attributes": layout.attributes,
        "shared": {path: described(f"{path}//", found) for path, found in layout.shared.items()},
        "nodes": nodes,
    }
    packed = zlib.compress(frame(head, arrays), _COMPRESSION)
    write_file(folder / LAYOUT, [frame({}, {_PACKED: np.frombuffer(packed, np.uint8)})])


def read_layout(folder: Path) -> TreeLayout:
    """Return the layout in an output folder."""
    path = folder / LAYOUT
    layout = _read(path)
    if layout is not None:
        return layout
    raise layout_error(path, _DAMAGED if path.exists() else "no such file")


_DAMAGED = "results that cannot be read: the file is damaged, or of another version"
OF_FORGED = (AttributeError, LookupError, TypeError, ValueError)
"""What fields that no version writes raise, in a file with a right checksum."""


def layout_error(path: Path, found: str = _DAMAGED) -> StoreError:
    """Return the error of a layout that is not there, or cannot be read."""
    remedy = "Repeat the sweep's command: it makes it anew, and repeats no run"
    return StoreError(str(path), found, "the layout of a sweep's results", remedy)


def _read(path: Path) -> TreeLayout | None:
    """Return the layout in a file; None if it is missing, damaged, or of another version."""
    with suppress(OSError, zlib.error, *OF_FORGED):  # another version wrote other fields
        whole = unframed(path.read_bytes())
        found = whole and unframed(zlib.decompress(whole[1][_PACKED].tobytes()))
        if found and found[0].get("version") == LAYOUT_VERSION:
            return _layout(*found)
    return None


def _layout(head: Mapping[str, Any], arrays: Arrays) -> TreeLayout:
    """Return the layout of a sound file."""

    def coordinates(where: str, described: Mapping[str, Any]) -> dict[str, Coordinate]:
        return {
            name: Coordinate(Variable.of(words), _unpacked(f"{where}/{name}", arrays))
            for name, words in described.items()
        }

    nodes = tuple(
        MethodNode(
            path=one["path"],
            dims=one["dims"],
            coordinates=coordinates(f"{one['path']}//own", one["coordinates"]),
            sizes=coordinates(f"{one['path']}//sizes", one["sizes"]),
            vectors=one["vectors"],
            run_ids=arrays[f"{one['path']}//runs"],
            attributes=one["attributes"],
            variables=tuple(map(Variable.of, one["variables"])),
            traces=tuple(map(Variable.of, one["traces"])),
        )
        for one in head["nodes"]
    )
    shared = {path: coordinates(f"{path}//", own) for path, own in head["shared"].items()}
    return TreeLayout(nodes, shared, head["attributes"])


def _packed(name: str, values: Array) -> Arrays:
    """Return an array under its name; that of few texts as these, and the number of each entry."""
    if values.dtype != object:
        return {name: values}
    numbers: dict[str, int] = {}
    at = [numbers.setdefault(text, len(numbers)) for text in values.ravel().tolist()]
    if len(numbers) > min(_MOST_DIFFERENT, len(at) // 2):
        return {name: values}
    texts = np.array([*numbers], dtype=object)
    return {name: texts, f"{name}//at": np.array(at, dtype=np.uint16).reshape(values.shape)}


def _unpacked(name: str, arrays: Arrays) -> Array:
    """Return an array; texts of fixed width, which xarray selects and plots."""
    values, at = arrays[name], arrays.get(f"{name}//at")
    if values.dtype == object:
        values = values.astype(str)
    if at is None:
        return values
    if len(values) == 1:  # takes no memory
        return np.broadcast_to(values[0], at.shape)
    return values[at]
