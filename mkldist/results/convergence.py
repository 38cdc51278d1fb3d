"""Convergence traces in the tree: arrays along iterations, as long as the longest trace.

The arrays begin with no iteration.  Before a longer trace is written, the metadata receive the new
shape.  Chunks hold a fixed number of iterations, so no chunk that is written changes, and a reader
who opened the tree earlier still reads what it held then.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.results.array_chunks import fill_of
from mkldist.results.reported import names_at
from mkldist.results.run_record import RunRecord
from mkldist.results.schema import (
    CLASS,
    CONVERGENCE,
    ITERATION,
    N_RANKS,
    RANK,
    TRACES,
    Variable,
)
from mkldist.results.tree_index import Place, TreeIndex
from mkldist.results.zarr_documents import (
    Document,
    add_arrays,
    array_document,
    group_document,
    run_chunks,
)

ITERATIONS_PER_CHUNK = 64
_ALONG_ITERATIONS = tuple(variable for variable in TRACES if ITERATION in variable.dims)


def convergence_documents(
    node: str, dims: Mapping[str, int], variables: Iterable[Variable], n_classes: int
) -> dict[str, Document]:
    """Return the metadata of the traces of a node, by path, with no iteration yet.

    Parameters
    ----------
    node : str
        Path of the method's node.
    dims : mapping of str to int
        Dims of its runs.
    variables : iterable of Variable
        The traces.
    n_classes : int
        Size of the dim of classes, for traces that have this dim.
    """
    documents = {f"{node}/{CONVERGENCE}": group_document()}
    for variable in variables:
        own = {CLASS: n_classes, ITERATION: 0, RANK: N_RANKS}
        chunk = {CLASS: n_classes, ITERATION: ITERATIONS_PER_CHUNK, RANK: N_RANKS}
        further = {dim: own[dim] for dim in variable.dims}
        widths = [chunk[dim] for dim in variable.dims]
        chunks = (*run_chunks(dims, math.prod(widths))[:-1], *widths)
        documents[_path(node, variable)] = array_document(
            {**dims, **further},
            variable.dtype,
            chunks,
            attributes=variable.attributes,
        )
    return documents


def make_room(index: TreeIndex, records: Mapping[str, list[RunRecord]]) -> None:
    """Make the traces of nodes as long as those of the records that will be written to them."""
    longer: dict[str, Document] = {}
    for node, found in records.items():
        wanted = max((_length(record) for record in found), default=0)
        for variable in _ALONG_ITERATIONS:
            path = _path(node, variable)
            document = index.document(path)
            axis = document["dimension_names"].index(ITERATION) if document else 0
            if document and document["shape"][axis] < wanted:
                shape = [*document["shape"]]
                shape[axis] = wanted
                longer[path] = {**document, "shape": shape}
    if longer:
        add_arrays(index.path, longer)
        index.reopen()


def write_traces(
    index: TreeIndex, node: str, records: Mapping[Place, RunRecord], names: Sequence[str]
) -> None:
    """Write the traces of some runs of a node, for which :func:`make_room` has made room.

    Only chunks of iterations that a run reaches are written, and those that were written before:
    few runs are as long as the longest.

    Parameters
    ----------
    index : TreeIndex
        The tree.
    node : str
        Path of the method's node.
    records : mapping of Place to RunRecord
        The runs by their places.
    names : sequence of str
        Names of the kernels, see :func:`mkldist.results.reported.names_at`.
    """
    for variable in TRACES:
        path = _path(node, variable)
        document = index.document(path)
        if document is None or 0 in document["shape"]:
            continue
        chunk = document["chunk_grid"]["configuration"]["chunk_shape"]
        by_chunk: dict[Place, dict[Place, Array | None]] = defaultdict(dict)
        for place, record in records.items():
            pairs = [divmod(at, width) for at, width in zip(place, chunk, strict=False)]
            of_runs, within = zip(*pairs, strict=True)
            by_chunk[of_runs][within] = record.trace.get(variable.name)
        for of_runs, traces in by_chunk.items():
            _write_group(index, path, document, of_runs, traces, names)


def _write_group(
    index: TreeIndex,
    path: str,
    document: Document,
    of_runs: Place,
    traces: Mapping[Place, Array | None],
    names: Sequence[str],
) -> None:
    """Write the traces of runs whose chunks have the same place along the dims of runs.

    `traces` are by the places of the runs within a chunk; None for a run without one.
    """
    chunk = document["chunk_grid"]["configuration"]["chunk_shape"]
    names_of_dims, n_dims = document["dimension_names"], len(of_runs)
    axis = names_of_dims.index(ITERATION if ITERATION in names_of_dims else RANK)
    width, fill = chunk[axis], fill_of(document)
    for number in range(math.ceil(document["shape"][axis] / width)):
        steps = (slice(None),) * (axis - n_dims) + (slice(number * width, (number + 1) * width),)
        parts = {at: np.empty(0) if t is None else np.asarray(t)[steps] for at, t in traces.items()}
        where = (*of_runs, *(number * (dim == axis) for dim in range(n_dims, len(chunk))))
        before = index.read_chunk(path, where)
        if before is None and not any(part.size for part in parts.values()):
            continue
        is_text = document["data_type"] == "string"
        values = np.full(chunk, fill, dtype=object if is_text else np.float64)
        if before is not None:
            values[:] = before
        for at, part in parts.items():
            values[at] = fill
            filled: tuple[Any, ...] = (*at, *map(slice, part.shape))
            if part.size:
                values[filled] = names_at(part, names) if is_text else part
        index.write_chunk(path, where, values)


def traces_of(
    record: RunRecord, variable: Variable, shape: tuple[int, ...], names: Sequence[str]
) -> Array:
    """Return one variable of a run's trace, filled up to a shape with NaN, or empty text.

    Parameters
    ----------
    record : RunRecord
        The run.
    variable : Variable
        One of :data:`mkldist.results.schema.TRACES`.
    shape : tuple of int
        Shape to fill up to.
    names : sequence of str
        Names of the kernels, see :func:`mkldist.results.reported.names_at`.
    """
    values = np.full(shape, np.nan)
    given = record.trace.get(variable.name)
    if given is not None:
        rows = np.asarray(given, dtype=np.float64)
        values[tuple(slice(size) for size in rows.shape)] = rows
    return names_at(values, names) if variable.dtype == "string" else values


def trace_shape(index: TreeIndex, node: str, variable: Variable) -> tuple[int, ...] | None:
    """Return the shape of a node's trace without the dims of runs.

    It is None without such a trace or without an iteration.
    """
    document = index.document(_path(node, variable))
    if document is None or 0 in document["shape"]:
        return None
    return tuple(document["shape"][len(index.nodes[node]) :])


def _path(node: str, variable: Variable) -> str:
    return f"{node}/{CONVERGENCE}/{variable.name}"


def _length(record: RunRecord) -> int:
    """Return the number of iterations of a record's longest trace."""
    given = ((record.trace[v.name], v) for v in _ALONG_ITERATIONS if v.name in record.trace)
    return max((trace.shape[trace.ndim - len(v.dims)] for trace, v in given), default=0)
