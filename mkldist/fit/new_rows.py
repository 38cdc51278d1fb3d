"""New rows to predict: files, frames and arrays as blocks of features, to which views are joined.

Every source is first a table with named columns, then matched with the columns of a model, and read
a block of rows at a time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from mkldist.core.arrays import Array, Bools, Floats, Ints
from mkldist.core.wording import FROM_ONE, FROM_ZERO, RowLabels, pluralize, truncate
from mkldist.data.cells import Cells
from mkldist.data.checks import as_features, as_sparse, positions_of_ids
from mkldist.data.dataset import SourceColumns, side_by_side
from mkldist.data.files import extension_of, keys_of, open_source
from mkldist.data.gram_files import opened_matrices
from mkldist.data.npz_files import (
    FEATURE_NAMES,
    NamedArrays,
    check_length,
    column,
    feature_names,
    npz_features,
    npz_sparse,
    row_names,
)
from mkldist.data.svmlight_files import SparseRows
from mkldist.data.tables import (
    LABEL_NAMES,
    MISSING,
    Table,
    as_categories,
    check_names,
    formatted,
    frame_numbers,
    frame_table,
    frame_texts,
    pandas_frame,
)
from mkldist.data.views import ABSENT
from mkldist.errors import DataError, nearest
from mkldist.fit.inputs import SHOWN, real_array
from mkldist.kernel_functions.bases import is_sparse
from mkldist.spec.datasets import TableFormat
from mkldist.spec.kinds import MissingView

SHOWN_COLUMNS = 8
VIEW_ROWS = 4096  # of the file of a view, read at once
AS_NUMBERS = "The model takes numbers there: write numbers, and leave missing values empty"
POINTS = "points"
LABELS = "y"


@dataclass(frozen=True, eq=False)
class Block:
    """Successive new rows: what decision functions take, once views are joined."""

    x: Floats  # (r, d) array or csr_array of features, neither filled nor scaled; NaN where missing
    row_labels: RowLabels = FROM_ZERO
    ids: list[str] | None = None  # names of the rows, if their table has some
    texts: Array | None = None  # (r, c) str objects in the columns that the model needs, if any
    between: dict[str, Floats] = field(default_factory=dict)
    """Kernel values (M, r, a) of views that are Gram matrices, with the anchors of the model."""
    labels: list[str] | None = None  # where they are asked for


@dataclass(frozen=True, eq=False)
class _Source:
    """An open source: a table, beside it perhaps sparse features, and the names of both."""

    table: Table
    sparse: Any = None  # (n, d) csr_array of the features `names`
    names: tuple[str, ...] = ()
    note: str = ""  # how columns were matched, or what was left out


@dataclass(eq=False)
class NewRows:
    """An open table of new rows, whose columns are those of a model."""

    columns: SourceColumns
    where: str
    source: _Source
    rows_at_once: int
    label: str = ""  # column of labels that are read; empty for none
    by_place: bool = False  # True if the label is known by its place alone
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rows read so far whose category the model does not know, by column and category."""

    @property
    def id(self) -> str:
        """Column that names the rows; empty if the model knows none or the table has none."""
        return self.columns.id if self.columns.id in self.source.table.names else ""

    @property
    def note(self) -> str:
        """How columns were matched or what was left out; empty for nothing."""
        if self.by_place:
            return f"columns are known by their places: {self.label!r} is taken as the label"
        return self.source.note

    @property
    def blocks(self) -> Iterator[Block]:
        """The rows, read when they are needed."""
        columns, table, sparse = self.columns, self.source.table, self.source.sparse
        of_sparse = {name: place for place, name in enumerate(self.source.names)}
        there = {*table.names, *of_sparse}
        position = {name: n for n, name in enumerate(columns.numbers) if name in there}
        target: Ints = np.array([*position.values()], dtype=np.intp)
        if sparse is not None:
            sparse = sparse[:, [of_sparse[name] for name in position]]
        words = {*columns.categories, *columns.texts, self.id, self.label} - {""}
        wanted = [n for n in table.names if n in words or (n in position and sparse is None)]
        table.problems.hint, start = AS_NUMBERS, 0
        for frame, places in table.read(wanted, self.rows_at_once):
            if sparse is None:
                values = frame_numbers(frame[[*position]], places, table.problems)
                table.problems.check(len(frame))
            else:
                values = sparse[start : start + len(frame)]
            start += len(frame)
            texts = {name: frame_texts(frame[name], self.where, places) for name in words}
            own = side_by_side({n: texts[n] for n in columns.texts}) if columns.texts else None
            ids, labels = (texts[one] if one else None for one in (self.id, self.label))
            yield Block(self._features(values, target, texts), places, ids, own, labels=labels)

    def _features(self, values: Any, target: Ints, texts: Mapping[str, Sequence[str]]) -> Any:
        """Return features (r, d) of columns of numbers, which stand at `target`, and of categories.

        A row of an unknown category has 0 in all features of the column, and is counted.
        """
        columns, width = self.columns, len(self.columns.numbers)
        kept = None if columns.kept is None else np.array(columns.kept, dtype=np.intp)
        if is_sparse(values):
            x = values if len(target) == width else _placed(values, target, width)
            return x if kept is None else x[:, kept]
        x = values
        if len(target) != width or columns.categories:
            x = np.zeros((len(values), columns.n_features))
            x[:, target] = values
        first = width
        for name, categories in columns.categories.items():
            place = {category: first + n for n, category in enumerate(categories)}
            found = as_categories(texts[name])
            places = np.array([place.get(text, -1) for text in found], dtype=np.intp)
            rows = np.flatnonzero(places >= 0)
            x[rows, places[rows]] = 1.0
            self.unseen.update((name, text) for text in found if text not in place)
            first += len(categories)
        return np.ascontiguousarray(x if kept is None else x[:, kept])


