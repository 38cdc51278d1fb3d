"""Results that have caught up with the records: what every command of tables and figures reads."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.errors import MkldistError
from mkldist.results.lost_chunks import lost_chunks
from mkldist.results.manifest import manifest_name
from mkldist.results.output import OutputFolder, claimed
from mkldist.results.records import RecordStore
from mkldist.results.snapshot import Snapshot
from mkldist.results.tree import catch_up, current, read_tree
from mkldist.results.tree_index import damaged
from mkldist.results.writer import TreeWriter
from mkldist.results.zarr_documents import read_root

if TYPE_CHECKING:
    import xarray as xr


def caught_up(path: str | Path) -> xr.DataTree:
    """Carry records into the tree of a sweep that is not at work, and open it.

    A sweep that is killed leaves runs that are recorded and not yet in the tree.  The tree stays as
    it is while a process is at work on the sweep, and where it cannot be written; the attribute
    ``later_runs`` then is the number of runs that it lacks.

    Parameters
    ----------
    path : str or Path
        The sweep's output folder, or the ``results.zarr`` in it.

    Raises
    ------
    mkldist.errors.StoreError
        If there are no results, they are damaged, or they lack a file, whose values would else
        read as missing.
    """
    tree = current(path)
    folder = OutputFolder(tree.parent)
    if Snapshot.of(tree).n_behind and folder.results == tree:
        with suppress(MkldistError, OSError), claimed(folder.path, manifest_name(folder.path)):
            catch_up(TreeWriter(tree), RecordStore(folder.records))
    _refuse_lost(tree)
    return read_tree(path)


def _refuse_lost(tree: Path) -> None:
    """Refuse a tree that lacks a chunk of a recorded run."""
    try:
        lost = lost_chunks(tree, read_root(tree)["consolidated_metadata"]["metadata"])
    except (ValueError, OSError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise damaged(tree, error) from error
    if lost:
        raise damaged(Path(lost[0]), FileNotFoundError("the file is not there"))
