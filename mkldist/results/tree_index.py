"""Index of a tree of results on disk: its nodes, their variables, and the place of each run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mkldist.arrays import Array
from mkldist.errors import StoreError
from mkldist.results.array_chunks import read_array
from mkldist.results.schema import RUN_ID, STATE
from mkldist.results.state import RunState
from mkldist.results.zarr_documents import Document, read_root

Place = tuple[int, ...]


class TreeIndex:
    """Nodes, variables and places of a tree, read from its metadata and run ids.

    Parameters
    ----------
    path : Path
        The tree, a folder ``*.zarr``.
    mode : str
        ``"r"`` to read, ``"r+"`` for the process that writes.

    Attributes
    ----------
    nodes : dict of str to dict of str to int
        Dims of the runs of each method's node, by its path.
    scalars : dict of str to set of str
        Names of the variables of each node with one number per run, coordinates left out.
    places : dict of str to (str, tuple of int)
        Node and index of each run by its id.

    Raises
    ------
    mkldist.errors.StoreError
        If the tree is damaged.
    """

    def __init__(self, path: Path, mode: Literal["r", "r+"] = "r") -> None:
        self.path = Path(path)
        self._mode: Literal["r", "r+"] = mode
        self._group: Any = None
        self.nodes: dict[str, dict[str, int]] = {}
        self.scalars: dict[str, set[str]] = {}
        self.reopen()
        self.places: dict[str, tuple[str, Place]] = {
            str(run_id): (node, place)
            for node in self.nodes
            for place, run_id in np.ndenumerate(self.read(node, RUN_ID.name))
            if run_id
        }

    def reopen(self) -> None:
        """Read the metadata anew."""
        self._group = None
        try:
            self._documents = read_root(self.path)["consolidated_metadata"]["metadata"]
        except (ValueError, OSError) as error:
            raise damaged(self.path, error) from error
        self.nodes = {
            path.rpartition("/")[0]: _sizes(document)
            for path, document in self._documents.items()
            if path.endswith(f"/{RUN_ID.name}")
        }
        self.scalars = {node: set() for node in self.nodes}
        for path, document in self._documents.items():
            node, _, name = path.rpartition("/")
            dims = self.nodes.get(node)
            if dims and _sizes(document) == dims and document["data_type"] == "float64":
                self.scalars[node].add(name)
        for node, names in self.scalars.items():
            attributes = self._documents.get(node, {}).get("attributes", {})
            names.difference_update(attributes.get("coordinates", "").split())

    def holds(self, node: str, name: str) -> bool:
        """Return True if a node has a variable of this name."""
        return f"{node}/{name}" in self._documents

    def document(self, path: str) -> Document | None:
        """Return the metadata of an array or group, or None if it is missing."""
        document: Document | None = self._documents.get(path)
        return document

    def array(self, node: str, name: str) -> Any:
        """Return the zarr array of a node's variable."""
        return self.array_at(f"{node}/{name}")

    def array_at(self, path: str) -> Any:
        """Return the zarr array of a path."""
        if self._group is None:
            import zarr

            try:
                self._group = zarr.open_group(self.path, mode=self._mode, use_consolidated=True)
            except (ValueError, OSError) as error:
                raise damaged(self.path, error) from error
        return self._group[path]

    def states(self) -> dict[str, RunState]:
        """Return the state of every run in the tree."""
        states = {node: self.read(node, STATE.name) for node in self.nodes}
        return {
            run_id: RunState(str(states[node][place]))
            for run_id, (node, place) in self.places.items()
        }

    def read(self, node: str, name: str) -> Array:
        """Return the values of a node's variable, read without zarr; text as objects."""
        path = f"{node}/{name}"
        try:
            return read_array(self.path / path, self._documents[path])
        except (KeyError, ValueError, OSError, RuntimeError) as error:
            raise damaged(self.path / path, error) from error


def load(array: Any, selection: tuple[Any, ...] = (...,)) -> Array:
    """Return a part of a zarr array.

    Raises
    ------
    mkldist.errors.StoreError
        If a chunk is damaged.
    """
    try:
        return np.asarray(array.get_orthogonal_selection(selection))
    except (ValueError, OSError, RuntimeError) as error:
        raise damaged(Path(str(array.store_path).removeprefix("file://")), error) from error


def damaged(path: Path, error: BaseException) -> StoreError:
    """Return the error for a tree that cannot be read."""
    return StoreError(
        str(path),
        f"cannot be read ({type(error).__name__}: {' '.join(str(error).split())[:200]})",
        "results as a sweep writes them",
        "Delete the results.zarr and repeat the sweep's command: it is made anew from the records",
    )


def _sizes(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the dims of an array and their sizes, or nothing for a group."""
    return dict(zip(document.get("dimension_names", ()), document.get("shape", ()), strict=True))
