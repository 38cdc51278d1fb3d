"""Files of the views of new rows: tables, arrays and kernel values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mkldist.arrays import Array
from mkldist.errors import DataError
from mkldist.models.blocks import NewTable, opened_rows
from mkldist.models.content import ModelContent
from mkldist.models.given_rows import read_kernel_values
from mkldist.models.new_views import NewView, given_view, new_views
from mkldist.row_places import FROM_ONE

ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class ViewFiles:
    """The views of new rows that a model needs.

    Parameters
    ----------
    views : list of NewView
        Their rows.
    notes : tuple of str
        How files were read, and which were not.
    """

    views: list[NewView]
    notes: tuple[str, ...]


def view_files(
    model: ModelContent, files: Mapping[str, Path], ignored: Collection[str]
) -> ViewFiles:
    """Read the files of views that a model needs.

    Parameters
    ----------
    model : ModelContent
        The model.
    files : mapping of str to Path
        A file for each view: a table or arrays as of :func:`mkldist.models.blocks.opened_rows`;
        of a view of Gram matrices see :func:`mkldist.models.given_rows.read_kernel_values`.
    ignored : collection of str
        Columns to leave out, ``VIEW.COLUMN``.

    Raises
    ------
    mkldist.errors.DataError
        If a file is absent, unknown or cannot be read, or its columns differ.
    """
    said: list[str] = []

    def read(name: str, path: Path) -> NewView:
        if name in model.view_columns:
            view, note = _table(model, name, path, ignored)
            said.extend(f"view {name!r}: {one}" for one in (note,) if one)
            return view
        grams, ids, points = read_kernel_values(path, str(path))
        if points is None and ids is not None and _is_of_both(model, grams, ids):
            points = ids
        return given_view(model, name, grams, str(path), ids, points, FROM_ONE)

    views = new_views(model, files, read, "--view")
    unread = [name for name in files if name not in model.needed_views]
    notes = tuple(f"view {name!r}: no active kernel uses it, and it is not read" for name in unread)
    return ViewFiles(views, (*said, *notes))


def _is_of_both(model: ModelContent, grams: Array, ids: Array) -> bool:
    """Return True for square matrices of rows that the model was fitted on: ids name both sides."""
    fitted = set() if model.given is None else set(model.given.names)
    return grams.shape[-1] == len(ids) and not fitted.isdisjoint(map(str, ids.tolist()))


def ignored_of(view: str, ignored: Collection[str]) -> list[str]:
    """Return those of the columns to leave out that begin with the name of a view.

    Examples
    --------
    >>> ignored_of("home", ["age", "home.note"])
    ['home.note']
    """
    return [name for name in ignored if name.startswith(f"{view}.")]


def _table(
    model: ModelContent, name: str, path: Path, ignored: Collection[str]
) -> tuple[NewView, str]:
    """Return the rows of a view of features, and a note on how they were read."""
    columns, place = model.view_columns[name], f"{name}."
    own = [column.removeprefix(place) for column in ignored_of(name, ignored)]
    with opened_rows(path, NewTable(columns, ROWS_AT_ONCE, own, place=place)) as file:
        blocks = list(file.blocks)
    if columns.id and not file.rows.id:
        raise DataError(
            str(path),
            f"no column {columns.id!r}, which names the rows of view {name!r}",
            "names of the rows, as in the sweep",
            "Add it: rows of a view are joined to those of DATA by it",
        )
    x = np.concatenate([np.empty((0, columns.n_kept)), *(block.x for block in blocks)])
    ids = [name for block in blocks for name in block.ids or ()]
    of_rows = np.array(ids, dtype=str) if columns.id else None
    texts = None
    if columns.texts:
        empty = np.empty((0, len(columns.texts)), dtype=object)
        texts = np.concatenate([empty, *(b.texts for b in blocks if b.texts is not None)])
    required = model.needs_view(name)
    view = NewView(name, x, of_rows, str(path), required, file.rows.unseen, texts)
    return view, file.note