def _placed(x: Any, target: Ints, width: int) -> Any:
    """Return a sparse array whose columns stand at the places `target` among `width`."""
    from scipy.sparse import csr_array

    placed = csr_array((x.data, target[x.indices], x.indptr), shape=(x.shape[0], width))
    placed.sort_indices()
    return placed


@contextmanager
def opened_rows(
    source: Any,
    columns: SourceColumns,
    rows_at_once: int,
    where: str = "",
    *,
    ignored: Collection[str] = (),
    sparse: bool = False,
    place: str = "",
    labelled: bool = False,
) -> Iterator[NewRows]:
    """Open new rows, and match their columns with those of a model.

    `source` is the path of a table (csv, Parquet …), of arrays (npz, mat, zarr) with features ``x``
    or the parts of a sparse matrix, or of a ``.svm`` file; or a DataFrame, an array, or a sparse
    array.  Tables of files are read a block at a time, others at once.  Features of arrays without
    ``feature_names`` stand for those of the model by their position.  The label and others that
    were no features may be there or not, and so may features that do not vary in the data of the
    model; columns that are `ignored` are left out.  Messages name the place `where`, by default the
    path, and columns in options after `place`, such as ``expression.`` of a view.  Rows that are
    `labelled` are read with their labels: the label column of the model, or ``y`` beside arrays.
    So are those of a file without a header that has a column in the place of the label.
    """
    where = where or str(source)
    with _opened(source, columns, where, sparse=sparse) as found:
        names = (*found.table.names, *found.names)
        _check_columns(columns, names, where, ignored, place)
        label = _label_of(columns, names, where) if labelled else ""
        without_header = isinstance(source, Path) and columns.format.get("header") is False
        by_place = without_header and columns.label in names
        label = columns.label if by_place else label
        yield NewRows(columns, where, found, rows_at_once, label, by_place)


def _label_of(columns: SourceColumns, names: Sequence[str], where: str) -> str:
    """Return the column of labels of a table; refuse one without."""
    if columns.label:
        found = [columns.label] if columns.label in names else []
    else:
        known = {*columns.names, *columns.texts, columns.id}
        found = [name for name in names if name.casefold() in LABEL_NAMES and name not in known]
    if len(found) != 1:
        expected = f"the column {columns.label!r}" if columns.label else "one column 'label' or 'y'"
        hint = nearest(columns.label, names) or "Add it, or leave out --score"
        what = f"{pluralize(len(found), 'column')} of labels" if found else "no labels"
        raise DataError(where, what, expected, hint)
    return found[0]


