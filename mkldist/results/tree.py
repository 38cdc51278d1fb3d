"""The tree of results: made in memory from the layout of a sweep and the records of its runs."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, combinations, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mkldist.core.arrays import Array, Ints
from mkldist.core.wording import natural_path_key
from mkldist.errors import InputError, StoreError
from mkldist.results.folder import OutputFolder, no_folder, owner
from mkldist.results.journal import NUMBERS, Journal, RunRecord
from mkldist.results.layout import (
    LAYOUT,
    OF_FORGED,
    Coordinate,
    MethodNode,
    TreeLayout,
    layout_error,
    read_layout,
)
from mkldist.results.rows import MethodRuns, few_classes, method_nodes, n_of_few_classes, place_of
from mkldist.results.schema import (
    BUILD_TIMES,
    CHOSEN_KERNEL,
    CLASS,
    COEFFICIENTS,
    CONVERGENCE,
    COUNTED,
    DECISION_VALUES,
    ITERATION,
    KERNEL,
    N_RANKS,
    NOT_SCALARS,
    ON_FACTORS,
    ORDER,
    OTHER_RUNS,
    PROBABILITY_SCORES,
    RANK,
    RUN_ID,
    SPLIT,
    STATE,
    STATIONARITY_OF,
    TEXTS,
    TRACES,
    UNLABELLED_PROBABILITY_SCORES,
    VECTORS,
    RunState,
    Variable,
)
from mkldist.spec.kinds import as_path

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

FEW_RUNS, FEW_BYTES = 1000, 2**24
"""Vectors of so many runs, and of so many bytes, are read when a tree is opened."""
BLOCK_BYTES = 2**25  # of vectors that are read together, when they are used
OF_CLASS = f"class_{CHOSEN_KERNEL.name}"
_VECTORS = {vector.name: vector for vector in VECTORS}
_ALONG_ITERATIONS = tuple(variable for variable in TRACES if ITERATION in variable.dims)
_KNOWN = {
    variable.name: variable
    for variable in (
        *PROBABILITY_SCORES,
        *UNLABELLED_PROBABILITY_SCORES,
        CHOSEN_KERNEL,
        STATIONARITY_OF,
        *ON_FACTORS,
    )
}
_BUILD_TIMES = frozenset(time.name for time in BUILD_TIMES)
_OF_COMPLETE = {name: name for name in ("bias", "objective", "dual_objective", "gap")} | {
    "n_active": "active_kernels",
    "n_nonzero": "nonzero_kernels",
}
"""Fields of the records of complete runs, and the variables that show them."""
Values = tuple[Variable, Any]
"""A variable and its values along the dims of runs and its own."""


def open_results(path: str | Path, *others: str | Path) -> xr.DataTree:
    """Open the results of a sweep, finished or still running, or of several in one tree.

    Parameters
    ----------
    path : str or Path
        The sweep's output folder.
    *others : str or Path
        Those of other sweeps, on the same data and splits.

    Returns
    -------
    xarray.DataTree
        ``tree["<dataset>/<method>"]`` (``"<dataset>/<bank>/<method>"`` for a sweep of several
        banks) has dims ``split`` and the method's hyperparameters.  It holds the runs that are
        recorded now; large vectors, such as the weights of many kernels, are dask arrays, which
        are read when they are used.  Values that a run has not reported are NaN, and its ``state``
        tells why.  The attribute ``other_runs`` is the number of recorded runs that the last call
        of the sweep did not ask for.  ``tree["<dataset>/<method>/convergence"]`` holds the traces
        of methods with the setting ``trace = true``, along dim ``iteration``, counted from 1.  In a
        tree of several sweeps, a method or bank that differs under one name has the name of its
        sweep, too: ``"wdbc/level (old)"``.

    Raises
    ------
    mkldist.errors.StoreError
        If there are no results or they are damaged.
    mkldist.errors.SpecError
        For what is no path.
    mkldist.errors.InputError
        If several sweeps have other data or splits under one name, by fingerprints of their rows.

    Examples
    --------
    >>> import mkldist
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> tree["wdbc/level"].test_error.mean("split").round(3).to_series().to_dict()  # doctest: +SKIP
    {0.1: 0.048, 1.0: 0.037, 10.0: 0.035}
    """
    paths = [as_path("path", one) for one in (path, *others)]
    trees = [Snapshot.of(one).tree() for one in paths]
    return joined(paths, trees) if others else trees[0]


class RunHead(NamedTuple):
    """What the tree shows of the head of a record."""

    state: RunState
    stop_reason: str
    error: str
    split: int
    numbers: Mapping[str, float]
    of_classes: Mapping[str, Any]
    params: Mapping[str, Any]

    @classmethod
    def of(cls, head: Mapping[str, Any]) -> RunHead:
        """Return these of a head, see :meth:`mkldist.results.journal.Journal.scan`."""
        numbers: dict[str, float] = {}
        for field in NUMBERS:
            numbers |= head[field]
        if head["state"] == RunState.COMPLETE.value:
            numbers |= {shown: head[name] for name, shown in _OF_COMPLETE.items()}
        return cls(
            RunState(head["state"]),
            head["stop_reason"],
            head["error"],
            head["split"],
            numbers=numbers,
            of_classes={**head["of_classes"]},
            params={**head["params"]},
        )


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The layout of a sweep and the heads of its records, as they were read; vectors come later."""

    folder: Path
    layout: TreeLayout
    runs: Mapping[str, RunHead]
    store: Journal

    @classmethod
    def of(cls, folder: Path) -> Snapshot:
        """Read what an output folder holds."""
        if not (folder / LAYOUT).exists():
            if OutputFolder(folder).records.is_file():
                found, remedy = f"no {LAYOUT} beside the records", "The sweep's command makes it"
                raise StoreError(str(folder), found, "the layout of the results", remedy)
            found = "no results here" if folder.is_dir() else no_folder(folder)
            raise StoreError(str(folder), found, "a sweep's output folder")
        store = Journal(OutputFolder(folder).records)
        runs = store.scan(RunHead.of)
        layout, sweep = read_layout(folder), owner(folder)
        other = layout.attributes.get("sweep")
        if sweep not in (None, other):
            raise layout_error(folder / LAYOUT, f"the layout of sweep {other!r}, not {sweep!r}")
        return cls(folder, layout, runs, store)

    @property
    def n_others(self) -> int:
        """Number of recorded runs without a place in the tree, which earlier calls asked for."""
        return len(self.runs.keys() - self.layout.run_ids)

    def tree(self, *, vectors: bool = True) -> xr.DataTree:
        """Return the tree, without vectors per run and traces that no score needs if not asked."""
        try:
            return self._tree(vectors)
        except OF_FORGED as error:
            raise layout_error(self.folder / LAYOUT) from error

    def runs_of_methods(self) -> list[MethodRuns]:
        """Return the runs of each method in the order of the tree, without xarray."""
        try:
            nodes = sorted(self.layout.nodes, key=lambda node: natural_path_key(node.path))
            return [self._runs(node) for node in nodes]
        except OF_FORGED as error:
            raise layout_error(self.folder / LAYOUT) from error

    def _runs(self, node: MethodNode) -> MethodRuns:
        """Return the runs of a node."""
        above, (dataset, *_, method) = self._above(node), node.path.split("/")
        names = above[KERNEL].values if KERNEL in above else ()
        values, _ = _of_runs(node, self.runs, names)
        splits = {n: one.values for n, one in above.items() if one.variable.dims == (SPLIT,)}
        return MethodRuns(
            {"dataset": dataset, "bank": node.attributes["bank"], "method": method},
            node.attributes,
            {name: node.coordinates[name].values for name in [*node.dims][1:]},
            {n: array.reshape(len(array), -1) for n, (v, array) in values.items() if not v.dims},
            splits,
            few_classes(splits, len(above[CLASS].values) if CLASS in above else 2),
        )

    def _above(self, node: MethodNode) -> dict[str, Coordinate]:
        """Return the coordinates of the groups above a node."""
        parts, found = node.path.split("/"), dict[str, Coordinate]()
        for depth in range(1, len(parts)):
            found |= self.layout.shared.get("/".join(parts[:depth]), {})
        return found

    def _tree(self, vectors: bool) -> xr.DataTree:
        """Put the tree together."""
        import xarray as xr

        groups = {
            path: xr.Dataset(coords={name: _coordinate(one) for name, one in found.items()})
            for path, found in self.layout.shared.items()
        }
        for node in self.layout.nodes:
            shared = self._above(node)
            names = shared[KERNEL].values if KERNEL in shared else ()
            values, times = _of_runs(node, self.runs, names)
            above = {name: _coordinate(one) for name, one in shared.items()}
            few = xr.Dataset(coords=above)
            needed = (DECISION_VALUES.name,) * bool(n_of_few_classes(few))
            values |= self._vectors(node, _VECTORS if vectors else needed)
            data = _ordered(node.dims, dict(sorted(values.items())))
            coordinates = {**node.coordinates, **node.sizes, **times}
            own = {name: _coordinate(one) for name, one in coordinates.items()}
            dims = {dim for variable in (*data.values(), *own.values()) for dim in variable.dims}
            own |= {name: one for name, one in above.items() if dims.issuperset(one.dims)}
            groups[node.path] = xr.Dataset(data, own, node.attributes)
            if node.traces and vectors:
                groups[f"{node.path}/{CONVERGENCE}"] = self._traces(node, names)
        ordered = sorted(groups, key=natural_path_key)
        tree = xr.DataTree.from_dict({f"/{path}": groups[path] for path in ordered})
        tree.attrs = {**self.layout.attributes, OTHER_RUNS: self.n_others}
        return tree

    def _vectors(self, node: MethodNode, names: Collection[str]) -> dict[str, Values]:
        """Return vectors of the runs of a node."""
        found: dict[str, Values] = {}
        for variable in node.variables:
            if variable.name in names:
                shape = tuple(node.vectors[dim] for dim in variable.dims)
                of_run = partial(vector_of, variable=_VECTORS[variable.name], shape=shape)
                found[variable.name] = variable, self._array(node, variable, of_run, shape)
        return found

    def _traces(self, node: MethodNode, names: Sequence[str] | Array) -> xr.Dataset:
        """Return the traces of a node as long as the longest; iterations are counted from 1."""
        import xarray as xr

        lengths = self.store.each(self._recorded(node).ravel().tolist(), _length)
        longest = max((length for length in lengths if length), default=0)
        sizes = {CLASS: node.vectors.get(CLASS, 0), ITERATION: longest, RANK: N_RANKS}
        found: dict[str, Values] = {}
        for variable in node.traces:
            shape = tuple(sizes[dim] for dim in variable.dims)
            of_run = partial(trace_of, variable=variable, shape=shape, names=names)
            found[variable.name] = variable, self._array(node, variable, of_run, shape)
        data = _ordered(node.dims, found)
        known = {dim for variable in data.values() for dim in variable.dims}
        counted = {
            v.name: xr.Variable(v.dims, np.arange(1, sizes[v.name] + 1), v.attributes)
            for v in COUNTED
            if v.name in known
        }
        return xr.Dataset(data, counted)

    def _recorded(self, node: MethodNode) -> Array:
        """Return the ids of the recorded runs of a node, an empty text for others."""
        ids = [run_id if run_id in self.runs else "" for run_id in node.run_ids.ravel().tolist()]
        return np.array(ids, dtype=object).reshape(node.run_ids.shape)

    def _array(
        self,
        node: MethodNode,
        variable: Variable,
        of_run: Callable[[RunRecord], Array],
        shape: tuple[int, ...],
    ) -> Any:
        """Return an array per run: of few runs and bytes in memory, else a dask array."""
        array = RunArrays(self.store, self._recorded(node), of_run, shape, variable.dtype)
        if len(self.runs) <= FEW_RUNS and 8 * math.prod(array.shape) <= FEW_BYTES:
            return array[...]
        import dask
        import dask.array as da

        n_dims = node.run_ids.ndim
        chunks: Any = ("auto",) * n_dims + (-1,) * len(shape)  # whole runs
        if 0 in array.shape or array.dtype == object:
            chunks = (1,) * n_dims + shape
        meta = np.empty((0,) * array.ndim, array.dtype)
        from_array: Any = da.from_array
        with dask.config.set({"array.chunk-size": BLOCK_BYTES}):
            return from_array(array, chunks, name=False, fancy=False, meta=meta)


