"""Views of new rows that stand beside their table, joined to its blocks by names of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

import numpy as np

from mkldist.arrays import Array, Bools, Floats, Ints
from mkldist.counted import counted
from mkldist.data.frames import frame_texts
from mkldist.data.listing import first_of
from mkldist.data.views import ABSENT, positions_of_ids
from mkldist.errors import DataError, SpecError, nearest
from mkldist.in_memory.given_arrays import real_array
from mkldist.models.content import ModelContent
from mkldist.models.rows import array_rows, frame_columns_of_texts, frame_rows
from mkldist.row_places import FROM_ZERO, RowPlaces

SHOWN = 5


@dataclass(eq=False)
class NewView:
    """All new rows of one view.

    Parameters
    ----------
    name : str
        The view.
    values : (v, d) or (M, v, a) float64
        Features, or kernel values between these rows and those that the model was fitted on.
    ids : (v,) array of str, or None
        Names of the rows; None if they are those of the table, in order.
    where : str
        The place to name in a message.
    required : bool
        True if no row may lack the view.
    unseen : Counter of (str, str)
        Rows of categories that the model does not know, by column and category.
    texts : (v, c) array of str objects, or None
        Texts of the rows in the view's columns that the model needs; None if it needs none.
    row_places : RowPlaces
        How messages name the rows where they have no ids.
    """

    name: str
    values: Floats
    ids: Array | None
    where: str
    required: bool
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)
    texts: Array | None = None
    row_places: RowPlaces = FROM_ZERO
    _positions: dict[str, int] | None = field(init=False, default=None)
    _used: Bools = field(init=False)
    _seen: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.ids is not None:
            self._positions = positions_of_ids(self.ids, self.where)
        self._used = np.zeros(self.values.shape[-2], dtype=bool)

    def block(self, ids: Sequence[str] | None, count: int) -> NewView:
        """Return the view of the next rows of the table; NaN, or kernels of 0, if they lack it.

        Parameters
        ----------
        ids : sequence of str, or None
            Names of these rows.
        count : int
            Their number r.

        Returns
        -------
        NewView
            The same view with r rows, in the order of the table, without names.

        Raises
        ------
        mkldist.errors.DataError
            If the rows cannot be joined, or lack a view that they must have.
        """
        rows = self._rows(ids, count)
        self._seen += count
        self._used[rows[rows != ABSENT]] = True
        known = rows != ABSENT
        if self.values.ndim == 3 and self.values.shape[-1]:
            known[known] = ~np.isnan(self.values[:, rows[known]]).all(axis=(0, 2))
        self._check_known(known, ids)
        shape = (*self.values.shape[:-2], count, self.values.shape[-1])
        found = np.full(shape, np.nan if len(shape) == 2 else 0.0)
        found[..., known, :] = self.values[..., rows[known], :]
        if len(shape) == 3 and not np.isfinite(found).all():
            raise DataError(self.where, "values that are not finite", "finite kernel values")
        texts = None
        if self.texts is not None:
            texts = np.full((count, self.texts.shape[1]), "", dtype=object)
            texts[known] = self.texts[rows[known]]
        return NewView(self.name, found, None, self.where, self.required, texts=texts)

    def check_end(self) -> str:
        """Return a note on rows that belong to none of the table, once all of these are read.

        Raises
        ------
        mkldist.errors.DataError
            If no row belongs to the table, or rows without names are more than those of the table.
        """
        n_rows, left = len(self._used), np.flatnonzero(~self._used)
        if self.ids is None:
            if self._seen != n_rows:
                raise self._other_number()
            return ""
        if n_rows and len(left) == n_rows and self._seen:
            names = first_of([str(name) for name in self.ids.tolist()], SHOWN)
            hint = (
                "Check that the same column names the rows of both; a table without rows says that "
                "none has the view"
            )
            raise DataError(
                self.where, f"ids such as {names}, none of them in the table", "its ids", hint
            )
        if not len(left):
            return ""
        names = first_of([str(name) for name in self.ids[left].tolist()], SHOWN)
        return (
            f"view {self.name!r}: {len(left)} of its {n_rows} rows are not in the table and left "
            f"out ({names})"
        )

    def _rows(self, ids: Sequence[str] | None, count: int) -> Ints:
        """Return the view's row of each of the next rows, -1 for those that it lacks."""
        if self._positions is None:
            if self._seen + count > len(self._used):
                raise self._other_number()
            return np.arange(self._seen, self._seen + count)
        if ids is None:
            raise DataError(
                self.where,
                "ids, but the table has none",
                "ids in both",
                "Give the table its column of ids, or leave them out of both",
            )
        place = self._positions
        return np.array([place.get(name, ABSENT) for name in ids], dtype=np.intp)

    def _check_known(self, known: Bools, ids: Sequence[str] | None) -> None:
        lacking = np.flatnonzero(~known).tolist()
        if lacking and self.required:
            own = self.row_places.after(self._seen - len(known))
            raise lacks(self.name, own.names(lacking, ids), self.where)

    def _other_number(self) -> DataError:
        return DataError(
            self.where,
            f"{counted(len(self._used), 'row')} without ids, another number than in the table",
            "the rows of the table in their order, or ids",
            "Give a row of NaN to one that lacks the view",
        )


def lacks(view: str, names: Sequence[str], where: str) -> DataError:
    """Return the error of rows that lack a view which they must have."""
    return DataError(
        where,
        f"no value of view {view!r} for {first_of(names, SHOWN)}",
        "a value of the view for each row: the model knows no row without it",
        'Fit a sweep whose view sets missing = "zero"',
    )