@contextmanager
def _opened(source: Any, columns: SourceColumns, where: str, *, sparse: bool) -> Iterator[_Source]:
    """Open a source: a file by its format, a frame, or an array."""
    format = TableFormat(**columns.format)
    if isinstance(source, Path):
        keys = keys_of(extension_of(source.name))
        written = TableFormat(**{key: format.changes[key] for key in format.changes if key in keys})
        known = {columns.label, columns.id, *columns.names, *columns.texts}
        with open_source(source, where, written, columns.label, known - {""}) as found:
            if isinstance(found, Table):
                check_names(found.names, where, fewest=1)
                names = tuple(n for n in found.names if n in known or n not in found.beside)
                yield _Source(replace(formatted(found, format), names=names))
            elif isinstance(found, NamedArrays):
                yield _of_archive(found, columns, where, sparse=sparse)
            else:
                yield _of_sparse_rows(found, columns, where, sparse=sparse)
        return
    source = pandas_frame(source)
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        frame = Cells(format).of(source)
        frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
        needed = {*columns.names, *columns.texts, columns.id}
        for name, count in Counter(frame.columns).items():
            if count > 1 and name in needed:
                twice, expected = f"{count} columns {name!r}", "each column of the model once"
                raise DataError(where, twice, expected, "Rename or drop the others")
        yield _Source(frame_table(frame, where))
    elif not hasattr(source, "tocsr"):
        _check_arrays(None, columns, where)
        x = as_features(np.asarray(source), where, columns.numbers)
        _check_arrays(x.shape[1], columns, where)
        yield _of_arrays(x, columns.numbers, {}, where, FROM_ZERO)
    elif sparse:
        _check_arrays(source.shape[1], columns, where)
        yield _of_arrays(as_sparse(source), columns.numbers, {}, where, FROM_ZERO)
    else:
        hint = "Call X.toarray()"
        raise DataError(where, "sparse features", "dense ones, as the model has", hint)


def _of_arrays(
    x: Any,
    names: Sequence[str],
    beside: Mapping[str, Sequence[str]],
    where: str,
    places: RowLabels,
    note: str = "",
) -> _Source:
    """Return features (n, d) with names, and texts of the same rows."""
    import pandas as pd

    sparse = is_sparse(x)
    frame = pd.DataFrame(index=range(x.shape[0])) if sparse else pd.DataFrame(x, columns=[*names])
    table = frame_table(frame.assign(**beside), where, places)
    return _Source(table, x, tuple(names), note) if sparse else _Source(table, note=note)


def _of_archive(
    archive: NamedArrays, columns: SourceColumns, where: str, *, sparse: bool
) -> _Source:
    """Return the features of named arrays, names of rows and labels."""
    x = npz_sparse(archive, where) if sparse else None
    place = f"{where}, array 'x'" if x is None else where
    x = npz_features(archive, where) if x is None else x
    names, (n_rows, width) = columns.numbers, x.shape
    if FEATURE_NAMES in archive:
        own = feature_names(archive, width, where)
        # Names do not count where the model has but numbers for them.
        if not _are_numbered(names) or not set(names).isdisjoint(own):
            names = own
    _check_arrays(width if names is columns.numbers else None, columns, place)
    beside: dict[str, Sequence[str]] = {}
    if columns.id and columns.id in archive:
        ids = row_names(archive, columns.id, n_rows)
        beside[columns.id] = [] if ids is None else ids.tolist()
    own_label = columns.label if columns.label in archive else LABELS
    if own_label in archive and own_label not in names:
        labels = column(archive[own_label])
        check_length(f"{where}, array {own_label!r}", labels.shape, n_rows, "label")
        beside[columns.label or LABELS] = labels.astype(str).tolist()
    return _of_arrays(x, names, beside, where, FROM_ONE)


def _of_sparse_rows(
    rows: SparseRows, columns: SourceColumns, where: str, *, sparse: bool
) -> _Source:
    """Return rows of numbered features: dense ones by position, sparse ones by number."""
    names, note = columns.numbers, ""
    raw = rows.data(sparse=sparse, start=columns.start)
    beside = {columns.label or LABELS: raw.labels.astype(str).tolist()}
    if raw.x is not None:
        width, by_number = len(names), _are_numbered(names)
        given = raw.x.shape[1]
        _check_arrays(width if by_number else max(given, width), columns, where)
        x = np.pad(raw.x[:, :width], ((0, 0), (0, max(0, width - given))))
        if given > width:
            listed, count = truncate(raw.feature_names[width:], SHOWN), given - width
            note = f"{pluralize(count, 'feature')} that the model's data lack ({listed}), left out"
        if not by_number:
            listed = truncate(names, SHOWN)
            note = f"its features have no names and are taken by their position: {listed}"
        return _of_arrays(x, names, beside, where, raw.row_labels, note)
    numbered = set(names)
    known = [place for place, name in enumerate(raw.feature_names) if name in numbered]
    if not known or not _are_numbered(names, "f"):
        found = f"features by their numbers alone: {truncate(raw.feature_names, SHOWN)}"
        hint = "Write the rows to a .npz file with columns in the order of the model"
        if _are_numbered(names, "f"):
            hint = "Check that both files count the same features, from the same first index"
        raise DataError(where, found, f"features of the model: {truncate(names, SHOWN)}", hint)
    _check_arrays(None, columns, where)
    place = {name: position for position, name in enumerate(names)}
    positions = np.array([place[raw.feature_names[one]] for one in known], dtype=np.intp)
    x = _placed(raw.sparse[:, known], positions, len(names))
    unknown = [name for name in raw.feature_names if name not in place]
    if unknown:
        count, listed = pluralize(len(unknown), "feature"), truncate(unknown, SHOWN)
        note = f"{count} that no row of the model's data has ({listed}), left out"
    return _of_arrays(x, names, beside, where, raw.row_labels, note)


