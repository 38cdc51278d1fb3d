"""Writing of records to the tree of results, region by region, by one writer at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.results.convergence import make_room, trace_array, traces_of
from mkldist.results.run_record import RunRecord
from mkldist.results.schema import (
    CLASS,
    COEFFICIENTS,
    DECISION_VALUES,
    RUN_ID,
    STATE,
    TEXTS,
    TRACES,
    WEIGHTS,
    Variable,
    reported,
    reported_of_classes,
    scalars,
)
from mkldist.results.state import RunState
from mkldist.results.tree_index import Place, TreeIndex, load
from mkldist.results.zarr_documents import (
    add_arrays,
    array_document,
    run_chunks,
)


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
        self._index = TreeIndex(Path(path), mode="r+")

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

    def _write_node(self, node: str, placed: Mapping[Place, RunRecord]) -> None:
        dims = self._index.nodes[node]
        values = {place: scalars(record, dims) for place, record in placed.items()}
        self._add_missing(node, {name for given in values.values() for name in given})
        self._add_classes(node, placed.values())
        region = _Region(placed, tuple(dims.values()))
        for name in self._index.scalars[node]:
            column = {place: given.get(name, np.nan) for place, given in values.items()}
            region.write(self._index.array(node, name), column)
        for variable in (*TEXTS, STATE):
            if variable is STATE:
                self._write_vectors(node, placed)
                self._write_classes(node, placed)
                self._write_traces(node, placed)
            texts = {place: str(getattr(r, variable.name)) for place, r in placed.items()}
            region.write(self._index.array(node, variable.name), texts)

    def _write_vectors(self, node: str, placed: Mapping[Place, RunRecord]) -> None:
        for variable, vector in _VECTORS.items():
            if self._index.holds(node, variable.name):
                array = self._index.array(node, variable.name)
                shape = array.shape[len(self._index.nodes[node]) :]
                _write_arrays(array, {place: vector(r, shape) for place, r in placed.items()})

    def _write_classes(self, node: str, placed: Mapping[Place, RunRecord]) -> None:
        """Write the values of each class."""
        names = dict.fromkeys(name for record in placed.values() for name in record.of_classes)
        for name in names:
            array = self._index.array(node, name)
            nothing = np.full(array.shape[len(self._index.nodes[node]) :], np.nan)
            values = {p: r.of_classes.get(name, nothing) for p, r in placed.items()}
            _write_arrays(array, values)

    def _write_traces(self, node: str, placed: Mapping[Place, RunRecord]) -> None:
        n_dims = len(self._index.nodes[node])
        for variable in TRACES:
            array = trace_array(self._index, node, variable)
            if array is not None:
                shape = array.shape[n_dims:]
                _write_arrays(array, {p: traces_of(r, variable, shape) for p, r in placed.items()})

    def _add_missing(self, node: str, names: set[str]) -> None:
        """Add variables for scalars that the schema does not know."""
        missing = sorted(names - self._index.scalars[node])
        if not missing:
            return
        dims = self._index.nodes[node]
        documents = {
            f"{node}/{variable.name}": variable_document(variable, dims, {})
            for variable in map(reported, missing)
        }
        add_arrays(self._index.path, documents)
        self._index.reopen()

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
        add_arrays(self._index.path, documents)
        self._index.reopen()


class _Region:
    """The chunks of some splits in a node, and the places in them that are to be written."""

    def __init__(self, places: Iterable[Place], shape: tuple[int, ...]) -> None:
        self._splits = sorted({place[0] for place in places})
        self._rows = {split: row for row, split in enumerate(self._splits)}
        self._shape = (len(self._splits), *shape[1:])
        self._covered = len(set(places)) == int(np.prod(self._shape))

    def write(self, array: Any, values: Mapping[Place, Any]) -> None:
        """Write values to their places, and leave the other places of the region as they are."""
        selection = (np.array(self._splits), *(slice(None) for _ in self._shape[1:]))
        if self._covered:
            block = np.full(self._shape, array.fill_value, dtype=array.dtype)
        else:
            block = load(array, selection)
        for (split, *rest), value in values.items():
            block[(self._rows[split], *rest)] = value
        array.set_orthogonal_selection(selection, block)


def _write_arrays(array: Any, values: Mapping[Place, Array]) -> None:
    """Write a vector or matrix per run; each chunk is read and written at most once."""
    n_dims = max(len(run) for run in values)
    grid = array.shape[1:n_dims]
    if array.chunks[1:n_dims] != grid:
        for run, value in values.items():
            array[run] = value
        return
    by_split: dict[int, dict[Place, Array]] = defaultdict(dict)
    for (split, *rest), value in values.items():
        by_split[split][tuple(rest)] = value
    for split, placed in by_split.items():
        whole = len(placed) == int(np.prod(grid))
        block = np.empty(array.shape[1:], dtype=array.dtype) if whole else load(array, (split,))
        for place, value in placed.items():
            block[place] = value
        array[split] = block


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
    """Return the metadata of a variable of a node.

    Parameters
    ----------
    variable : Variable
        The variable.
    dims : mapping of str to int
        Dims of the node's runs.
    vectors : mapping of str to int
        Sizes of the further dims, such as ``kernel``.
    """
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
