"""Runs of each method with the records that the tree of results does not hold yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mkldist.counted import counted
from mkldist.results.node_arrays import NodeArrays
from mkldist.results.reported import scalars
from mkldist.results.run_record import RunRecord
from mkldist.results.schema import STATE, TEXTS
from mkldist.results.snapshot import Snapshot
from mkldist.results.tree_index import Place

OF_TEXT = {STATE.name, *(variable.name for variable in TEXTS)}


def later_words(count: int) -> str:
    """Return a sentence on runs that were recorded later; nothing without any.

    Examples
    --------
    >>> later_words(2)
    '2 runs were recorded after the results were last written.'
    >>> later_words(0)
    ''
    """
    if not count:
        return ""
    runs = f"{counted(count, 'run')} {'was' if count == 1 else 'were'} recorded"
    return f"{runs} after the results were last written."


def others_words(count: int) -> str:
    """Return a sentence on recorded runs that have no place in the results; nothing without any.

    Examples
    --------
    >>> others_words(0)
    ''
    """
    if not count:
        return ""
    runs = counted(count, "more run is", "more runs are")
    return (
        f"{runs} recorded, and left out here: the last call of the sweep did not ask for them. "
        "A call that does shows them again, and repeats none."
    )


def with_newest(nodes: Sequence[NodeArrays], held: Snapshot) -> list[NodeArrays]:
    """Return the runs of a tree, those that were recorded since included; change no file.

    Parameters
    ----------
    nodes : sequence of NodeArrays
        The nodes of the tree in the order of its index, with their states.
    held : Snapshot
        The tree and the records.  Those of runs that the tree holds are not read.
    """
    behind: dict[str, dict[Place, RunRecord]] = defaultdict(dict)
    index, recorded = held.index, held.recorded
    by_path = dict(zip(index.nodes, nodes, strict=True))
    for path, node in by_path.items():
        known = zip(index.run_ids[path].flat, node.values[STATE.name].flat, strict=True)
        for run_id in [i for i, state in known if recorded.get(i, state) != state]:
            record = held.store.read(run_id)
            if record is not None:
                behind[path][index.places[run_id][1]] = record
    return [
        _updated(node, behind[path], index.nodes[path]) if path in behind else node
        for path, node in by_path.items()
    ]


def _updated(
    node: NodeArrays, records: dict[Place, RunRecord], dims: Collection[str]
) -> NodeArrays:
    """Return a node with the values of some records."""
    values = {name: array.copy() for name, array in node.values.items()}
    for place, record in records.items():
        numbers: dict[str, Any] = scalars(record, dims)
        for name, array in values.items():
            if name in OF_TEXT:
                array[place] = str(getattr(record, name))
            else:
                array[place] = numbers.get(name, np.nan)
    return replace(node, values=values)