def _are_numbered(names: Sequence[str], letters: str = "fx") -> bool:
    """Return True if all names are numbers after ``f``, of data sets, or ``x``, of estimators."""
    return any(all(re.fullmatch(f"{one}[0-9]+", name) for name in names) for one in letters)


def _check_arrays(width: int | None, columns: SourceColumns, where: str) -> None:
    """Refuse arrays for a model with columns of words, or of another `width` than the model."""
    of_words = {"categories": columns.categories, "texts": columns.texts}
    for kind, named in of_words.items():
        if named:
            names = truncate([repr(name) for name in named], SHOWN_COLUMNS)
            expected = f"a DataFrame, for columns of {kind} ({names})"
            raise DataError(where, "an array", expected, "Name columns")
    if width is not None and width != len(columns.numbers):
        names = truncate(columns.numbers, SHOWN_COLUMNS)
        expected = f"{len(columns.numbers)}, as the model has: {names}"
        raise DataError(where, pluralize(width, "column"), expected)


def _check_columns(
    columns: SourceColumns, names: Sequence[str], where: str, ignored: Collection[str], place: str
) -> None:
    """Refuse a table that lacks columns of a model, or has others that are not to be ignored."""
    there = set(names)
    unknown = [name for name in ignored if name not in there]
    if unknown:
        hint = nearest(unknown[0], names)
        raise DataError(where, f"no column {unknown[0]!r} to ignore", "its columns", hint)
    used = [name for name in ignored if name in columns.required]
    if used:
        raise DataError(
            where, f"{used[0]!r} to ignore, a column of the model", "columns that it does not know"
        )
    missing = [name for name in columns.required if name not in there]
    known = {*columns.names, *columns.texts, *columns.others, columns.id, columns.label, *ignored}
    extra = [name for name in names if name not in known]
    if not columns.label:  # that of the model has no name
        extra = [name for name in extra if name.casefold() not in LABEL_NAMES]
    if not missing and not extra:
        return
    found = []
    if missing:
        found.append(f"no column {truncate([repr(name) for name in missing], SHOWN)}")
    if extra:
        listed = truncate([repr(name) for name in extra], SHOWN_COLUMNS)
        found.append(f"column{'s' * (len(extra) > 1)} {listed}, unknown to the model")
    required = pluralize(len(columns.required), "column")
    expected = f"the {required} that the model was fitted on, in any order"
    raise DataError(where, "; ".join(found), expected, ". ".join(_remedies(missing, extra, place)))


def _remedies(missing: Sequence[str], extra: Sequence[str], place: str) -> Iterator[str]:
    """Yield what to do about columns that are missing and others that the model does not know."""
    near = {name: nearest(name, extra) for name in missing}
    yield from [f"For {name!r}: {hint}" for name, hint in near.items() if hint][:SHOWN]
    if extra:
        options = " ".join(f"--ignore {quote(place + name)}" for name in extra[:SHOWN_COLUMNS])
        yield f"Rename columns, or leave out what is no feature: {options}"


def unseen_lines(unseen: Counter[tuple[str, str]]) -> list[str]:
    """Return a line for each column with categories that a model does not know."""
    lines = []
    for name in dict.fromkeys(name for name, _ in unseen):
        counts = {text: count for (of, text), count in unseen.items() if of == name}
        words = {text: "no value" if text == MISSING else repr(text) for text in counts}
        listed = truncate([f"{words[text]} in {n}" for text, n in counts.items()], SHOWN_COLUMNS)
        rows = f"{pluralize(sum(counts.values()), 'row')} of unknown categories"
        lines.append(f"column {name!r}: {rows} ({listed}), taken as none of the known ones")
    return lines


