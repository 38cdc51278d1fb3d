"""A tree of results as xarray objects, whose arrays are read when they are used.

xarray opens the tree by itself too, as it is zarr.  This backend takes a third of the time, gives
every node of a method the coordinates of its bank and data set, and gives text the dtypes that
xarray can plot, select and convert: numpy's of fixed width for coordinates, Python's for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from mkldist.arrays import Array
from mkldist.natural_order import natural_path_key
from mkldist.results.array_chunks import read_part
from mkldist.results.schema import CHOSEN_KERNEL, CONVERGENCE, COUNTED, ORDER, RUN_ID
from mkldist.results.tree_index import damaged
from mkldist.results.zarr_documents import CHARACTERS, COORDINATE_NAMES, Document, read_root

Nodes = dict[str, dict[str, xr.Variable]]


class StoredArray(BackendArray):
    """An array of the tree, of which the chunks that an index touches are read.

    Parameters
    ----------
    folder : Path
        Folder of the array.
    document : dict
        Its metadata.
    """

    def __init__(self, folder: Path, document: Document) -> None:
        self._folder, self._document = folder, document
        self.shape = tuple(document["shape"])
        characters = document["attributes"].get(CHARACTERS)
        kind = document["data_type"]
        text = "O" if characters is None else f"U{characters}"
        self.dtype = np.dtype(text if kind == "string" else kind)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return the entries at an index of any kind."""
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self._read
        )

    def _read(self, key: tuple[int | slice, ...]) -> Array:
        """Return the entries at integers and slices."""
        ranges = [
            range(size)[index]
            if isinstance(index, slice)
            else range(index % size, index % size + 1)
            for index, size in zip(key, self.shape, strict=True)
        ]
        part = [slice(min(r[0], r[-1]), max(r[0], r[-1]) + 1) if r else slice(0, 0) for r in ranges]
        try:
            values = read_part(self._folder, self._document, part)
        except (ValueError, OSError, RuntimeError) as error:
            raise damaged(self._folder, error) from error
        for axis, (taken, read) in enumerate(zip(ranges, part, strict=True)):
            if taken.step != 1:
                values = values.take([i - read.start for i in taken], axis=axis)
        kept = [len(r) for r, index in zip(ranges, key, strict=True) if isinstance(index, slice)]
        return values.astype(self.dtype, copy=False).reshape(kept)


class ResultsBackend(BackendEntrypoint):
    """Backend of :func:`xarray.open_datatree` for trees of results."""

    description = "Results of mkldist"

    def open_datatree(
        self, filename_or_obj: Any, *, drop_variables: Any = None, **_: Any
    ) -> xr.DataTree:
        """Return a tree whose methods have the coordinates of their data set and bank."""
        path = Path(filename_or_obj)
        root = read_root(path)
        groups: dict[str, Document] = {"": root}
        nodes: Nodes = {"": {}}
        dropped = {drop_variables} if isinstance(drop_variables, str) else {*(drop_variables or ())}
        for where, document in root["consolidated_metadata"]["metadata"].items():
            if document["node_type"] == "group":
                groups[where] = document
                nodes.setdefault(where, {})
                continue
            group, _, name = where.rpartition("/")
            if name not in dropped:
                nodes.setdefault(group, {})[name] = _variable(path / where, document)
        ordered = sorted(groups, key=natural_path_key)
        return xr.DataTree.from_dict(
            {f"/{where}": _dataset(where, nodes, groups) for where in ordered}
        )


def _variable(folder: Path, document: Document) -> xr.Variable:
    attributes = {n: value for n, value in document["attributes"].items() if n != CHARACTERS}
    data = indexing.LazilyIndexedArray(StoredArray(folder, document))
    return xr.Variable(document["dimension_names"], data, attributes, fastpath=True)


def _dataset(where: str, nodes: Nodes, groups: Mapping[str, Document]) -> xr.Dataset:
    """Return the variables of a node, with those coordinates that it shares with others."""
    variables = nodes[where]
    coordinates = _coordinates(where, nodes, groups)
    for name, variable in variables.items():
        if variable.dims == (name,):  # read now and once: its values become an index
            coordinates[name] = variable.load()
    dims = {dim for variable in variables.values() for dim in variable.dims}
    if RUN_ID.name in variables:
        for above in _above(where):
            shared = _coordinates(above, nodes, groups).items()
            coordinates |= {name: v for name, v in shared if dims.issuperset(v.dims)}
    if where.endswith(f"/{CONVERGENCE}"):
        coordinates |= _counted(variables)
    others = sorted(variables, key=lambda name: ORDER.get(name, ORDER[CHOSEN_KERNEL.name]))
    data = {name: variables[name] for name in others if name not in coordinates}
    attributes = {
        n: v for n, v in groups[where].get("attributes", {}).items() if n != COORDINATE_NAMES
    }
    return xr.Dataset(data, coordinates, attributes)


def _coordinates(
    where: str, nodes: Nodes, groups: Mapping[str, Document]
) -> dict[str, xr.Variable]:
    """Return the coordinates of a group that are not those of a dim."""
    names: str = groups[where].get("attributes", {}).get(COORDINATE_NAMES, "")
    return {name: nodes[where][name] for name in names.split() if name in nodes[where]}


def _above(where: str) -> list[str]:
    parts = where.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _counted(variables: Mapping[str, xr.Variable]) -> dict[str, xr.Variable]:
    """Return the coordinates of iterations and ranks, from 1.

    They are not stored, because a sweep that is at work adds iterations.
    """
    sizes = {dim: size for v in variables.values() for dim, size in v.sizes.items()}
    return {
        v.name: xr.Variable(v.dims, np.arange(1, sizes[v.name] + 1), v.attributes)
        for v in COUNTED
        if v.name in sizes
    }
