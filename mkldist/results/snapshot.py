"""What the output folder of a sweep holds, listed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mkldist.results.output import OutputFolder
from mkldist.results.records import RecordStore
from mkldist.results.state import RunState
from mkldist.results.tree_index import TreeIndex


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A tree of results and the records beside it, as they were listed.

    All that one command tells of a sweep at work is of the same runs.  Values are read later.

    Parameters
    ----------
    tree : Path
        The tree.
    store : RecordStore
        The records, which may be ahead of the tree.
    recorded : mapping of str to RunState
        The runs that had a record, and their states.
    """

    tree: Path
    store: RecordStore
    recorded: Mapping[str, RunState]

    @classmethod
    def of(cls, tree: Path) -> Snapshot:
        """List the records beside a tree."""
        store = RecordStore(OutputFolder(tree.parent).records)
        return cls(tree, store, store.ids())

    @cached_property
    def index(self) -> TreeIndex:
        """Nodes, variables and run ids of the tree, read when they are first used."""
        return TreeIndex(self.tree)

    @property
    def n_others(self) -> int:
        """Number of recorded runs without a place in the tree, which earlier calls asked for."""
        return len(self.recorded.keys() - self.index.places.keys()) if self.recorded else 0

    @property
    def n_behind(self) -> int:
        """Number of recorded runs whose state the tree does not hold yet."""
        if not self.recorded:
            return 0
        known = self.index.states()
        return sum(known.get(i, state) is not state for i, state in self.recorded.items())