class RunArrays:
    """An array per run as one array, of which an index reads the runs that it touches.

    `run_ids` names the runs, with an empty text where there is none; `of_run` makes an array of
    `shape` and `dtype` (``"float64"`` or ``"string"``) of a record.
    """

    def __init__(
        self,
        store: Journal,
        run_ids: Array,
        of_run: Callable[[RunRecord], Array],
        shape: tuple[int, ...],
        dtype: str,
    ) -> None:
        self._store, self._run_ids, self._of_run = store, run_ids, of_run
        self.shape = *run_ids.shape, *shape
        self.dtype = np.dtype(object if dtype == "string" else dtype)
        self.ndim = len(self.shape)

    def __getitem__(self, key: Any) -> Array:
        """Return the entries at integers and slices."""
        key = key if isinstance(key, tuple) else (key,)
        n_dims = self._run_ids.ndim
        within = (..., *key[n_dims:]) if Ellipsis not in key else (...,)
        runs: Array = np.asarray(self._run_ids[key[:n_dims]], dtype=object)
        fill = "" if self.dtype == object else np.nan
        inner = np.broadcast_to(np.empty((), bool), self.shape[n_dims:])[within].shape
        values = np.full((*runs.shape, *inner), fill, self.dtype)
        wanted = {at: run_id for at, run_id in np.ndenumerate(runs) if run_id}
        arrays = self._store.each(wanted.values(), lambda record: self._of_run(record)[within])
        for (at, run_id), array in zip(wanted.items(), arrays, strict=True):
            if array is not None:
                values[at] = array
            elif run_id in self._store.states():
                raise StoreError(
                    str(self._store.path),
                    f"a damaged record, of run {run_id}",
                    "the records of the results",
                    "Repeat the sweep's command: it does this run again",
                )
        return values