@dataclass(frozen=True)
class GivenView:
    """A view of M Gram matrices, which some anchors have; rows lack it if `missing` is "zero"."""

    n_grams: int
    present: tuple[bool, ...]
    missing: MissingView | None


@dataclass(frozen=True)
class GivenRows:
    """Rows between which and new ones the user gives kernel values."""

    names: tuple[str, ...]  # of the n rows that the model was fitted on: ids, or their numbers
    anchors: tuple[int, ...]  # those a of them that decision functions use
    views: dict[str, GivenView]

    def values(self, view: str, given: Array, points: Array | None, where: str) -> Floats:
        """Return kernel values between new rows and anchors, (M, t, a); NaN for rows without view.

        `given` are kernel values, (t, p) or (M, t, p), between new rows and p rows of the data set:
        those named by `points`, or the n that the model was fitted on; NaN of a row without view.
        Another shape is refused, and points without a row that the model needs.
        """
        own = self.views[view]
        stack = given[None] if given.ndim == 2 else given
        p = len(self.names) if points is None else len(points)
        if stack.ndim != 3 or stack.dtype.kind not in "fiub" or len(stack) != own.n_grams:
            found = f"an array of {stack.dtype}, shape {given.shape}"
            raise DataError(where, found, f"kernel values ({own.n_grams}, t rows, {p})")
        if stack.shape[2] != p:
            raise DataError(
                where,
                f"kernel values with {stack.shape[2]} rows of the data set",
                f"{p}, those that the model was fitted on" if points is None else f"{p}, as points",
                "Name them by an array points, or give the values of all in their order",
            )
        present = np.array(own.present, dtype=bool)
        wanted = np.array(self.anchors, dtype=np.intp)[present]
        if points is not None:
            place = positions_of_ids(points, f"{where}, array {POINTS!r}")
            names = [self.names[row] for row in wanted.tolist()]
            missing = [repr(name) for name in names if name not in place]
            if missing:
                found = f"no {truncate(missing, SHOWN)}"
                expected = f"the {len(names)} support vectors of the model that have the view"
                hint = "Compute the kernel values of new rows with these rows too"
                raise DataError(f"{where}, array {POINTS!r}", found, expected, hint)
            wanted = np.array([place[name] for name in names], dtype=np.intp)
        values = np.zeros((len(stack), stack.shape[1], len(self.anchors)))
        known = stack[:, :, wanted].astype(np.float64)
        values[:, :, present] = known
        if known.size:
            values[:, np.isnan(known).all(axis=(0, 2))] = np.nan
        return values


@dataclass(eq=False)
class ViewRows:
    """All new rows of one view, which are joined to those of a table block by block."""

    name: str
    values: Floats  # (v, d) features, or (M, v, a) kernel values with the anchors of the model
    ids: Array | None  # (v,) names of the rows; None if they are those of the table, in order
    where: str
    required: bool  # True if no row may lack the view
    texts: Array | None = None  # (v, c) str objects in the columns that the model needs, if any
    row_labels: RowLabels = FROM_ZERO
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)
    note: str = ""  # how columns were matched
    n_lacking: int = field(init=False, default=0)  # rows so far that lack the view
    _positions: dict[str, int] | None = field(init=False, default=None)
    _used: Bools = field(init=False)
    _seen: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.ids is not None:
            self._positions = positions_of_ids(self.ids, self.where)
        self._used = np.zeros(self.values.shape[-2], dtype=bool)

    def joined(self, ids: Sequence[str] | None, count: int) -> tuple[Floats, Array | None]:
        """Return values and texts of the view for the next rows of the table, by their `ids`.

        Features are NaN, kernels 0 and texts empty of rows that lack the view.  Rows that cannot be
        joined, or lack a view that they must have, are refused.
        """
        if self._positions is None:
            if self._seen + count > len(self._used):
                raise self._other_number()
            rows: Ints = np.arange(self._seen, self._seen + count)
        elif ids is None:
            hint = "Give the table its column of ids, or leave them out of both"
            raise DataError(self.where, "ids, but the table has none", "ids in both", hint)
        else:
            rows = np.array([self._positions.get(name, ABSENT) for name in ids], dtype=np.intp)
        known = rows != ABSENT
        self._used[rows[known]] = True
        if self.values.ndim == 3 and self.values.shape[-1]:
            known[known] = ~np.isnan(self.values[:, rows[known]]).all(axis=(0, 2))
        missing = np.flatnonzero(~known).tolist()
        if missing and self.required:
            places = self.row_labels.after(self._seen)
            raise lacks(self.name, places.names(missing, ids), self.where)
        self._seen += count
        self.n_lacking += len(missing)
        shape = (*self.values.shape[:-2], count, self.values.shape[-1])
        found = np.full(shape, np.nan if len(shape) == 2 else 0.0)
        found[..., known, :] = self.values[..., rows[known], :]
        if len(shape) == 3 and not np.isfinite(found).all():
            raise DataError(self.where, "values that are not finite", "finite kernel values")
        texts = None
        if self.texts is not None:
            texts = np.full((count, self.texts.shape[1]), "", dtype=object)
            texts[known] = self.texts[rows[known]]
        return found, texts

    def check_end(self) -> str:
        """Return a note on rows that belong to none of the table, once all of these are read."""
        n_rows, left = len(self._used), np.flatnonzero(~self._used)
        if self.ids is None:
            if self._seen != n_rows:
                raise self._other_number()
            return ""
        if not len(left):
            return ""
        names = truncate([str(name) for name in self.ids[left].tolist()], SHOWN)
        if len(left) == n_rows and self._seen:
            hint = "Check that one column names the rows of both; if none has it, give no rows"
            found = f"ids such as {names}, none of them in the table"
            raise DataError(self.where, found, "its ids", hint)
        found = f"{len(left)} of its {n_rows} rows are not in the table and left out ({names})"
        return f"view {self.name!r}: {found}"

    def _other_number(self) -> DataError:
        return DataError(
            self.where,
            f"{pluralize(len(self._used), 'row')} without ids, another number than in the table",
            "the rows of the table in their order, or ids",
            "Give a row of NaN to one that lacks the view",
        )


