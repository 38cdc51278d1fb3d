"""Convergence traces in the tree: arrays along iterations that grow with the longest run.

The arrays begin without an iteration.  Before a longer trace is written, their shape is raised in
the metadata; chunks hold a fixed number of iterations, so that none that is written changes, and
whoever opened the tree before reads on what was there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mkldist.results.run_record import RunRecord
from mkldist.results.schema import CONVERGENCE, ITERATION, N_RANKS, RANK, TRACES, Variable
from mkldist.results.tree_index import Array, TreeIndex
from mkldist.results.zarr_documents import (
    Document,
    add_arrays,
    array_document,
    group_document,
    run_chunks,
)

ITERATIONS_PER_CHUNK = 64


def convergence_documents(node: str, dims: Mapping[str, int]) -> dict[str, Document]:
    """Return the metadata of the traces of a node, by path; none has an iteration yet.

    Parameters
    ----------
    node : str
        Path of the method's node.
    dims : mapping of str to int
        Dims of its runs.
    """
    documents = {f"{node}/{CONVERGENCE}": group_document()}
    for variable in TRACES:
        own = {ITERATION: 0, RANK: N_RANKS}
        further = {dim: own[dim] for dim in variable.dims}
        width = N_RANKS if RANK in further else 1
        of_runs = run_chunks(dims, ITERATIONS_PER_CHUNK * width)[:-1]
        chunks = (*of_runs, ITERATIONS_PER_CHUNK, N_RANKS)[: len(of_runs) + len(further)]
        documents[_path(node, variable)] = array_document(
            {**dims, **further},
            variable.dtype,
            chunks,
            fill=None if variable.dtype == "float64" else variable.fill,
            attributes=variable.attributes,
        )
    return documents


def make_room(index: TreeIndex, records: Mapping[str, list[RunRecord]]) -> None:
    """Lengthen the traces of nodes to those of the records that are to be written to them.

    Parameters
    ----------
    index : TreeIndex
        The tree.
    records : mapping of str to list of RunRecord
        Records by the path of their node.
    """
    longer: dict[str, Document] = {}
    for node, found in records.items():
        wanted = max((_length(record) for record in found), default=0)
        for variable in TRACES:
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


def traces_of(record: RunRecord, variable: Variable, shape: tuple[int, ...]) -> Array:
    """Return one variable of a run's trace, filled up to a shape with NaN, or -1 for no kernel."""
    counts = variable.dtype == "int64"
    values = np.full(shape, variable.fill if counts else np.nan, dtype=variable.dtype)
    given = record.trace.get(variable.name)
    if given is not None:
        rows = np.asarray(given, dtype=variable.dtype)
        values[tuple(slice(size) for size in rows.shape)] = rows
    return values


def trace_array(index: TreeIndex, node: str, variable: Variable) -> Any:
    """Return the zarr array of a node's traces; None if it has none or no iteration yet."""
    path = _path(node, variable)
    document = index.document(path)
    return index.array_at(path) if document and 0 not in document["shape"] else None


def _path(node: str, variable: Variable) -> str:
    return f"{node}/{CONVERGENCE}/{variable.name}"


def _length(record: RunRecord) -> int:
    return max((len(record.trace.get(v.name, ())) for v in TRACES), default=0)
