"""The file of a sweep's layout: what its tree of results holds besides the records."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Array
from mkldist.core.consoles import command_line
from mkldist.core.durable import discard, write_file
from mkldist.core.frames import Arrays, frame, unframed
from mkldist.errors import StoreError
from mkldist.results.coordinates import Coordinate
from mkldist.results.layout import MethodNode, TreeFacts, TreeLayout, tree_layout
from mkldist.results.schema import DATA, GAP_DEFINITION, LAYOUT_VERSION, MOST_RUNS, Variable

if TYPE_CHECKING:
    from mkldist.planning.model import Plan

LAYOUT = "tree.layout"
_COMPRESSION = 1
_MOST_DIFFERENT = 2**16
"""Texts of an array that are stored once each, with a number for every entry."""


def lay_out(
    folder: Path,
    plan: Plan,
    facts: TreeFacts,
    provenance: Callable[[], Mapping[str, Any]] | None = None,
) -> bool:
    """Write the layout of a plan into an output folder, unless it is there already.

    Parameters
    ----------
    folder : Path
        The output folder.
    plan : Plan
        The plan.
    facts : TreeFacts
        Facts that the layout needs beside the plan.
    provenance : callable, optional
        Function that returns versions and machine, as JSON-serialisable facts; called only if the
        layout is written.

    Returns
    -------
    bool
        True if a damaged file was replaced.

    Raises
    ------
    OSError
        If the disk refuses it.
    """
    layout = tree_layout(plan, facts)
    there, path = _read(folder / LAYOUT), folder / LAYOUT
    if there is not None:
        known = there.attributes
        if (known["layout_id"], known.get(MOST_RUNS, 0)) == (layout.id, facts.most_runs):
            return False
    was_damaged = there is None and path.exists() and not _is_of_another_version(path)
    if was_damaged:
        discard(path)  # a folder is moved away
    made_by = {} if provenance is None else provenance()
    write_layout(folder, replace(layout, attributes=_attributes(plan, layout.id, made_by, facts)))
    return was_damaged


def write_layout(folder: Path, layout: TreeLayout) -> None:
    """Write a layout into an output folder, in place of a former one."""
    arrays = Arrays()

    def described(where: str, coordinates: Mapping[str, Coordinate]) -> dict[str, Any]:
        for name, coordinate in coordinates.items():
            arrays.update(_packed(f"{where}/{name}", coordinate.values))
        return {name: _words(one.variable) for name, one in coordinates.items()}

    nodes = []
    for node in layout.nodes:
        arrays[f"{node.path}//runs"] = node.run_ids
        nodes.append(
            {
                "path": node.path,
                "dims": node.dims,
                "coordinates": described(f"{node.path}//own", node.coordinates),
                "sizes": described(f"{node.path}//sizes", node.sizes),
                "vectors": node.vectors,
                "attributes": node.attributes,
                "variables": [_words(variable) for variable in node.variables],
                "traces": [_words(variable) for variable in node.traces],
            }
        )
    head = {
        "version": LAYOUT_VERSION,
        "attributes": layout.attributes,
        "shared": {path: described(f"{path}//", found) for path, found in layout.shared.items()},
        "nodes": nodes,
    }
    write_file(folder / LAYOUT, [zlib.compress(frame(head, arrays), _COMPRESSION)])


def read_layout(folder: Path) -> TreeLayout:
    """Return the layout in an output folder.

    Raises
    ------
    mkldist.errors.StoreError
        If there is none, or it is damaged or of another version.
    """
    path = folder / LAYOUT
    layout = _read(path)
    if layout is not None:
        return layout
    again = "Repeat the sweep's command: it makes it anew, and repeats no run"
    if not path.exists():
        raise StoreError(str(path), "no such file", "the layout of a sweep's results", again)
    if _is_of_another_version(path):
        raise StoreError(
            str(path), "another version of the layout", f"version {LAYOUT_VERSION}", again
        )
    raise StoreError(
        str(path),
        "results that cannot be read: the file is damaged",
        "the layout of a sweep's results",
        f"Repeat the sweep's command, or run '{command_line('verify', folder, '--repair')}': "
        "it is made anew",
    )


def is_sound(folder: Path) -> bool:
    """Return True if the layout in an output folder can be read."""
    return _read(folder / LAYOUT) is not None


def _read(path: Path) -> TreeLayout | None:
    """Return the layout in a file; None if it is missing, damaged, or of another version."""
    found = _content(path)
    if found is None or found[0].get("version") != LAYOUT_VERSION:
        return None
    try:
        return _layout(*found)
    except (LookupError, TypeError, ValueError):  # another version wrote other fields
        return None


def _layout(head: Mapping[str, Any], arrays: Arrays) -> TreeLayout:
    """Return the layout of a sound file."""

    def coordinates(where: str, described: Mapping[str, Any]) -> dict[str, Coordinate]:
        return {
            name: Coordinate(_variable(words), _unpacked(f"{where}/{name}", arrays))
            for name, words in described.items()
        }

    nodes = tuple(
        MethodNode(
            path=one["path"],
            dims=one["dims"],
            coordinates=coordinates(f"{one['path']}//own", one["coordinates"]),
            sizes=coordinates(f"{one['path']}//sizes", one["sizes"]),
            vectors=one["vectors"],
            run_ids=arrays[f"{one['path']}//runs"],
            attributes=one["attributes"],
            variables=tuple(map(_variable, one["variables"])),
            traces=tuple(map(_variable, one["traces"])),
        )
        for one in head["nodes"]
    )
    shared = {path: coordinates(f"{path}//", own) for path, own in head["shared"].items()}
    return TreeLayout(nodes, shared, head["attributes"])


def _content(path: Path) -> tuple[dict[str, Any], Arrays] | None:
    """Return what a file of a layout holds; None if it is missing or damaged."""
    try:
        return unframed(zlib.decompress(path.read_bytes()))
    except (OSError, zlib.error):
        return None


def _is_of_another_version(path: Path) -> bool:
    found = _content(path)
    return found is not None and found[0].get("version") != LAYOUT_VERSION


def _words(variable: Variable) -> list[Any]:
    return [
        variable.name, variable.units, variable.description, variable.dtype, [*variable.dims],
        variable.fill,
    ]  # fmt: skip


def _variable(words: Iterable[Any]) -> Variable:
    name, units, description, dtype, dims, fill = words
    return Variable(name, units, description, dtype, tuple(dims), fill)


def _packed(name: str, values: Array) -> Arrays:
    """Return an array under its name; that of few texts as these, and the number of each entry."""
    if values.dtype != object:
        return {name: values}
    numbers: dict[str, int] = {}
    at = [numbers.setdefault(text, len(numbers)) for text in values.ravel().tolist()]
    if len(numbers) > min(_MOST_DIFFERENT, len(at) // 2):
        return {name: values}
    texts = np.array([*numbers], dtype=object)
    return {name: texts, f"{name}//at": np.array(at, dtype=np.uint16).reshape(values.shape)}


def _unpacked(name: str, arrays: Arrays) -> Array:
    """Return an array; texts of fixed width, which xarray selects and plots."""
    values, at = arrays[name], arrays.get(f"{name}//at")
    if values.dtype == object:
        values = values.astype(str)
    if at is None:
        return values
    if len(values) == 1:  # takes no memory
        return np.broadcast_to(values[0], at.shape)
    texts: Array = values[at]
    return texts


def _attributes(
    plan: Plan, layout_id: str, provenance: Mapping[str, Any], facts: TreeFacts
) -> dict[str, str | int]:
    """Return the attributes of the root: only text and numbers, as netCDF allows no others."""
    return {
        "title": f"Results of the sweep {plan.spec.name}",
        "sweep": plan.spec.name,
        "description": plan.spec.description,
        "gap_definition": GAP_DEFINITION,
        "layout_version": LAYOUT_VERSION,
        "layout_id": layout_id,
        "plan_id": plan.id,
        "mkldist_version": metadata.version("mkldist"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "spec": plan.spec.model_dump_json(exclude_defaults=True),
        "provenance": json.dumps(dict(provenance), sort_keys=True),
        DATA: json.dumps({name: dict(of) for name, of in facts.data.items()}),
        **({MOST_RUNS: facts.most_runs} if facts.most_runs else {}),
    }