def _of_runs(
    node: MethodNode, runs: Mapping[str, RunHead], kernels: Sequence[str] | Array
) -> tuple[dict[str, Values], dict[str, Coordinate]]:
    """Return what each run of a node has one of, and the build times of the banks of its splits."""
    shape, taken = node.run_ids.shape, {*node.dims, *node.coordinates}
    ids = enumerate(node.run_ids.ravel().tolist())
    recorded = {at: runs[run_id] for at, run_id in ids if run_id in runs}
    heads, places = [*recorded.values()], np.array([*recorded], dtype=np.intp)
    found: dict[str, Values] = {}

    def values_of(variable: Variable) -> Array:
        """Return the values of a variable, a row for each run, to be filled."""
        if variable.name not in found:
            dims = *shape, *(node.vectors.get(CLASS, 0) for _ in variable.dims)
            is_text = variable.dtype == "string"
            fill, dtype = (variable.fill, object) if is_text else (np.nan, float)
            found[variable.name] = variable, np.full(dims, fill, dtype)
        values: Array = found[variable.name][1]
        return values.reshape(-1, *values.shape[len(shape) :])

    for variable in node.variables:
        if variable.name not in _VECTORS:
            values_of(variable)
    found[RUN_ID.name] = found[RUN_ID.name][0], node.run_ids
    for text in (STATE, *TEXTS):
        values_of(text)[places] = [str(getattr(run, text.name)) for run in heads]
    numbers = _numbers(heads)
    for name, own in numbers.items():
        known = ~np.isnan(own)
        if name == CHOSEN_KERNEL.name:
            values_of(CHOSEN_KERNEL)[places[known]] = names_at(own[known], kernels)
        elif name not in _BUILD_TIMES:
            values_of(reported(admissible(name, taken)))[places[known]] = own[known]
    for name in dict.fromkeys(name for run in heads for name in run.of_classes):
        at = [place for place, run in recorded.items() if name in run.of_classes]
        each = np.array([recorded[place].of_classes[name] for place in at], float)
        values = names_at(each, kernels) if name == OF_CLASS else each
        values_of(reported_of_classes(name))[at] = values
    (seconds, _), (_, own_seconds), (_, passes) = (
        found[name] for name in ("seconds", "own_seconds", "pass_seconds")
    )
    found["seconds"] = seconds, own_seconds + passes
    return found, _build_times(node, places, numbers)


