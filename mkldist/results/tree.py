"""The tree of results: made in memory from the layout of a sweep and the records of its runs."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Array
from mkldist.core.natural_order import natural_path_key
from mkldist.errors import InputError, StoreError
from mkldist.results.folder import OutputFolder, no_folder
from mkldist.results.journal import Journal
from mkldist.results.layout import LAYOUT, Coordinate, MethodNode, TreeLayout, read_layout
from mkldist.results.record import RunRecord
from mkldist.results.rows import method_nodes, place_of
from mkldist.results.schema import (
    BUILD_TIMES,
    CHOSEN_KERNEL,
    CLASS,
    COEFFICIENTS,
    CONVERGENCE,
    COUNTED,
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
from mkldist.spec.checks import given_path

if TYPE_CHECKING:
    import xarray as xr


FEW_RUNS, FEW_BYTES = 1000, 2**24
"""Vectors of so many runs, and of so many bytes, are read when a tree is opened."""
BLOCK_BYTES = 2**25  # of vectors that are read together, when they are used
_VECTORS = {vector.name: vector for vector in VECTORS}
_ALONG_ITERATIONS = tuple(variable for variable in TRACES if ITERATION in variable.dims)
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
    >>> tree["wdbc/level"].test_error.mean("split")  # doctest: +SKIP
    >>> both = mkldist.open_results("results/old", "results/new")  # doctest: +SKIP
    """
    paths = [given_path("path", one) for one in (path, *others)]
    trees = [Snapshot.of(one).tree() for one in paths]
    return joined(paths, trees) if others else trees[0]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The layout of a sweep and its records, as they were read.

    All that one command tells of a sweep at work is of the same runs.  Vectors are read later.

    Parameters
    ----------
    folder : Path
        The output folder.
    layout : TreeLayout
        The layout.
    records : mapping of str to RunRecord
        The records by the ids of their runs; their arrays may be left out.
    store : Journal
        Where the records with their arrays are.
    """

    folder: Path
    layout: TreeLayout
    records: Mapping[str, RunRecord]
    store: Journal

    @classmethod
    def of(cls, folder: Path) -> Snapshot:
        """Read what an output folder holds.

        Raises
        ------
        mkldist.errors.StoreError
            If there are no results or they are damaged.
        """
        if not (folder / LAYOUT).exists():
            if OutputFolder(folder).records.is_file():
                found, remedy = f"no {LAYOUT} beside the records", "The sweep's command makes it"
                raise StoreError(str(folder), found, "the layout of the results", remedy)
            found = "no results here" if folder.is_dir() else no_folder(folder)
            raise StoreError(str(folder), found, "a sweep's output folder")
        store = Journal(OutputFolder(folder).records)
        records = store.heads()
        return cls(folder, read_layout(folder), records, store)

    @property
    def n_others(self) -> int:
        """Number of recorded runs without a place in the tree, which earlier calls asked for."""
        placed = {i for node in self.layout.nodes for i in node.run_ids.ravel().tolist()}
        return len(self.records.keys() - placed)

    def values(self, node: MethodNode) -> dict[str, Array]:
        """Return what each run of a node has one of, and values of each class."""
        runs = _Runs(node, self.records, partial(whole_record, self.store), np.empty(0, dtype=str))
        return {name: array for name, (_, array) in runs.values().items()}

    def tree(self, *, vectors: bool = True) -> xr.DataTree:
        """Return the tree; without vectors per run and traces, no arrays of records are read."""
        import xarray as xr

        shared = {
            path: {name: _coordinate(one) for name, one in found.items()}
            for path, found in self.layout.shared.items()
        }
        groups = {path: xr.Dataset(coords=found) for path, found in shared.items()}
        for node in self.layout.nodes:
            above = {
                name: variable
                for path in _above(node.path)
                for name, variable in shared.get(path, {}).items()
            }
            names = above[KERNEL].to_numpy() if KERNEL in above else np.empty(0, dtype=str)
            runs = _Runs(node, self.records, partial(whole_record, self.store), names)
            values = runs.values()
            if vectors:
                values |= runs.of_vectors()
            groups[node.path] = _dataset(node, values, runs.coordinates(), above)
            if node.traces and vectors:
                groups[f"{node.path}/{CONVERGENCE}"] = _traces(node, runs.of_traces())
        ordered = sorted(groups, key=natural_path_key)
        tree = xr.DataTree.from_dict({f"/{path}": groups[path] for path in ordered})
        tree.attrs = {**self.layout.attributes, OTHER_RUNS: self.n_others}
        return tree


def whole_record(store: Journal, run_id: str) -> RunRecord | None:
    """Return a record with its arrays; None if its run is not recorded any more.

    Raises
    ------
    mkldist.errors.StoreError
        If the record is damaged.
    """
    record = store.read(run_id)
    if record is None and run_id in store.states():
        raise StoreError(
            str(store.path),
            f"a damaged record, of run {run_id}",
            "the records of the results",
            "Repeat the sweep's command: it does this run again",
        )
    return record


class RunArrays:
    """An array per run as one array, of which an index reads the runs that it touches.

    Parameters
    ----------
    read : callable
        Returns the record of a run, or None.
    run_ids : array of str
        The runs; an empty text where there is none.
    of_run : callable
        Returns the array of a record.
    shape : tuple of int
        Shape of this array.
    dtype : str
        ``"float64"`` or ``"string"``.
    """

    def __init__(
        self,
        read: Callable[[str], RunRecord | None],
        run_ids: Array,
        of_run: Callable[[RunRecord], Array],
        shape: tuple[int, ...],
        dtype: str,
    ) -> None:
        self._read, self._run_ids, self.of_run = read, run_ids, of_run
        self.shape = *run_ids.shape, *shape
        self.dtype = np.dtype(object if dtype == "string" else dtype)
        self.ndim = len(self.shape)

    def filled(self, shape: tuple[int, ...]) -> Array:
        """Return an array as it is without runs."""
        return np.full(shape, "" if self.dtype == object else np.nan, self.dtype)

    def __getitem__(self, key: Any) -> Array:
        """Return the entries at integers and slices."""
        key = key if isinstance(key, tuple) else (key,)
        n_dims = self._run_ids.ndim
        within = (..., *key[n_dims:]) if Ellipsis not in key else (...,)
        runs: Array = np.asarray(self._run_ids[key[:n_dims]], dtype=object)
        nothing = self.filled(self.shape[n_dims:])[within]
        values = self.filled((*runs.shape, *nothing.shape))
        for place, run_id in np.ndenumerate(runs):
            record = self._read(run_id) if run_id else None
            if record is not None:
                values[place] = self.of_run(record)[within]
        return values


class _Columns:
    """Variables of the runs of a node: those of its layout, and further ones that runs report."""

    def __init__(self, node: MethodNode) -> None:
        self._node = node
        self._taken = {*node.dims, *node.coordinates}
        self._by_given_name: dict[str, Array] = {}
        self.found: dict[str, Values] = {}
        for variable in node.variables:
            if variable.name not in _VECTORS:
                self.of(variable, node.vectors.get(CLASS, 0))
        self.found[RUN_ID.name] = self.found[RUN_ID.name][0], node.run_ids

    def of(self, variable: Variable, n_classes: int = 0) -> Array:
        """Return the values of a variable, an entry for each run, to be filled."""
        shape = self._node.run_ids.shape
        if variable.name not in self.found:
            text = variable.dtype == "string"
            whole = (*shape, *(n_classes for _ in variable.dims))
            array = np.full(whole, variable.fill if text else np.nan, object if text else float)
            self.found[variable.name] = variable, array
        values: Array = self.found[variable.name][1]
        return values.reshape(math.prod(shape), *values.shape[len(shape) :])

    def of_scalar(self, name: str) -> Array:
        """Return the values of a scalar, by the name that runs give it."""
        if name not in self._by_given_name:
            self._by_given_name[name] = self.of(reported(admissible(name, self._taken)))
        return self._by_given_name[name]


@dataclass(frozen=True, eq=False)
class _Runs:
    """Values of the runs of a node.

    Parameters
    ----------
    node : MethodNode
        The node.
    records : mapping of str to RunRecord
        Records, whose arrays may be left out.
    read : callable
        Returns a whole record, or None.
    names : array of str
        Names of the kernels; none where the tree does not have them.
    """

    node: MethodNode
    records: Mapping[str, RunRecord]
    read: Callable[[str], RunRecord | None]
    names: Array

    def _recorded(self) -> Iterator[tuple[tuple[int, ...], RunRecord]]:
        """Yield place and record of every recorded run."""
        for place, run_id in self.node.places():
            if run_id in self.records:
                yield place, self.records[run_id]

    def values(self) -> dict[str, Values]:
        """Return what each run has one of: numbers, texts, and values of each class."""
        columns = _Columns(self.node)
        texts = {text.name: columns.of(text) for text in (STATE, *TEXTS)}
        for at, run_id in enumerate(self.node.run_ids.ravel().tolist()):
            record = self.records.get(run_id)
            if record is None:
                continue
            for name, number in scalars(record).items():
                columns.of_scalar(name)[at] = number
            for name, words in texts.items():
                words[at] = str(getattr(record, name))
            if CHOSEN_KERNEL.name in record.extra:
                columns.of(CHOSEN_KERNEL)[at] = chosen_kernel(record, self.names)
            for name, given in record.of_classes.items():
                known = names_at(given, self.names) if name == OF_CLASS else given
                columns.of(reported_of_classes(name), len(given))[at] = known
        return columns.found

    def coordinates(self) -> dict[str, Coordinate]:
        """Return the node's own coordinates, with the build times of banks, which runs tell.

        All runs of a split tell the same.  A run on a share of the training rows of its split has a
        bank of its own, which they leave out.
        """
        found = {**self.node.coordinates, **self.node.sizes}
        for time in BUILD_TIMES:
            if time.name in found:
                seconds = found[time.name].values.copy()
                for (split, *_), record in self._recorded():
                    if time.name in record.times and record.split == split:
                        seconds[split] = record.times[time.name]
                found[time.name] = Coordinate(found[time.name].variable, seconds)
        return found

    def of_vectors(self) -> dict[str, Values]:
        """Return the vectors of runs."""
        wanted = {}
        for variable in self.node.variables:
            if variable.name in _VECTORS:
                shape = tuple(self.node.vectors[dim] for dim in variable.dims)
                of_run = partial(vector_of, variable=_VECTORS[variable.name], shape=shape)
                wanted[variable] = of_run, shape
        return self._arrays(wanted)

    def of_traces(self) -> dict[str, Values]:
        """Return the traces of runs, as long as the longest."""
        longest = max((_length(record) for record in self._whole()), default=0)
        sizes = {CLASS: self.node.vectors.get(CLASS, 0), ITERATION: longest, RANK: N_RANKS}
        wanted = {}
        for variable in self.node.traces:
            shape = tuple(sizes[dim] for dim in variable.dims)
            of_run = partial(trace_of, variable=variable, shape=shape, names=self.names)
            wanted[variable] = of_run, shape
        return self._arrays(wanted)

    def _whole(self) -> Iterator[RunRecord]:
        """Yield the records with their arrays."""
        for _, record in self._recorded():
            whole = self.read(record.id)
            if whole is not None:
                yield whole

    def _arrays(
        self, wanted: Mapping[Variable, tuple[Callable[[RunRecord], Array], tuple[int, ...]]]
    ) -> dict[str, Values]:
        """Return arrays per run: of few runs and bytes as numpy has them, else as dask has them."""
        recorded = np.full(self.node.run_ids.shape, "", dtype=object)
        for place, record in self._recorded():
            recorded[place] = record.id
        arrays = {
            variable: RunArrays(self.read, recorded, of_run, shape, variable.dtype)
            for variable, (of_run, shape) in wanted.items()
        }
        are_few = len(self.records) <= FEW_RUNS
        found: dict[str, Values] = {}
        small: dict[Variable, Array] = {}
        for variable, array in arrays.items():
            if are_few and 8 * math.prod(array.shape) <= FEW_BYTES:
                small[variable] = array.filled(array.shape)
                found[variable.name] = variable, small[variable]
            else:
                found[variable.name] = variable, _lazy(array, recorded.ndim)
        for place, run_id in np.ndenumerate(recorded) if small else ():
            whole = self.read(run_id) if run_id else None
            for variable, values in small.items():
                if whole is not None:
                    values[place] = arrays[variable].of_run(whole)
        return found


def _lazy(array: RunArrays, n_dims: int) -> Any:
    """Return a dask array, of blocks of whole runs."""
    import dask
    import dask.array as da

    chunks: Any = ("auto",) * n_dims + (-1,) * (array.ndim - n_dims)
    if 0 in array.shape or array.dtype == object:
        chunks = (1,) * n_dims + array.shape[n_dims:]
    meta = np.empty((0,) * array.ndim, array.dtype)
    from_array: Any = da.from_array
    with dask.config.set({"array.chunk-size": BLOCK_BYTES}):
        return from_array(array, chunks, name=False, fancy=False, meta=meta)


def vector_of(record: RunRecord, variable: Variable, shape: tuple[int, ...]) -> Array:
    """Return a vector of a run in its place among those of all kernels or rows.

    Parameters
    ----------
    record : RunRecord
        The run.
    variable : Variable
        One of :data:`mkldist.results.schema.VECTORS`, which names the fields of the record.
    shape : tuple of int
        Shape of the vector, or of those of several classes.
    """
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


def trace_of(record: RunRecord, variable: Variable, shape: tuple[int, ...], names: Array) -> Array:
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


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _coordinate(coordinate: Coordinate) -> xr.Variable:
    import xarray as xr

    return xr.Variable(coordinate.variable.dims, coordinate.values, coordinate.variable.attributes)


def _dataset(
    node: MethodNode,
    values: Mapping[str, Values],
    coordinates: Mapping[str, Coordinate],
    above: Mapping[str, xr.Variable],
) -> xr.Dataset:
    """Return a node with the coordinates that it shares with others."""
    import xarray as xr

    own = {name: _coordinate(one) for name, one in coordinates.items()}
    data = _ordered(node.dims, dict(sorted(values.items())))
    dims = {dim for variable in (*data.values(), *own.values()) for dim in variable.dims}
    shared = {name: one for name, one in above.items() if dims.issuperset(one.dims)}
    return xr.Dataset(data, {**own, **shared}, node.attributes)


def _traces(node: MethodNode, values: Mapping[str, Values]) -> xr.Dataset:
    """Return the traces of a node, with iterations and ranks counted from 1."""
    import xarray as xr

    data = _ordered(node.dims, values)
    sizes = {dim: size for variable in data.values() for dim, size in variable.sizes.items()}
    counted = {
        v.name: xr.Variable(v.dims, np.arange(1, sizes[v.name] + 1), v.attributes)
        for v in COUNTED
        if v.name in sizes
    }
    return xr.Dataset(data, counted)


def _ordered(dims: Iterable[str], values: Mapping[str, Values]) -> dict[str, xr.Variable]:
    """Return variables of runs in the order of the schema."""
    import xarray as xr

    names = sorted(values, key=lambda name: ORDER.get(name, ORDER[CHOSEN_KERNEL.name]))
    return {
        name: xr.Variable((*dims, *variable.dims), array, variable.attributes)
        for name, (variable, array) in ((name, values[name]) for name in names)
    }


OF_CLASS = f"class_{CHOSEN_KERNEL.name}"
_OWN = (
    *PROBABILITY_SCORES,
    *UNLABELLED_PROBABILITY_SCORES,
    CHOSEN_KERNEL,
    STATIONARITY_OF,
    *ON_FACTORS,
)
_KNOWN = {variable.name: variable for variable in _OWN}
_ELSEWHERE = (CHOSEN_KERNEL.name, *(time.name for time in BUILD_TIMES))
"""Numbers of records that are no scalars of runs in the tree."""


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


def scalars(record: RunRecord) -> dict[str, float]:
    """Return the scalars that a run reported, by the names that it gave them.

    :func:`admissible` makes names of variables of these.
    """
    values: dict[str, float] = {
        **record.extra, **record.counters, **record.times, **record.scores,
    }  # fmt: skip
    for name in _ELSEWHERE:
        values.pop(name, None)
    if "own_seconds" in values and "pass_seconds" in values:
        values["seconds"] = values["own_seconds"] + values["pass_seconds"]
    if record.state is RunState.COMPLETE:
        values["bias"] = record.bias
        values["objective"] = record.objective
        values["dual_objective"] = record.dual_objective
        values["gap"] = record.gap
        values["active_kernels"] = record.n_active
        values["nonzero_kernels"] = record.n_nonzero
    return values


def chosen_kernel(record: RunRecord, names: Sequence[str] | Array) -> str:
    """Return the name of the kernel that a run chose; empty if its method chooses none."""
    position = record.extra.get(CHOSEN_KERNEL.name, -1.0)
    return str(names_at(np.array([position]), names)[0])


def names_at(positions: Array, names: Sequence[str] | Array) -> Array:
    """Return the names of kernels, as text objects; empty for NaN and negative positions.

    Parameters
    ----------
    positions : float64 or int64 array
        Positions of kernels in their bank.
    names : sequence or array of str
        Names of its kernels; empty for a bank whose kernels have no names in the tree, which
        then are called by their positions.
    """
    known = np.nan_to_num(np.asarray(positions, dtype=np.float64), nan=-1.0).astype(np.intp)
    different, where = np.unique(known, return_inverse=True)
    texts = np.empty(len(different), dtype=object)
    for place, at in enumerate(different.tolist()):
        texts[place] = "" if at < 0 else str(names[at] if len(names) else at)
    return texts[where].reshape(known.shape)


def admissible(name: str, taken: Collection[str]) -> str:
    """Return a valid name for a reported scalar that clashes with no other variable.

    Parameters
    ----------
    name : str
        The name that runs gave it.
    taken : collection of str
        Names of the dims and coordinates of the node of the runs.
    """
    plain = re.sub(r"\W", "_", name)
    return f"reported_{plain}" if plain in NOT_SCALARS or plain in taken else plain


Facts = dict[int, str]
"""A fact of the records of each split, such as the fingerprint of its rows."""


@dataclass(frozen=True, eq=False)
class _Part:
    """One of the results, and what its records say of data, splits and banks.

    Parameters
    ----------
    path : Path
        Its folder.
    tree : xarray.DataTree
        Its tree.
    data, splits : dict of str to dict of int to str
        Fingerprints of the data and of the rows of each split, by data set.
    banks : dict of (str, str) to dict of int to str
        Ids of the bank of each split, by data set and name of the bank.
    """

    path: Path
    tree: xr.DataTree
    data: dict[str, Facts] = field(default_factory=lambda: defaultdict(dict))
    splits: dict[str, Facts] = field(default_factory=lambda: defaultdict(dict))
    banks: dict[tuple[str, str], Facts] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def of(cls, path: Path, tree: xr.DataTree) -> _Part:
        """Read one record of each bank and split."""
        found, store = cls(path, tree), Journal(OutputFolder(path).records)
        for node in method_nodes(tree):
            place = place_of(node)
            dataset, banks = place["dataset"], found.banks[place["dataset"], place["bank"]]
            ids = node[RUN_ID.name].transpose(SPLIT, ...).to_numpy()
            states = node[STATE.name].transpose(SPLIT, ...).to_numpy()
            for split in {*range(len(ids))} - banks.keys():
                done = ids[split][states[split] == RunState.COMPLETE.value].ravel().tolist()
                record = store.read(str(done[0])) if done else None
                if record is not None:
                    facts = {name: str(text) for name, text in record.provenance.items()}
                    found.data[dataset][split] = facts.get("data_fingerprint", "")
                    found.splits[dataset][split] = facts.get("split_fingerprint", "")
                    banks[split] = facts.get("bank", "")
        return found


def joined(paths: Sequence[Path], trees: Sequence[xr.DataTree]) -> xr.DataTree:
    """Return the nodes of several results in one tree.

    Parameters
    ----------
    paths : sequence of Path
        Their output folders.
    trees : sequence of DataTree
        Their trees.

    Returns
    -------
    DataTree
        A method or bank that results have under one name, and that differs, is called by the name
        of its sweep too, as in ``"wdbc/level (old)"``.  Nodes of the same runs are there once.

    Raises
    ------
    mkldist.errors.InputError
        If results are of other data or splits than the first of the same data set.
    """
    import xarray as xr

    parts = [_Part.of(path, tree) for path, tree in zip(paths, trees, strict=True)]
    names = _names(parts)
    for i, part in enumerate(parts):
        for other in parts[:i]:
            _check_alike(other, part)
    banks = {
        (i, bank): _told_apart(bank, names[i], _others_differ(parts, i, bank))
        for i, part in enumerate(parts)
        for _, bank in part.banks
    }
    several = len({*banks.values()}) > 1
    found: dict[str, xr.Dataset] = {}
    nodes: dict[tuple[str, ...], list[tuple[int, xr.DataTree]]] = defaultdict(list)
    for i, part in enumerate(parts):
        for node in method_nodes(part.tree):
            place = place_of(node)
            alike = nodes[place["dataset"], banks[i, place["bank"]], place["method"]]
            if not any(_same_runs(node, other) for _, other in alike):
                alike.append((i, node))
    for (dataset, bank, method), alike in nodes.items():
        for i, node in alike:
            own = _told_apart(method, names[i], len(alike) > 1)
            where = "/".join([dataset, *[bank] * several, own])
            for one in node.subtree:
                found[where + one.path.removeprefix(node.path)] = one.to_dataset()
            found[where] = found[where].assign_attrs(bank=bank)
    tree = xr.DataTree.from_dict(found)
    tree.attrs = {
        "title": f"Results of the sweeps {', '.join(names)}",
        "sweep": ", ".join(names),
        OTHER_RUNS: sum(one.attrs[OTHER_RUNS] for one in trees),
    }
    return tree


def _names(parts: Sequence[_Part]) -> list[str]:
    """Return names of results: of their sweeps, of their folders, or whole paths."""
    for names in (
        [str(part.tree.attrs["sweep"]) for part in parts],
        [part.path.resolve().name for part in parts],
    ):
        if len({*names}) == len(names):
            return names
    paths = [str(part.path.resolve()) for part in parts]
    if len({*paths}) < len(paths):
        raise InputError("open_results", "the same results twice", "results of several sweeps")
    return [path.replace("/", "|") for path in paths]  # a slash would part nodes


def _told_apart(name: str, sweep: str, differs: bool) -> str:
    return f"{name} ({sweep})" if differs else name


def _same_runs(one: xr.DataTree, other: xr.DataTree) -> bool:
    """Return True if two nodes hold the same runs, which results of two sweeps may share."""
    ids = [node[RUN_ID.name].to_numpy() for node in (one, other)]
    return np.array_equal(ids[0], ids[1])


def _others_differ(parts: Sequence[_Part], number: int, bank: str) -> bool:
    """Return True if other results have another bank of this name on a data set that both have."""
    own = {dataset: facts for (dataset, name), facts in parts[number].banks.items() if name == bank}
    return any(
        not _agree(facts, other.banks[dataset, bank])
        for i, other in enumerate(parts)
        for dataset, facts in own.items()
        if i != number and (dataset, bank) in other.banks
    )


def _agree(one: Facts, other: Facts) -> bool:
    """Return True if facts are the same on the splits that both know."""
    return all(one[split] == other[split] for split in one.keys() & other.keys())


def _check_alike(one: _Part, other: _Part) -> None:
    """Refuse two results of which a data set has other data or splits."""
    for dataset in {place_of(node)["dataset"] for node in method_nodes(one.tree)}:
        if dataset not in {place_of(node)["dataset"] for node in method_nodes(other.tree)}:
            continue
        found = ""
        prints = {*one.data[dataset].values()}, {*other.data[dataset].values()}
        sizes = [_n_splits(part, dataset) for part in (one, other)]
        if not all(prints) or "" in prints[0] | prints[1]:
            found = "no complete run in one of them, which tells if the data are the same"
        elif prints[0] != prints[1]:
            texts = " and ".join(", ".join(sorted(some)) for some in prints)
            found = f"other data (fingerprints {texts})"
        elif sizes[0] != sizes[1]:
            found = f"{sizes[0]} splits and {sizes[1]}"
        elif not _agree(one.splits[dataset], other.splits[dataset]):
            found = "splits of other rows"
        if found:
            raise InputError(
                f"{dataset} in {one.path} and {other.path}",
                found,
                "the same data and splits",
                "Run both sweeps with the same data, [splits] and seed; mkldist compare pairs "
                "those splits that have the same rows",
            )


def _n_splits(part: _Part, dataset: str) -> int:
    nodes = [n for n in method_nodes(part.tree) if place_of(n)["dataset"] == dataset]
    return int(nodes[0].sizes[SPLIT])