def lacks(view: str, names: Sequence[str], where: str) -> DataError:
    """Return the error of rows that lack a view which they must have."""
    return DataError(
        where,
        f"no value of view {view!r} for {truncate(names, SHOWN)}",
        "a value of the view for each row: the model knows no row without it",
        'Fit a sweep whose view sets missing = "zero"',
    )


def table_view(
    name: str,
    source: Any,
    columns: SourceColumns,
    where: str,
    required: bool,
    ignored: Collection[str] = (),
) -> ViewRows:
    """Read the rows of a view with a table of its own, leaving out columns ``VIEW.COLUMN``."""
    place = f"{name}."
    own = [one.removeprefix(place) for one in ignored if one.startswith(place)]
    with opened_rows(source, columns, VIEW_ROWS, where, ignored=own, place=place) as rows:
        blocks = list(rows.blocks)
    if isinstance(source, Path) and columns.id and not rows.id:
        found = f"no column {columns.id!r}, which names the rows of view {name!r}"
        hint = "Add it: rows of a view are joined to those of DATA by it"
        raise DataError(where, found, "names of the rows, as in the sweep", hint)
    x = np.concatenate([np.empty((0, columns.n_kept)), *(block.x for block in blocks)])
    ids, texts = None, None
    if rows.id:
        ids = np.array([one for block in blocks for one in block.ids or ()], dtype=str)
    if columns.texts:
        empty = np.empty((0, len(columns.texts)), dtype=object)
        texts = np.concatenate([empty, *(b.texts for b in blocks if b.texts is not None)])
    note = f"view {name!r}: {rows.note}" if rows.note else ""
    return ViewRows(name, x, ids, where, required, texts, unseen=rows.unseen, note=note)


def kernel_view(name: str, source: Any, given: GivenRows, where: str) -> ViewRows:
    """Read the rows of a view of Gram matrices, of an array or a file of arrays."""
    ids = points = None
    if not isinstance(source, Path):
        grams = real_array(source, where, "kernel values")
    else:
        with opened_matrices(source, where) as arrays:
            grams = arrays.required("grams", "kernel values (t, n) or (M, t, n)")
            ids = row_names(arrays, None, grams.shape[-2] if grams.ndim > 1 else 0)
            points = column(arrays[POINTS]).astype(str) if POINTS in arrays else None
        if points is None and ids is not None and grams.shape[-1] == len(ids):
            # Square matrices of rows that the model was fitted on: ids name both sides.
            points = None if set(given.names).isdisjoint(ids.tolist()) else ids
    values, required = given.values(name, grams, points, where), given.views[name].missing is None
    places = FROM_ONE if isinstance(source, Path) else FROM_ZERO
    return ViewRows(name, values, ids, where, required, row_labels=places)
