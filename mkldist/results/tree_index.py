"""Index of a tree of results on disk: its nodes, their variables, and the place of each run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from mkldist.arrays import Array
from mkldist.consoles import command_line
from mkldist.errors import StoreError
from mkldist.natural_order import natural_path_key
from mkldist.results.array_chunks import read_chunk, read_part, write_chunk, write_rows
from mkldist.results.schema import CLASS, RUN_ID, STATE, VECTORS
from mkldist.results.state import RunState
from mkldist.results.zarr_documents import COORDINATE_NAMES, Document, read_root

Place = tuple[int, ...]
_VECTORS = {variable.name for variable in VECTORS}


class TreeIndex:
    """Nodes, variables and places of a tree, read from its metadata and run ids.

    Parameters
    ----------
    path : Path
        The tree, a folder ``*.zarr``.

    Attributes
    ----------
    nodes : dict of str to dict of str to int
        Dims of the runs of each method's node, by its path.
    scalars : dict of str to set of str
        Names of the variables of each node with one number per run, coordinates left out.
    of_classes : dict of str to set of str
        Names of those with numbers or a text of each class.
    run_ids : dict of str to array of str
        Ids of the runs of each node; an empty text where there is none.

    Raises
    ------
    mkldist.errors.StoreError
        If the tree is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.nodes: dict[str, dict[str, int]] = {}
        self.scalars: dict[str, set[str]] = {}
        self.of_classes: dict[str, set[str]] = {}
        self.reopen()
        self.run_ids = {node: self.read(node, RUN_ID.name) for node in self.nodes}

    @cached_property
    def places(self) -> dict[str, tuple[str, Place]]:
        """Node and index of each run by its id."""
        return {
            run_id: (node, place)
            for node, ids in self.run_ids.items()
            for run_id, place in zip(ids.ravel().tolist(), _indices(ids.shape), strict=True)
            if run_id
        }

    def reopen(self) -> None:
        """Read the metadata anew."""
        try:
            self._documents = read_root(self.path)["consolidated_metadata"]["metadata"]
        except (ValueError, OSError) as error:
            raise damaged(self.path, error) from error
        self.nodes = {
            path.rpartition("/")[0]: _sizes(self._documents[path])
            for path in sorted(self._documents, key=natural_path_key)
            if path.endswith(f"/{RUN_ID.name}")
        }
        self.scalars = {node: set() for node in self.nodes}
        self.of_classes = {node: set() for node in self.nodes}
        for path, document in self._documents.items():
            node, _, name = path.rpartition("/")
            dims = self.nodes.get(node)
            if dims and _sizes(document) == dims and document["data_type"] == "float64":
                self.scalars[node].add(name)
            elif dims and CLASS in _sizes(document) and name not in _VECTORS:
                self.of_classes[node].update([name] * (name != CLASS))
        for node, names in self.scalars.items():
            names.difference_update(self.coordinates(node))

    def holds(self, node: str, name: str) -> bool:
        """Return True if a node has a variable of this name."""
        return f"{node}/{name}" in self._documents

    def document(self, path: str) -> Document | None:
        """Return the metadata of an array or group, or None if it is missing."""
        document: Document | None = self._documents.get(path)
        return document

    def coordinates(self, node: str) -> list[str]:
        """Return the names of a node's own coordinates other than those of a dim."""
        attributes = self._documents.get(node, {}).get("attributes", {})
        names: str = attributes.get(COORDINATE_NAMES, "")
        return names.split()

    def shape_and_chunks(self, node: str, name: str) -> tuple[Place, Place]:
        """Return the shape of a node's variable and that of its chunks."""
        document = self._documents[f"{node}/{name}"]
        chunks = document["chunk_grid"]["configuration"]["chunk_shape"]
        return tuple(document["shape"]), tuple(chunks)

    def shape_of_run(self, node: str, name: str) -> Place:
        """Return the shape of a method's variable without the dims of the runs."""
        return self.shape_and_chunks(node, name)[0][len(self.nodes[node]) :]

    def states(self) -> dict[str, RunState]:
        """Return the state of every run in the tree."""
        found: dict[str, RunState] = {}
        for node, ids in self.run_ids.items():
            texts: list[str] = self.read(node, STATE.name).ravel().tolist()
            by_text = {text: RunState(text) for text in {*texts}}
            pairs = zip(ids.ravel().tolist(), texts, strict=True)
            found |= {run_id: by_text[text] for run_id, text in pairs if run_id}
        return found

    def read(self, node: str, name: str, place: Place = ()) -> Array:
        """Return the values of a node's variable, read without zarr; text as objects.

        Parameters
        ----------
        node, name : str
            Path of the node, and name of the variable.
        place : tuple of int, optional
            Index along the first dims; the other dims are read whole.
        """
        path = f"{node}/{name}"
        try:
            document = self._documents[path]
            part = [slice(0, size) for size in document["shape"]]
            part[: len(place)] = [slice(index, index + 1) for index in place]
            values = read_part(self.path / path, document, part)
        except (KeyError, ValueError, OSError, RuntimeError) as error:
            raise damaged(self.path / path, error) from error
        return values.reshape(values.shape[len(place) :])

    def write(self, node: str, name: str, place: Place, values: Array) -> None:
        """Write all values of a node's variable below a place; see :func:`write_rows`."""
        path = f"{node}/{name}"
        write_rows(self.path / path, self._documents[path], place, values, self.path.parent)

    def read_chunk(self, path: str, where: Place) -> Array | None:
        """Return a chunk of an array by their places; None if it was never written."""
        try:
            return read_chunk(self.path / path, self._documents[path], where)
        except (ValueError, OSError, RuntimeError) as error:
            raise damaged(self.path / path, error) from error

    def write_chunk(self, path: str, where: Place, values: Array) -> None:
        """Write a chunk of an array; see :func:`mkldist.results.array_chunks.write_chunk`."""
        write_chunk(self.path / path, self._documents[path], where, values, self.path.parent)


def _indices(shape: Place) -> Iterator[Place]:
    """Yield the indices of an array in the order of its entries, quicker than numpy does."""
    return product(*map(range, shape))


def linked(path: Path) -> Path:
    """Return where the tree of a path lies, so that its temporary files are on the same disk.

    A link that leads to itself stays, for whatever writes there to name it.
    """
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def damaged(path: Path, error: BaseException) -> StoreError:
    """Return the error for a tree that cannot be read."""
    said = " ".join(str(error).split())
    tree = next((p for p in (path, *path.parents) if p.suffix == ".zarr"), path)
    return StoreError(
        str(path),
        f"results that cannot be read ({type(error).__name__}: {said[:200]})",
        "results as a sweep writes them",
        f"Repeat the sweep's command, or run '{command_line('verify', tree.parent, '--repair')}': "
        "it is made anew from the records",
    )


def _sizes(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the dims of an array and their sizes, or nothing for a group."""
    return dict(zip(document.get("dimension_names", ()), document.get("shape", ()), strict=True))
