"""The tree of results: making it for a plan, filling it from records, opening it with xarray."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mkldist.arrays import Array
from mkldist.durable import flush_folder, remove_temporaries, temporary_path
from mkldist.errors import LaterRunsWarning, OutputError, StoreError
from mkldist.results.array_chunks import write_rows
from mkldist.results.convergence import convergence_documents
from mkldist.results.coordinates import Coordinate
from mkldist.results.layout import TreeFacts, TreeLayout, tree_layout
from mkldist.results.newest import later_words
from mkldist.results.node_variables import check
from mkldist.results.output import no_folder
from mkldist.results.records import RecordStore
from mkldist.results.rows import method_nodes
from mkldist.results.schema import (
    CLASS,
    DATA,
    GAP_DEFINITION,
    LATER_RUNS,
    LAYOUT_VERSION,
    MOST_RUNS,
    OTHER_RUNS,
    RUN_ID,
)
from mkldist.results.snapshot import Snapshot
from mkldist.results.state import RunState
from mkldist.results.tree_check import is_sound
from mkldist.results.tree_index import damaged, linked
from mkldist.results.writer import TreeWriter, variable_document
from mkldist.results.zarr_documents import (
    CHARACTERS,
    COORDINATE_NAMES,
    DOCUMENT,
    NAMES_PER_CHUNK,
    Document,
    array_document,
    group_document,
    read_root,
    write_documents,
)
from mkldist.spec.arguments import given_path

if TYPE_CHECKING:
    import xarray as xr

    from mkldist.planning.model import Plan

RESULTS = "results.zarr"


class CaughtUp(NamedTuple):
    """What a tree holds after it was brought up to date with the records.

    Parameters
    ----------
    written : int
        Number of records that were written to it.
    recorded : dict of str to RunState
        All records and their states, also those of runs without a place, but no unread ones.
    unread : tuple of str
        Runs whose records could not be read: they are damaged.
    was_damaged : bool
        True if the tree itself was damaged, and was made anew from the records.
    """

    written: int
    recorded: dict[str, RunState]
    unread: tuple[str, ...]
    was_damaged: bool = False


def prepare(
    path: Path,
    plan: Plan,
    facts: TreeFacts,
    records: RecordStore,
    provenance: Callable[[], Mapping[str, Any]] | None = None,
) -> CaughtUp:
    """Make the tree of a plan, or bring an existing one up to date with the records.

    If the existing tree was made for other runs or is damaged, a new one is made from the records
    beside it and then replaces it.

    Parameters
    ----------
    path : Path
        Path of the tree, or of a link to it, which stays; usually ``<output folder>/results.zarr``.
    plan : Plan
        The plan.
    facts : TreeFacts
        Facts that the layout needs beside the plan.
    records : RecordStore
        Records of the sweep.
    provenance : callable, optional
        Function that returns versions and machine, as JSON-serialisable facts; called only if a new
        tree is made.

    Returns
    -------
    CaughtUp
        What it then holds.

    Raises
    ------
    mkldist.errors.OutputError
        If `path` is a link into a folder that is not there.
    """
    path = _place(Path(path))
    remove_temporaries(path.parent)
    layout = tree_layout(plan, facts)
    there = _layout(path)
    is_same = there == (layout.id, facts.most_runs)
    was_damaged = is_same or (there is None and path.exists())
    if is_same and is_sound(path):
        try:
            return catch_up(TreeWriter(path), records)
        except StoreError:
            pass  # a chunk was damaged since, but the records hold all of its values
    making = temporary_path(path.parent)
    try:
        made_by = {} if provenance is None else provenance()
        _make(making, layout, _attributes(plan, layout.id, made_by, facts))
        found = catch_up(TreeWriter(making), records)
        _swap(making, path)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return found._replace(was_damaged=was_damaged)


def open_results(path: str | Path, *others: str | Path) -> xr.DataTree:
    """Open the results of a sweep, finished or still running, or of several in one tree.

    Parameters
    ----------
    path : str or Path
        The sweep's output folder, or the ``results.zarr`` in it.
    *others : str or Path
        Those of other sweeps, on the same data and splits.

    Returns
    -------
    xarray.DataTree
        ``tree["<dataset>/<method>"]`` (``"<dataset>/<bank>/<method>"`` for a sweep of several
        banks) has dims ``split`` and the method's hyperparameters; arrays are read when used.
        Values that a run has not reported are NaN, and its ``state`` tells why.  The attribute
        ``later_runs`` is the number of runs that were recorded after the tree was last written,
        which is every few seconds of a sweep, and at its end unless it is killed; ``other_runs`` is
        the number of those that the last call of the sweep did not ask for.
        ``tree["<dataset>/<method>/convergence"]`` holds the traces of methods with the setting
        ``trace = true``, along dim ``iteration``, counted from 1.  In a tree of several sweeps, a
        method or bank that differs under one name has the name of its sweep, too:
        ``"wdbc/level (old)"``.

    Raises
    ------
    mkldist.errors.StoreError
        If there are no results or they are damaged.
    mkldist.errors.SpecError
        For what is no path.
    mkldist.errors.InputError
        If several sweeps have other data or splits under one name, by fingerprints of their rows.

    Warns
    -----
    mkldist.errors.LaterRunsWarning
        If runs were recorded later.

    Examples
    --------
    >>> import mkldist
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> tree["wdbc/level"].test_error.mean("split")  # doctest: +SKIP
    >>> both = mkldist.open_results("results/old", "results/new")  # doctest: +SKIP
    """
    from mkldist.results.joined import joined

    paths = [path, *others]
    trees = [read_tree(one) for one in paths]
    for one, tree in zip(paths, trees, strict=True):
        later = later_words(tree.attrs[LATER_RUNS])
        if later:
            said = f"{current(one)}: {later} The sweep's command, or 'mkldist export', writes them"
            warnings.warn(said, LaterRunsWarning, stacklevel=2)
    return joined([current(one).parent for one in paths], trees) if others else trees[0]


def read_tree(path: str | Path) -> xr.DataTree:
    """Return what :func:`open_results` does, without a warning."""
    import xarray as xr

    from mkldist.results.xarray_backend import ResultsBackend

    store = current(path)
    try:
        tree = xr.open_datatree(store, engine=ResultsBackend)
        for node in method_nodes(tree):
            check(node, f"{store}{node.path}")
    except (ValueError, OSError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise damaged(store, error) from error
    held = Snapshot.of(store)
    tree.attrs |= {LATER_RUNS: held.n_behind, OTHER_RUNS: held.n_others}
    return tree


def locate(path: str | Path) -> Path:
    """Return the tree in a sweep's output folder, or `path` itself if it is one.

    Raises
    ------
    mkldist.errors.StoreError
        If there is none.
    mkldist.errors.SpecError
        For what is no path.
    """
    given = given_path("path", path)
    for candidate in (given / RESULTS, given):
        if (candidate / DOCUMENT).is_file():
            return candidate
    raise StoreError(
        str(given),
        "no results here" if given.is_dir() else no_folder(given),
        f"a sweep's output folder, or the {RESULTS} in it",
    )


def current(path: str | Path) -> Path:
    """Return the tree that :func:`locate` finds, if it has the present layout.

    Raises
    ------
    mkldist.errors.StoreError
        If there is none, or it is damaged or has another layout.
    """
    store = locate(path)
    try:
        version = read_root(store)["attributes"].get("layout_version")
    except (ValueError, OSError, KeyError, TypeError, AttributeError) as error:
        raise damaged(store, error) from error
    if version != LAYOUT_VERSION:
        raise StoreError(
            str(store),
            f"layout version {version}",
            f"layout version {LAYOUT_VERSION}",
            "Repeat the sweep's command: it lays the results out anew, and repeats no run",
        )
    return store


def _layout(path: Path) -> tuple[object, object] | None:
    """Return the id of a tree's layout and its most runs; None if they cannot be read."""
    try:
        attributes = read_root(path)["attributes"]
        return attributes["layout_id"], attributes.get(MOST_RUNS, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def catch_up(writer: TreeWriter, records: RecordStore) -> CaughtUp:
    """Write the records whose state differs from that in the tree."""
    known, recorded = writer.states(), records.ids()
    behind = [i for i, state in recorded.items() if known.get(i, state) is not state]
    written = writer.write_all(behind, records.read)
    unread = {*behind} - {*written}
    sound = {i: state for i, state in recorded.items() if i not in unread}
    return CaughtUp(len(written), sound, tuple(sorted(unread)))


def _make(path: Path, layout: TreeLayout, attributes: Mapping[str, Any]) -> None:
    """Make a tree with its metadata, coordinates and ids, without any run."""
    documents, arrays = _documents(layout)
    for where, values in arrays.items():
        write_rows(path / where, documents[where], (), values, path.parent)
    write_documents(path, {"": group_document(attributes), **documents})


def _documents(layout: TreeLayout) -> tuple[dict[str, Document], dict[str, Array]]:
    """Return the metadata of all nodes, and the arrays of coordinates and ids, by path."""
    documents: dict[str, Document] = {}
    arrays: dict[str, Array] = {}

    def add(path: str, coordinates: Mapping[str, Coordinate], **attributes: str) -> None:
        names = [n for n, c in coordinates.items() if c.variable.dims != (n,)]
        documents[path] = group_document(
            {**attributes, **({COORDINATE_NAMES: " ".join(names)} if names else {})}
        )
        for name, coordinate in coordinates.items():
            documents[f"{path}/{name}"] = _coordinate_document(coordinate)
            arrays[f"{path}/{name}"] = coordinate.values

    for path, coordinates in layout.shared.items():
        add(path, coordinates)
    for node in layout.nodes:
        documents.setdefault(node.path.rpartition("/")[0], group_document())
        add(node.path, {**node.coordinates, **node.sizes}, **node.attributes)
        for variable in node.variables:
            document = variable_document(variable, node.dims, node.vectors)
            documents[f"{node.path}/{variable.name}"] = document
        if node.traces:
            n_classes = node.vectors.get(CLASS, 0)
            documents |= convergence_documents(node.path, node.dims, node.traces, n_classes)
        arrays[f"{node.path}/{RUN_ID.name}"] = node.run_ids
    return documents, arrays


def _coordinate_document(coordinate: Coordinate) -> Document:
    variable, values = coordinate.variable, coordinate.values
    attributes: dict[str, Any] = {**variable.attributes}
    if variable.dtype == "string":
        attributes[CHARACTERS] = max([1, *map(len, values.tolist())])
    sizes = dict(zip(variable.dims, values.shape, strict=True))
    chunks = [max(1, min(size, NAMES_PER_CHUNK)) for size in values.shape]
    return array_document(sizes, variable.dtype, chunks, attributes=attributes)


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


def _place(path: Path) -> Path:
    """Return where a tree lies, or is to lie; refuse a link into a folder that is not there."""
    place = linked(path)
    if path.is_symlink() and not place.parent.is_dir():
        raise OutputError(
            str(path),
            f"a link to {place}, whose folder is not there",
            "a link into a folder that is there, such as one of a disk that is mounted",
            "Mount the disk, make the folder, or remove the link",
        )
    return place


def _swap(new: Path, path: Path) -> None:
    """Replace a tree by another."""
    old = temporary_path(path.parent)
    if path.exists():
        path.rename(old)
    new.rename(path)
    flush_folder(path.parent)
    shutil.rmtree(old, ignore_errors=True)
