"""Chunks that a tree of results must have and has not.

Coordinates and ids are written with the tree, in all of their chunks.  A run is written with all
variables of its node before its state says that it is recorded, and the states of its split are
written before both.  So a chunk that may be absent is one that holds no recorded run.  Traces grow
with the longest run, so that their chunks may be absent; :func:`mkldist.results.tree_check.\
differing_runs` compares them with the records.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.results.array_chunks import chunk_names, read_array
from mkldist.results.schema import CONVERGENCE, RUN_ID, STATE
from mkldist.results.state import RunState
from mkldist.results.zarr_documents import COORDINATE_NAMES, Document

_RECORDED = [state.value for state in RunState if state.is_recorded]


def lost_chunks(
    root: Path, documents: Mapping[str, Document], absent: Set[str] | None = None
) -> list[str]:
    """Return the paths of the chunks that a tree must have and has not.

    Parameters
    ----------
    root : Path
        The tree.
    documents : mapping of str to dict
        Documents of its nodes and arrays, by path.
    absent : set of str, optional
        Paths of the chunks that were not there a moment ago, all of them; by default each is looked
        for.

    Raises
    ------
    ValueError, RuntimeError, OSError
        If states cannot be read.
    """
    nodes = {p.rpartition("/")[0] for p in documents if p.endswith(f"/{RUN_ID.name}")}
    by_node: dict[str, list[str]] = {node: [] for node in nodes}
    lost: list[str] = []
    for path, document in documents.items():
        node, _, name = path.rpartition("/")
        above, _, group = node.rpartition("/")
        if document["node_type"] != "array" or (group == CONVERGENCE and above in nodes):
            continue
        if node not in nodes or _is_coordinate(name, document, documents[node]):
            lost += _absent(root / path, chunk_names(document), absent)
        elif name != STATE.name:
            by_node[node].append(path)
    for node, paths in by_node.items():
        variables = {path: documents[path] for path in paths}
        lost += _lost_of_node(root, node, variables, documents, absent)
    return lost


def _lost_of_node(
    root: Path,
    node: str,
    variables: Mapping[str, Document],
    documents: Mapping[str, Document],
    absent: Set[str] | None,
) -> Iterator[str]:
    """Yield the lost chunks of variables of a node, states last."""
    of_states = documents[f"{node}/{STATE.name}"]
    folder = root / node / STATE.name
    recorded = np.isin(read_array(folder, of_states).astype(str), _RECORDED)
    begun: set[int] = set()  # splits of which some variable has a chunk
    for path, document in variables.items():
        demanded = _chunks_of(recorded, document)
        for name in chunk_names(document):
            index = tuple(map(int, name.split("/")[1:]))
            where = f"{root}/{path}/{name}"
            if _is_there(where, absent):
                begun.add(index[0])
            elif demanded[index[: recorded.ndim]]:
                yield where
    # A sweep may write while this reads: of a split that has begun, the states are there now.
    for where in _absent(folder, chunk_names(of_states), absent):
        if int(where[len(f"{folder}/c/") :].partition("/")[0]) in begun:
            yield where


def _chunks_of(recorded: Array, document: Document) -> Array:
    """Return for each place of the chunk grid along the dims of runs if it holds such a run."""
    widths: list[int] = document["chunk_grid"]["configuration"]["chunk_shape"][: recorded.ndim]
    found = recorded
    for axis, width in enumerate(widths):
        if found.shape[axis]:
            starts = np.arange(0, found.shape[axis], width)
            found = np.logical_or.reduceat(found, starts, axis=axis)
    return found


def _is_coordinate(name: str, document: Document, group: Mapping[str, Any]) -> bool:
    """Return True for what is written with the tree: coordinates of a node, and its run ids."""
    named: str = group.get("attributes", {}).get(COORDINATE_NAMES, "")
    return name == RUN_ID.name or name in named.split() or document["dimension_names"] == [name]


def _absent(folder: Path, names: Iterable[str], absent: Set[str] | None) -> Iterator[str]:
    """Yield the paths of the files that are not there."""
    for name in names:
        path = f"{folder}/{name}"
        if not _is_there(path, absent):
            yield path


def _is_there(path: str, absent: Set[str] | None) -> bool:
    """Return True if a file is there; one that was absent a moment ago may be there now."""
    was_there = absent is not None and path not in absent
    return was_there or os.path.exists(path)  # noqa: PTH110, thousands of them