def _build_times(
    node: MethodNode, places: Ints, numbers: Mapping[str, Array]
) -> dict[str, Coordinate]:
    """Return the build times of banks along the splits, from what runs at some places report."""
    n_settings, found = max(1, math.prod(node.run_ids.shape[1:])), dict[str, Coordinate]()
    for name in _BUILD_TIMES & node.sizes.keys() & numbers.keys():
        known, seconds = ~np.isnan(numbers[name]), node.sizes[name].values.copy()
        splits, first = np.unique(places[known] // n_settings, return_index=True)
        seconds[splits] = numbers[name][known][first]
        found[name] = Coordinate(node.sizes[name].variable, seconds)
    return found


def _numbers(heads: Sequence[RunHead]) -> dict[str, Array]:
    """Return the numbers that runs report, by name; NaN for a run that does not report one."""
    names = sorted({*chain.from_iterable(run.numbers for run in heads)})
    rows = [[*map(run.numbers.get, names, repeat(math.nan))] for run in heads]
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    return dict(zip(names, table.T.copy(), strict=True))


@cache
def reported(name: str) -> Variable:
    """Return the variable of a reported scalar or text that not every node has."""
    plain = Variable(name, "1", f"{name.replace('_', ' ')}, as the run reported it")
    return _KNOWN.get(name, plain)


@cache
def reported_of_classes(name: str) -> Variable:
    """Return the variable of a scalar or text that is reported for each class."""
    if name == OF_CLASS:
        return replace(CHOSEN_KERNEL.of_each_class, name=name)
    return replace(reported(name), dims=(CLASS,))


def names_at(positions: Array, names: Sequence[str] | Array) -> Array:
    """Return the names of kernels at positions, as text objects; empty for NaN and below 0."""
    known = np.nan_to_num(np.asarray(positions, dtype=np.float64), nan=-1.0).astype(np.intp)
    different, where = np.unique(known, return_inverse=True)
    texts = np.empty(len(different), dtype=object)
    for number, at in enumerate(different.tolist()):
        texts[number] = "" if at < 0 else str(names[at] if len(names) else at)
    return texts[where].reshape(known.shape)


def admissible(name: str, taken: Collection[str]) -> str:
    """Return a valid name for a reported scalar that clashes with no other variable of its node."""
    plain = re.sub(r"\W", "_", name)
    return f"reported_{plain}" if plain in NOT_SCALARS or plain in taken else plain


def vector_of(record: RunRecord, variable: Variable, shape: tuple[int, ...]) -> Array:
    """Return one of the schema's vectors of a run, among those of all kernels or rows."""
    field, positions = variable.fields
    values, at = getattr(record, field), getattr(record, positions)
    is_dense = variable.dims == (KERNEL,)
    if is_dense and (record.n_kernels != shape[-1] or record.state is not RunState.COMPLETE):
        return np.full(shape, np.nan)
    whole = np.full(shape, 0.0 if is_dense else np.nan)
    of_each_kernel = variable is COEFFICIENTS and len(record.kernel_coefficients)
    if len(at) and not of_each_kernel:
        whole[..., at] = values
    return whole


def trace_of(
    record: RunRecord, variable: Variable, shape: tuple[int, ...], names: Sequence[str] | Array
) -> Array:
    """Return one variable of a run's trace, filled up to a shape with NaN, or empty text."""
    values = np.full(shape, np.nan)
    given = record.trace.get(variable.name)
    if given is not None:
        rows = np.asarray(given, dtype=np.float64)
        values[tuple(slice(size) for size in rows.shape)] = rows
    return names_at(values, names) if variable.dtype == "string" else values


def _length(record: RunRecord) -> int:
    """Return the number of iterations of a record's longest trace."""
    known = [(record.trace[v.name], v) for v in _ALONG_ITERATIONS if v.name in record.trace]
    return max((trace.shape[trace.ndim - len(v.dims)] for trace, v in known), default=0)


def _coordinate(coordinate: Coordinate) -> xr.Variable:
    import xarray as xr

    return xr.Variable(coordinate.variable.dims, coordinate.values, coordinate.variable.attributes)


def _ordered(dims: Iterable[str], values: Mapping[str, Values]) -> dict[str, xr.Variable]:
    """Return variables of runs in the order of the schema."""
    import xarray as xr

    names = sorted(values, key=lambda name: ORDER.get(name, ORDER[CHOSEN_KERNEL.name]))
    return {
        name: xr.Variable((*dims, *variable.dims), array, variable.attributes)
        for name, (variable, array) in ((name, values[name]) for name in names)
    }


def _facts(path: Path, tree: xr.DataTree) -> pd.DataFrame:
    """Return the fingerprints in a record of each data set, bank and split that has one."""
    import pandas as pd

    store, found = Journal(OutputFolder(path).records), {}
    for node in method_nodes(tree):
        ids, states = (node[v.name].transpose(SPLIT, ...).to_numpy() for v in (RUN_ID, STATE))
        for split in range(len(ids)):
            key = *[place_of(node)[name] for name in ("dataset", "bank")], split
            done = ids[split, ...][states[split, ...] == RunState.COMPLETE.value].tolist()
            record = store.read(str(done[0])) if done and key not in found else None
            if record is not None:
                found[key] = [str(record.provenance.get(name, "")) for name in _FINGERPRINTS]
    rows = [(*key, *texts) for key, texts in found.items()]
    return pd.DataFrame(rows, columns=["dataset", "bank", "split", *_FINGERPRINTS.values()])


_FINGERPRINTS = {"data_fingerprint": "data", "split_fingerprint": "rows", "bank": "bank_id"}


def joined(paths: Sequence[Path], trees: Sequence[xr.DataTree]) -> xr.DataTree:
    """Return the nodes of several results in one tree."""
    import xarray as xr

    facts = [_facts(path, tree) for path, tree in zip(paths, trees, strict=True)]
    names = _names(paths, trees)
    for i, j in combinations(range(len(paths)), 2):
        _check_alike((paths[i], paths[j]), (trees[i], trees[j]), (facts[i], facts[j]))
    banks: dict[tuple[int, str], str] = {}
    for i, own in enumerate(facts):
        others = [own.merge(other, on=["dataset", "bank", "split"])
                  for j, other in enumerate(facts) if j != i]  # fmt: skip
        for bank in {place_of(node)["bank"] for node in method_nodes(trees[i])}:
            differs = any(
                (both["bank_id_x"] != both["bank_id_y"])[both["bank"] == bank].any()
                for both in others
            )
            banks[i, bank] = _told_apart(bank, names[i], differs)
    several = len({*banks.values()}) > 1
    found: dict[str, xr.Dataset] = {}
    nodes: dict[tuple[str, ...], list[tuple[int, xr.DataTree]]] = defaultdict(list)
    for i, tree in enumerate(trees):
        for node in method_nodes(tree):
            place = place_of(node)
            alike = nodes[place["dataset"], banks[i, place["bank"]], place["method"]]
            ids = node[RUN_ID.name].to_numpy()  # of runs that two sweeps may share
            if not any(np.array_equal(ids, other[RUN_ID.name].to_numpy()) for _, other in alike):
                alike.append((i, node))
    for (dataset, bank, method), alike in nodes.items():
        for i, node in alike:
            called = _told_apart(method, names[i], len(alike) > 1)
            where = "/".join([dataset, *[bank] * several, called])
            for one in node.subtree:
                found[where + one.path.removeprefix(node.path)] = one.to_dataset()
            found[where] = found[where].assign_attrs(bank=bank)
    whole = xr.DataTree.from_dict(found)
    whole.attrs = {
        "title": f"Results of the sweeps {', '.join(names)}",
        "sweep": ", ".join(names),
        OTHER_RUNS: sum(one.attrs[OTHER_RUNS] for one in trees),
    }
    return whole


def _names(paths: Sequence[Path], trees: Sequence[xr.DataTree]) -> list[str]:
    """Return names of results: of their sweeps, of their folders, or whole paths."""
    for names in (
        [str(tree.attrs["sweep"]) for tree in trees],
        [path.resolve().name for path in paths],
    ):
        if len({*names}) == len(names):
            return names
    whole = [str(path.resolve()) for path in paths]
    if len({*whole}) < len(whole):
        raise InputError("open_results", "the same results twice", "results of several sweeps")
    return [path.replace("/", "|") for path in whole]  # a slash would part nodes


def _told_apart(name: str, sweep: str, differs: bool) -> str:
    return f"{name} ({sweep})" if differs else name


def _check_alike(
    paths: tuple[Path, Path],
    trees: tuple[xr.DataTree, xr.DataTree],
    facts: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    """Refuse two results of which a data set has other data or splits."""
    sizes = [{place_of(n)["dataset"]: n.sizes[SPLIT] for n in method_nodes(t)} for t in trees]
    for dataset in sizes[0].keys() & sizes[1].keys():
        one, two = (some[some["dataset"] == dataset] for some in facts)
        prints = {*one["data"]}, {*two["data"]}
        both, found = one.merge(two, on="split"), ""
        if not all(prints) or "" in prints[0] | prints[1]:
            found = "no complete run in one of them, which tells if the data are the same"
        elif prints[0] != prints[1]:
            found = f"other data (fingerprints {sorted(prints[0])} and {sorted(prints[1])})"
        elif sizes[0][dataset] != sizes[1][dataset]:
            found = f"{sizes[0][dataset]} splits and {sizes[1][dataset]}"
        elif (both["rows_x"] != both["rows_y"]).any():
            found = "splits of other rows"
        if found:
            raise InputError(
                f"{dataset} in {paths[0]} and {paths[1]}",
                found,
                "the same data and splits",
                "Run both sweeps with the same data, [splits] and seed; mkldist compare pairs "
                "those splits that have the same rows",
            )