def new_views(
    model: ModelContent, given: Mapping[str, Any], read: Callable[[str, Any], NewView], where: str
) -> list[NewView]:
    """Return the views that a model needs of those that a user gives.

    Parameters
    ----------
    model : ModelContent
        The model.
    given : mapping of str to object
        Files or tables by the names of views.
    read : callable
        Function that returns the rows of one of them.
    where : str
        The place to name in a message, such as ``--view``.

    Raises
    ------
    mkldist.errors.DataError
        For an unknown view, and if one that the model needs is absent.
    mkldist.errors.SpecError
        If no mapping is given.
    """
    if not isinstance(given, Mapping):
        found = f"a {type(given).__name__} of rows without the names of their views"
        expected = "a mapping of tables or arrays by the names of views"
        raise SpecError(where, found, expected, "Write views={NAME: ROWS}")
    known, needed = model.source_views, model.needed_views
    for name in given:
        if name not in known:
            expected = f"one of {', '.join(map(repr, known))}" if known else "no view"
            hint = nearest(name, known) if known else "The model is of one table"
            raise DataError(where, f"a view {name!r}", expected, hint)
    lacking = [name for name in needed if name not in given]
    if lacking:
        raise _no_views(lacking, model, where)
    return [read(name, given[name]) for name in needed]


def _no_views(names: Sequence[str], model: ModelContent, where: str) -> DataError:
    """Return the error for views that a model needs and nobody gave, all of them."""
    contents = ["a table" if name in model.view_columns else "kernel values" for name in names]
    if len(names) == 1:
        found, expected, named = f"no view {names[0]!r}", f"{contents[0]} of this view", "it"
    else:
        found, named = f"no views {', '.join(map(repr, names))}", "them"
        each = zip(contents, names, strict=True)
        expected = "; ".join(f"{content} of {name!r}" for content, name in each)
    options = " ".join(f"--view {quote(name)}=FILE" for name in names)
    keys = ", ".join(f"{name!r}: …" for name in names)
    hint = f"Name {named}: {options}, or predict(X, views={{{keys}}}) in Python"
    return DataError(where, found, expected, hint)


def view_of_python(model: ModelContent, name: str, given: Any) -> NewView:
    """Return the rows of a view that is given as a DataFrame or an array.

    Raises
    ------
    mkldist.errors.DataError
        For other columns, another shape, and text where numbers should be.
    """
    where = f"views[{name!r}]"
    if name not in model.view_columns:
        return given_view(model, name, real_array(given, where, "kernel values"), where)
    columns = model.view_columns[name]
    required = model.needs_view(name)
    if not hasattr(given, "columns"):
        return NewView(name, array_rows(columns, given, where), None, where, required)
    rows, x = frame_rows(columns, given, where)
    ids = np.array(frame_texts(given[rows.id], where), dtype=str) if rows.id else None
    texts = frame_columns_of_texts(columns, given, where)
    return NewView(name, x, ids, where, required, rows.unseen, texts)


def given_view(
    model: ModelContent,
    name: str,
    given: Array,
    where: str,
    ids: Array | None = None,
    points: Array | None = None,
    row_places: RowPlaces = FROM_ZERO,
) -> NewView:
    """Return the rows of a view of Gram matrices."""
    if model.given is None:
        raise ValueError("a model without given matrices")
    values = model.given.values(name, given, points, where)
    required = model.given.views[name].missing is None
    return NewView(name, values, ids, where, required, row_places=row_places)


@dataclass(frozen=True, eq=False)
class WholeRows:
    """Rows with all of their views: what decision functions take.

    Parameters
    ----------
    x : (r, d) float64 array or csr_array
        Features, neither filled nor scaled.
    between : mapping of str to (M, r, a) float64, or None
        Kernel values of views that are Gram matrices.
    texts : (r, c) array of str objects, or None
        Texts in the columns that the model needs; None if it needs none.
    """

    x: Floats
    between: Mapping[str, Floats] | None = None
    texts: Array | None = None

    def part(self, rows: slice) -> WholeRows:
        """Return some of the rows."""
        between = self.between and {name: v[:, rows] for name, v in self.between.items()}
        return WholeRows(self.x[rows], between, None if self.texts is None else self.texts[rows])


def completed(
    model: ModelContent,
    x: Floats,
    texts: Array | None,
    ids: Sequence[str] | None,
    views: Sequence[NewView],
) -> WholeRows:
    """Return the next rows of a table with all of their views.

    Features of views that no kernel of the model uses are 0.

    Parameters
    ----------
    model : ModelContent
        The model.
    x : (r, d) float64
        Features of the rows' own table.
    texts : (r, c) array of str objects, or None
        Texts of the rows' own table that the model needs; None if it needs none there.
    ids : sequence of str, or None
        Names of these rows.
    views : sequence of NewView
        The views that the model needs.
    """
    if not model.source_views:
        return WholeRows(x, None, texts)
    count = x.shape[0]
    found = {view.name: view.block(ids, count) for view in views}
    blocks = [
        found[name].values if name in found else np.zeros((count, columns.n_kept))
        for name, columns in model.view_columns.items()
    ]
    between = {n: view.values for n, view in found.items() if n not in model.view_columns}
    of_views = [found[name].texts for name in model.view_columns if name in found]
    parts = [one for one in (texts, *of_views) if one is not None]
    return WholeRows(
        np.hstack([x, *blocks]) if blocks else x,
        between or None,
        np.hstack(parts) if parts else None,
    )
