"""Writing of records to the tree of results, region by region, by one writer at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.results.array_chunks import fill_of, write_rows
from mkldist.results.convergence import make_room, write_traces
from mkldist.results.reported import (
    OF_CLASS,
    chosen_kernel,
    names_at,
    reported,
    reported_of_classes,
    scalars,
)
from mkldist.results.run_record import RunRecord
from mkldist.results.schema import (
    BUILD_TIMES,
    CHOSEN_KERNEL,
    CLASS,
    COEFFICIENTS,
    DECISION_VALUES,
    KERNEL,
    RUN_ID,
    STATE,
    TEXTS,
    WEIGHTS,
    Variable,
)
from mkldist.results.state import RunState
from mkldist.results.tree_index import Place, TreeIndex, linked
from mkldist.results.zarr_documents import (
    Document,
    add_arrays,
    array_document,
    run_chunks,
)

RECORDS_AT_ONCE = 512


class TreeWriter:
    """Writer of a tree of results, of which there must be only one at a time.

    A record is written to the place of its id, which changes only chunks of its split.  Its state
    is written after its values, so that a reader who finds "complete" also finds the values.

    Parameters
    ----------
    path : Path
        The tree, a folder ``*.zarr``.

    Raises
    ------
    mkldist.errors.StoreError
        If the tree is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._index = TreeIndex(linked(Path(path)))
        self._names: dict[str, list[str]] = {}

    def __contains__(self, run_id: str) -> bool:
        """Return True if the run has a place in the tree."""
        return run_id in self._index.places

    def states(self) -> dict[str, RunState]:
        """Return the state of every run in the tree."""
        return self._index.states()

    def in_order(self, run_ids: Iterable[str]) -> list[str]:
        """Return the runs that have a place, sorted by their places."""
        placed = (run_id for run_id in run_ids if run_id in self)
        return sorted(placed, key=self._index.places.__getitem__)

    def write(self, records: Iterable[RunRecord]) -> int:
        """Write records to their places, and return the number of records that have one.

        Many records at once take less time than one by one, because a chunk holds all runs of a
        method on a split.
        """
        by_node: dict[str, dict[Place, RunRecord]] = defaultdict(dict)
        for record in records:
            if record.id in self:
                node, place = self._index.places[record.id]
                by_node[node][place] = record
        make_room(self._index, {node: list(placed.values()) for node, placed in by_node.items()})
        for node, placed in by_node.items():
            self._write_node(node, placed)
        return sum(len(placed) for placed in by_node.values())

    def write_all(
        self, run_ids: Iterable[str], read: Callable[[str], RunRecord | None]
    ) -> list[str]:
        """Write the records of many runs, and return the ids of those that were written.

        They are read some hundred at a time, in the order of their places, so that few chunks are
        written twice and few records are in memory.

        Parameters
        ----------
        run_ids : iterable of str
            The runs; those without a place are left out.
        read : callable
            Returns the record of a run, or None without one.
        """
        ordered, written = self.in_order(run_ids), list[str]()
        for start in range(0, len(ordered), RECORDS_AT_ONCE):
            portion = ordered[start : start + RECORDS_AT_ONCE]
            found = {run_id: read(run_id) for run_id in portion}
            self.write(record for record in found.values() if record is not None)
            written += [run_id for run_id, record in found.items() if record is not None]
        return written

    def _write_node(self, node: str, placed: Mapping[Place, RunRecord]) -> None:
        dims = self._index.nodes[node]
        values = {place: scalars(record, dims) for place, record in placed.items()}
        texts = {place: self._texts(node, record) for place, record in placed.items()}
        of_texts = dict.fromkeys(name for given in texts.values() for name in given)
        self._add_missing(node, {name for given in values.values() for name in given} | {*of_texts})
        self._add_classes(node, placed.values())
        region = _Region(self._index, node, placed)
        region.begin()
        for name in self._index.scalars[node]:
            region.write(name, {p: given.get(name, np.nan) for p, given in values.items()})
        for name in of_texts:
            if name != STATE.name:
                region.write(name, {place: given.get(name, "") for place, given in texts.items()})
        self._write_build_times(node, placed)
        self._write_vectors(node, placed)
        self._write_classes(node, placed)
        write_traces(self._index, node, placed, self._kernel_names(node))
        region.write(STATE.name, {place: given[STATE.name] for place, given in texts.items()})

    def _texts(self, node: str, record: RunRecord) -> dict[str, str]:
        """Return the texts of a run by the names of their variables."""
        texts = {v.name: str(getattr(record, v.name)) for v in (*TEXTS, STATE)}
        if CHOSEN_KERNEL.name in record.extra:
            texts[CHOSEN_KERNEL.name] = chosen_kernel(record, self._kernel_names(node))
        elif self._index.holds(node, CHOSEN_KERNEL.name):
            texts[CHOSEN_KERNEL.name] = ""
        return texts

    def _kernel_names(self, node: str) -> list[str]:
        """Return the names of the kernels of a node; none where the tree does not have them."""
        above = node.rpartition("/")[0]
        if above not in self._names:
            known = self._index.holds(above, KERNEL)
            self._names[above] = self._index.read(above, KERNEL).tolist() if known else []
        return self._names[above]

    def _write_build_times(self, node: str, placed: Mapping[Place, RunRecord]) -> None:
        """Write the build times of the banks of splits, which all runs of a split tell alike.

        A run on a share of the training rows of its split has a bank of its own, which they leave
        out.
        """
        for name in (time.name for time in BUILD_TIMES):
            told = {
                split: record.times[name]
                for (split, *_), record in placed.items()
                if name in record.times and record.split == split
            }
            values = self._index.read(node, name) if told else np.empty(0)
            if any(values[split] != seconds for split, seconds in told.items()):
                values[[*told]] = [*told.values()]
                self._index.write(node, name, (), values)

    def _write_vectors(self, node: str, placed: Mapping[Place, RunRecord]) -> None:
        for variable, vector in _VECTORS.items():
            if self._index.holds(node, variable.name):
                shape = self._index.shape_of_run(node, variable.name)
                values = {place: vector(record, shape) for place, record in placed.items()}
                _write_arrays(self._index, node, variable.name, values)

    def _write_classes(self, node: str, placed: Mapping[Place, RunRecord]) -> None:
        """Write the values of each class."""
        for name in self._index.of_classes[node]:
            nothing = np.full(self._index.shape_of_run(node, name), np.nan)
            values = {p: r.of_classes.get(name, nothing) for p, r in placed.items()}
            if name == OF_CLASS:
                known = self._kernel_names(node)
                values = {place: names_at(found, known) for place, found in values.items()}
            _write_arrays(self._index, node, name, values)

    def _add_missing(self, node: str, names: set[str]) -> None:
        """Add variables for scalars that the schema does not know."""
        missing = sorted(name for name in names if not self._index.holds(node, name))
        if not missing:
            return
        dims = self._index.nodes[node]
        documents = {
            f"{node}/{variable.name}": variable_document(variable, dims, {})
            for variable in map(reported, missing)
        }
        self._add(node, documents)

    def _add_classes(self, node: str, records: Iterable[RunRecord]) -> None:
        """Add variables for scalars of each class that the schema does not know."""
        sizes = {name: len(a) for r in records for name, a in r.of_classes.items()}
        missing = {name: n for name, n in sizes.items() if not self._index.holds(node, name)}
        if not missing:
            return
        dims = self._index.nodes[node]
        documents = {
            f"{node}/{name}": variable_document(reported_of_classes(name), dims, {CLASS: n})
            for name, n in sorted(missing.items())
        }
        self._add(node, documents)

    def _add(self, node: str, documents: Mapping[str, Document]) -> None:
        """Add variables, after chunks without values for the splits that have begun.

        So every variable has a chunk wherever there are states, and a chunk that is lost is seen.
        """
        for split in filter(partial(_has_begun, self._index, node), range(self._n_splits(node))):
            for path, document in documents.items():
                shape, dtype = document["shape"][1:], document["data_type"]
                kind = object if dtype == "string" else dtype
                nothing = np.full(shape, fill_of(document), dtype=kind)
                folder = self._index.path / path
                write_rows(folder, document, (split,), nothing, self._index.path.parent)
        add_arrays(self._index.path, documents)
        self._index.reopen()

    def _n_splits(self, node: str) -> int:
        return next(iter(self._index.nodes[node].values()))


