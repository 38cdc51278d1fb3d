"""A tree of results in memory with the records that the tree on disk does not hold yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkldist.results.newest import OF_TEXT, with_newest
from mkldist.results.node_arrays import nodes_in
from mkldist.results.schema import LATER_RUNS
from mkldist.results.snapshot import Snapshot

if TYPE_CHECKING:
    import xarray as xr


def newest_tree(tree: xr.DataTree, held: Snapshot) -> xr.DataTree:
    """Return a tree with the states, numbers and texts of all recorded runs; change no file.

    Vectors, such as kernel weights, and what is known of banks stay those of the tree; so do nodes
    that lack a variable of their method's own, which the first record on disk adds.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.
    held : Snapshot
        Its files, and the records beside them.
    """
    index = held.index
    nodes = nodes_in(index, sorted({*OF_TEXT}.union(*index.scalars.values())))
    found = tree.copy()
    for name, old, new in zip(index.nodes, nodes, with_newest(nodes, held), strict=True):
        if new is not old:
            data = found[name].to_dataset()
            dims = tuple(index.nodes[name])
            values = {key: (dims, array, data[key].attrs) for key, array in new.values.items()}
            found[name].dataset = data.assign(values)
    found.attrs[LATER_RUNS] = 0
    return found