class _Region:
    """The chunks of some splits in a node, and the places in them that are to be written."""

    def __init__(self, index: TreeIndex, node: str, places: Iterable[Place]) -> None:
        self._index, self._node = index, node
        self._grid = tuple(index.nodes[node].values())[1:]
        self._by_split: dict[int, set[Place]] = defaultdict(set)
        for split, *rest in places:
            self._by_split[split].add(tuple(rest))

    def begin(self) -> None:
        """Write the states of splits that have none yet, so that their values do not come first.

        A chunk of states that is absent beside others of its split is then known to be lost.
        """
        for split in self._by_split:
            if not _has_begun(self._index, self._node, split):
                states = self._index.read(self._node, STATE.name, (split,))
                self._index.write(self._node, STATE.name, (split,), states)

    def write(self, name: str, values: Mapping[Place, Any]) -> None:
        """Write values to their places, and leave the other places of the region as they are."""
        for split, rests in self._by_split.items():
            if len(rests) == math.prod(self._grid):
                block = np.empty(self._grid, dtype=object)
            else:
                block = self._index.read(self._node, name, (split,))
            for rest in rests:
                block[rest] = values[split, *rest]
            self._index.write(self._node, name, (split,), block)


def _has_begun(index: TreeIndex, node: str, split: int) -> bool:
    """Return True if the states of a split of a node are written."""
    folder = index.path / node / STATE.name / "c" / str(split)
    return folder.joinpath(*("0" for _ in [*index.nodes[node]][1:])).is_file()


def _write_arrays(index: TreeIndex, node: str, name: str, values: Mapping[Place, Array]) -> None:
    """Write a vector or matrix per run; each chunk is read and written at most once."""
    n_dims = max(len(run) for run in values)
    shape, chunks = index.shape_and_chunks(node, name)
    grid = shape[1:n_dims]
    if chunks[1:n_dims] != grid:
        for run, value in values.items():
            index.write(node, name, run, value)
        return
    by_split: dict[int, dict[Place, Array]] = defaultdict(dict)
    for (split, *rest), value in values.items():
        by_split[split][tuple(rest)] = value
    for split, placed in by_split.items():
        whole = len(placed) == math.prod(grid)
        some = next(iter(placed.values()))
        block = np.empty(shape[1:], some.dtype) if whole else index.read(node, name, (split,))
        for place, value in placed.items():
            block[place] = value
        index.write(node, name, (split,), block)


def _weights(record: RunRecord, shape: tuple[int, ...]) -> Array:
    if record.n_kernels != shape[-1] or record.state is not RunState.COMPLETE:
        return np.full(shape, np.nan)
    return record.kernel_weights


def _decision_values(record: RunRecord, shape: tuple[int, ...]) -> Array:
    values = np.full(shape, np.nan)
    if len(record.test_rows):
        values[..., record.test_rows] = record.decision_values
    return values


def _coefficients(record: RunRecord, shape: tuple[int, ...]) -> Array:
    values = np.full(shape, np.nan)
    if len(record.train_rows) and not len(record.kernel_coefficients):
        values[..., record.train_rows] = record.coefficients
    return values


_VECTORS = {WEIGHTS: _weights, DECISION_VALUES: _decision_values, COEFFICIENTS: _coefficients}


def variable_document(
    variable: Variable, dims: Mapping[str, int], vectors: Mapping[str, int]
) -> dict[str, Any]:
    """Return the metadata of a variable of a node."""
    further = {dim: vectors[dim] for dim in variable.dims}
    sizes = {**dims, **further}
    chunks = run_chunks(dims, math.prod(further.values()) if further else None)
    if further:
        *above, _ = (max(size, 1) for size in further.values())
        *of_runs, last = chunks
        chunks = (*of_runs, *above, max(last // math.prod(above), 1))
    if variable is RUN_ID:
        chunks = tuple(max(size, 1) for size in dims.values())
    fill = variable.fill if variable.dtype == "string" else None
    return array_document(sizes, variable.dtype, chunks, fill=fill, attributes=variable.attributes)
