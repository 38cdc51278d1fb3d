"""New rows for a model: of files, frames and arrays, with their views."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.arrays import Array, Bools, Floats, Ints
from mkldist.counted import counted
from mkldist.data.archives import NamedArrays, opened_npz
from mkldist.data.categories import as_categories
from mkldist.data.columns import LABEL_NAMES, check_names
from mkldist.data.csv_files import numbers, opened_csv
from mkldist.data.csv_rows import Rows
from mkldist.data.files import ARCHIVE, READERS, TABLES, ZARR, extension_of
from mkldist.data.frames import frame_features, frame_texts
from mkldist.data.listing import first_of
from mkldist.data.npz_files import (
    FEATURE_NAMES,
    names_of_features,
    npz_features,
    npz_sparse,
    npz_texts,
    row_names,
)
from mkldist.data.parquet_files import opened_parquet
from mkldist.data.raw import RawData, as_features
from mkldist.data.source_columns import SourceColumns
from mkldist.data.svmlight_files import read_svmlight
from mkldist.data.table_blocks import TableBlocks
from mkldist.data.table_problems import DECIMALS, TableProblems
from mkldist.data.views import ABSENT, positions_of_ids
from mkldist.data.zarr_files import opened_group
from mkldist.data.zarr_stores import check_zarr, is_zarr
from mkldist.errors import DataError, SpecError, ending_words, nearest
from mkldist.fit.inputs import real_array
from mkldist.fit.model_file import ModelContent, read_kernel_values, texts_of
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.row_places import FROM_ONE, FROM_ZERO, RowPlaces, in_lines

if TYPE_CHECKING:
    import pandas as pd


SHOWN_COLUMNS = 8


@dataclass(eq=False)
class NewRows:
    """A table of new rows whose columns are those of a model.

    Parameters
    ----------
    columns : SourceColumns
        Columns that the model was fitted on.
    names : tuple of str
        Columns of the table, in any order.
    where : str
        The place to name in a message.
    place : str
        What precedes the names of its columns in options, such as ``expression.`` of a view.
    unseen : Counter of (str, str)
        Rows met so far whose category the model does not know, by column and category.
    """

    columns: SourceColumns
    names: tuple[str, ...]
    where: str
    place: str = ""
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(
        cls,
        columns: SourceColumns,
        names: Sequence[str],
        where: str,
        ignored: Collection[str] = (),
        place: str = "",
    ) -> NewRows:
        """Match the columns of a table.

        The label column and others that were no features may be there or not, and so may features
        that do not vary in the data of the model.

        Raises
        ------
        mkldist.errors.DataError
            For columns that are missing, and for others that the model does not know unless they
            are among the `ignored`.
        """
        there = set(names)
        unknown = [name for name in ignored if name not in there]
        if unknown:
            hint = nearest(unknown[0], names)
            raise DataError(where, f"no column {unknown[0]!r} to ignore", "its columns", hint)
        missing = [name for name in columns.required if name not in there]
        known = {*columns.names, *columns.texts, *columns.others, columns.label, *ignored}
        extra = [name for name in names if name not in known and not _is_label(columns, name)]
        if missing or extra:
            raise _other_columns(columns, missing, extra, where, place)
        return cls(columns, tuple(names), where, place)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of numbers that the table has, in the order of the model."""
        there = set(self.names)
        return tuple(name for name in self.columns.numbers if name in there)

    @property
    def id(self) -> str:
        """Column that names the rows; empty if the model knows none or the table has none."""
        return self.columns.id if self.columns.id in self.names else ""

    def features(self, numbers: Floats, texts: Mapping[str, Sequence[str]]) -> Floats:
        """Return the features of some rows, (r, d), missing values as NaN.

        A row of an unknown category has 0 in all features of the column, and is counted.

        Parameters
        ----------
        numbers : (r, m) float64
            The columns :attr:`numbers`.
        texts : mapping of str to sequence of str
            r texts of each column of categories.
        """
        x = np.zeros((len(numbers), self.columns.n_features))
        place = {name: position for position, name in enumerate(self.columns.numbers)}
        x[:, [place[name] for name in self.numbers]] = numbers
        first = len(place)
        for name, categories in self.columns.categories.items():
            self._encode(name, categories, texts[name], x[:, first : first + len(categories)])
            first += len(categories)
        kept = self.columns.kept
        return x if kept is None else np.ascontiguousarray(x[:, np.array(kept, dtype=np.intp)])

    def _encode(
        self, column: str, categories: Sequence[str], texts: Sequence[str], out: Floats
    ) -> None:
        """Write the indicators of a column of categories to `out`, (r, k)."""
        place = {category: position for position, category in enumerate(categories)}
        known = as_categories(texts)
        places: Ints = np.array([place.get(text, -1) for text in known], dtype=np.intp)
        seen = np.flatnonzero(places >= 0)
        out[seen, places[seen]] = 1.0
        if len(seen) < len(known):
            self.unseen.update((column, text) for text in known if text not in place)


def frame_rows(columns: SourceColumns, frame: pd.DataFrame, where: str) -> tuple[NewRows, Floats]:
    """Return the rows of a frame and their features, (t, d).

    Raises
    ------
    mkldist.errors.DataError
        For other columns, for two of one name, and for text where numbers should be.
    """
    names = tuple(map(str, frame.columns))
    _refuse_repeated(columns, names, where)
    rows = NewRows.of(columns, names, where)
    return rows, frame_block(rows, _named(frame))


def _refuse_repeated(columns: SourceColumns, names: Sequence[str], where: str) -> None:
    """Refuse a frame that has a column of the model twice."""
    needed, counts = {*columns.names, *columns.texts, columns.id}, Counter(names)
    twice = [name for name in counts if counts[name] > 1 and name in needed]
    if twice:
        raise DataError(
            where,
            f"{counts[twice[0]]} columns {twice[0]!r}",
            "each column of the model once",
            "Rename or drop the others",
        )


def frame_block(rows: NewRows, frame: pd.DataFrame, row_places: RowPlaces = FROM_ZERO) -> Floats:
    """Return the features of some rows as a frame has them, whose columns are named by text."""
    numbers = np.empty((len(frame), 0))
    if rows.numbers:
        numbers = frame_features(frame[list(rows.numbers)], rows.where, AS_NUMBERS, row_places)
    named = rows.columns.categories
    texts = {name: frame_texts(frame[name], rows.where, row_places) for name in named}
    return rows.features(numbers, texts)


def frame_columns_of_texts(
    columns: SourceColumns, frame: pd.DataFrame, where: str, row_places: RowPlaces = FROM_ZERO
) -> Array | None:
    """Return the texts of a frame that a model needs, (t, c); None if it needs none."""
    named = _named(frame)
    texts = {name: frame_texts(named[name], where, row_places) for name in columns.texts}
    return texts_of(columns.texts, texts)


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.set_axis(list(map(str, frame.columns)), axis=1)


AS_NUMBERS = "The model takes numbers there: write numbers, and leave missing values empty"


def array_rows(
    columns: SourceColumns, given: Any, where: str, *, texts_beside: bool = False
) -> Floats:
    """Return the features (t, d) of an array-like whose columns stand in the order of the model.

    Parameters
    ----------
    columns : SourceColumns
        Columns of the model.
    given : array-like or sparse array
        The features.
    where : str
        The place to name in a message.
    texts_beside : bool
        True if texts stand in arrays of their own.

    Raises
    ------
    mkldist.errors.DataError
        For another number of columns, and where the model has columns of categories or of texts.
    """
    of_words = {"categories": columns.categories, "texts": () if texts_beside else columns.texts}
    for kind, named in of_words.items():
        if named:
            names = first_of([repr(name) for name in named], SHOWN_COLUMNS)
            expected = f"a DataFrame, for columns of {kind} ({names})"
            raise DataError(where, "an array", expected, "Name columns")
    x = given if is_sparse(given) else as_features(np.asarray(given), where, columns.numbers)
    if x.shape[1] != len(columns.numbers):
        names = first_of(columns.numbers, SHOWN_COLUMNS)
        raise DataError(
            where,
            counted(x.shape[1], "column"),
            f"{len(columns.numbers)}, as the model has: {names}",
        )
    if columns.kept is None:
        return x
    kept = x[:, list(columns.kept)]
    return kept if is_sparse(kept) else np.ascontiguousarray(kept)


def check_rows(
    x: Floats,
    feature_names: Sequence[str],
    where: str,
    *,
    filled: bool,
    row_places: RowPlaces = FROM_ZERO,
    absent: Bools | None = None,
) -> None:
    """Refuse infinite values, and missing ones that the model does not fill.

    Parameters
    ----------
    x : (r, d) float64
        Features of some rows.
    feature_names : sequence of str
        d names.
    where : str
        The place to name in a message.
    filled : bool
        True if the model fills missing values.
    row_places : RowPlaces
        How a message names a row.
    absent : (r, d) bool, optional
        Features of views that rows lack, which are not filled.

    Raises
    ------
    mkldist.errors.DataError
        Naming the first such value.
    """
    bad = np.isinf(x) if filled else ~np.isfinite(x)
    if absent is not None:
        bad &= ~absent
    if not bad.any():
        return
    row, column = (int(place) for place in np.argwhere(bad)[0])
    infinite = bool(np.isinf(x[row, column]))
    hint = "Correct it" if infinite else "Fill it, or fit a sweep whose data set sets impute"
    raise DataError(
        f"{where}, {row_places.of(row)}, column {feature_names[column]!r}",
        "an infinite value" if infinite else "no value",
        "a finite number" if infinite else "a number: the model fills no missing values",
        hint,
    )


def unseen_lines(unseen: Counter[tuple[str, str]]) -> list[str]:
    """Return a line for each column with categories that a model does not know.

    Examples
    --------
    >>> unseen_lines(Counter({("size", "XL"): 2}))
    ["column 'size': 2 rows of unknown categories ('XL' in 2), taken as none of the known ones"]
    """
    lines = []
    for column in dict.fromkeys(name for name, _ in unseen):
        of_column = {text: count for (name, text), count in unseen.items() if name == column}
        said = first_of(
            [f"{text!r} in {count}" for text, count in of_column.items()], SHOWN_COLUMNS
        )
        total = sum(of_column.values())
        rows = f"{counted(total, 'row')} of unknown categories"
        lines.append(f"column {column!r}: {rows} ({said}), taken as none of the known ones")
    return lines


def _is_label(columns: SourceColumns, name: str) -> bool:
    """Return True for a column that looks like a label, where that of the model has no name."""
    return not columns.label and name.casefold() in LABEL_NAMES


def _other_columns(
    columns: SourceColumns,
    missing: Sequence[str],
    extra: Sequence[str],
    where: str,
    place: str,
) -> DataError:
    """Return the error of a table whose columns differ."""
    found = []
    if missing:
        found.append(f"no column {first_of([repr(name) for name in missing], SHOWN)}")
    if extra:
        listed = first_of([repr(name) for name in extra], SHOWN_COLUMNS)
        found.append(f"column{'s' * (len(extra) > 1)} {listed}, unknown to the model")
    hints = _remedies(missing, extra, place)
    required = counted(len(columns.required), "column")
    return DataError(
        where,
        "; ".join(found),
        f"the {required} that the model was fitted on, in any order",
        ". ".join(hints),
    )


def _remedies(missing: Sequence[str], extra: Sequence[str], place: str) -> Iterator[str]:
    """Yield what to do about columns that are missing and others that the model does not know."""
    by_letters = {_letters(name): name for name in extra}
    pairs = [(by_letters[_letters(name)], name) for name in missing if _letters(name) in by_letters]
    if pairs:
        yield f"Rename {first_of([f'{one!r} to {other!r}' for one, other in pairs], SHOWN)}"
    named = {name for pair in pairs for name in pair}
    missing = [name for name in missing if name not in named]
    extra = [name for name in extra if name not in named]
    hint = next((hint for name in missing if (hint := nearest(name, extra))), "")
    if hint:
        yield hint
    elif extra:
        if missing:
            yield f"Rename the column that holds {missing[0]!r}, if there is one"
        options = " ".join(f"--ignore {quote(place + name)}" for name in extra[:SHOWN_COLUMNS])
        yield f"Leave out what is no feature: {options}"


def _letters(name: str) -> str:
    """Return the letters and digits of a name, without their case."""
    return "".join(filter(str.isalnum, name.casefold()))


SHOWN = 5


@dataclass(frozen=True, eq=False)
class NamedFeatures:
    """Where the columns of a model stand in an array whose columns have names.

    Parameters
    ----------
    source : (k,) intp
        Columns of the array.
    target : (k,) intp
        The columns of numbers of the model that they are; the others do not vary.
    n_numbers : int
        Number of columns of numbers of the model.
    """

    source: Ints
    target: Ints
    n_numbers: int

    @classmethod
    def of(
        cls,
        archive: NamedArrays,
        n_features: int,
        columns: SourceColumns,
        where: str,
        ignored: Collection[str] = (),
        place: str = "",
    ) -> NamedFeatures | None:
        """Match the names of an archive's features with the columns of a model.

        Parameters
        ----------
        archive : NamedArrays
            The archive.
        n_features : int
            Number of its features.
        columns : SourceColumns
            The columns of the model.
        where : str
            The file, to name in a message.
        ignored : collection of str
            Features to leave out.
        place : str
            What precedes names of features in options.

        Returns
        -------
        NamedFeatures or None
            None if columns stand for those of the model by their position: the archive has no
            ``feature_names``, or the features of the model have numbers for names.

        Raises
        ------
        mkldist.errors.DataError
            For features that are missing or unknown, and for names that are not distinct.
        """
        if FEATURE_NAMES not in archive:
            return None
        names = names_of_features(archive[FEATURE_NAMES], n_features, where)
        if are_numbered(columns.numbers) and set(columns.numbers).isdisjoint(names):
            return None
        beside = (*columns.categories, *columns.texts)
        NewRows.of(columns, (*names, *beside), where, ignored, place)
        position = {name: number for number, name in enumerate(names)}
        target = [n for n, name in enumerate(columns.numbers) if name in position]
        source = [position[columns.numbers[n]] for n in target]
        return cls(np.array(source, np.intp), np.array(target, np.intp), len(columns.numbers))

    def in_order(self, x: Any) -> Any:
        """Return features (r, d) as the model has them, (r, m), dense or sparse as they are."""
        width = self.n_numbers
        if x.shape[1] == width and np.array_equal(self.source, np.arange(width)):
            return x
        if is_sparse(x):
            return _placed(x[:, self.source], self.target, width)
        ordered = np.zeros((len(x), width))
        ordered[:, self.target] = x[:, self.source]
        return ordered


def _placed(x: Any, target: Ints, width: int) -> Any:
    """Return a sparse array whose columns stand at the places `target` among `width`."""
    from scipy.sparse import csr_array

    parts = (x.data, target[x.indices], x.indptr)
    placed = csr_array(parts, shape=(x.shape[0], width))
    placed.sort_indices()
    return placed


def npz_rows(
    archive: NamedArrays,
    columns: SourceColumns,
    where: str,
    *,
    sparse: bool,
    ignored: Collection[str] = (),
    place: str = "",
) -> Floats:
    """Return the features of an archive: ``x``, or the parts of a sparse matrix.

    Columns are matched by their names if the archive has ``feature_names``, else by position.

    Parameters
    ----------
    archive : NamedArrays
        The archive.
    columns : SourceColumns
        The columns of the model.
    where : str
        The file, to name in a message.
    sparse : bool
        True to keep a sparse matrix sparse.
    ignored : collection of str
        Features to leave out.
    place : str
        What precedes names of features in options.

    Raises
    ------
    mkldist.errors.DataError
        If both are absent or damaged, the number of columns differs, or named features are missing
        or unknown.
    """
    matrix = npz_sparse(archive, where) if sparse else None
    if matrix is None and columns.texts and not columns.numbers and "x" not in archive:
        n_rows = len(archive.required(columns.texts[0], "texts"))
        return np.empty((n_rows, 0))
    x = npz_features(archive, where) if matrix is None else matrix
    named = NamedFeatures.of(archive, x.shape[1], columns, where, ignored, place)
    x = x if named is None else named.in_order(x)
    if matrix is not None:
        return array_rows(columns, x, where)
    return array_rows(columns, x, f"{where}, array 'x'", texts_beside=True)


def npz_text_rows(archive: NamedArrays, columns: SourceColumns, n_rows: int) -> Array | None:
    """Return the texts that a model needs of an archive, (t, c); None if it needs none.

    Raises
    ------
    mkldist.errors.DataError
        If an array is absent, holds no texts, or has another length than the features.
    """
    texts = npz_texts(archive, columns.texts)
    if texts is None:
        return None
    if len(texts.values) != n_rows:
        raise DataError(
            f"{archive.where}, array {columns.texts[0]!r}",
            counted(len(texts.values), "text"),
            f"one for each of {counted(n_rows, 'row')}",
        )
    return texts.values


def svmlight_rows(path: Path, columns: SourceColumns) -> tuple[Any, RowPlaces, str]:
    """Return sparse rows of a ``.svm`` file, and a note on features that the model does not know.

    Parameters
    ----------
    path : Path
        The file.
    columns : SourceColumns
        The columns of the model, named by their numbers: ``f0``, ``f1`` and so on.

    Returns
    -------
    (t, d) csr_array, RowPlaces, and str
        The rows and their lines; the note is empty if the model knows all features.

    Raises
    ------
    mkldist.errors.DataError
        If the file cannot be read, if the model knows none of its features, and if features of the
        model have names.
    """
    raw = read_svmlight(path, None, str(path), sparse=True, start=columns.start)
    place = {name: position for position, name in enumerate(columns.numbers)}
    positions = np.array([place.get(name, -1) for name in raw.feature_names], dtype=np.int64)
    if not (positions >= 0).any() or not are_numbered(columns.numbers, "f"):
        raise _other_features(raw.feature_names, columns, str(path))
    known = raw.sparse[:, np.flatnonzero(positions >= 0)]
    x = _placed(known, positions[positions >= 0], len(columns.numbers))
    unknown = [raw.feature_names[column] for column in np.flatnonzero(positions < 0).tolist()]
    note = ""
    if unknown:
        listed = first_of(unknown, SHOWN)
        count = counted(len(unknown), "feature")
        note = f"{count} that no row of the model's data has ({listed}), left out"
    return array_rows(columns, x, str(path)), raw.row_places, note


def by_position(columns: SourceColumns, start: int) -> str:
    """Return a note that features of a ``.svm`` file are matched by position; empty if by number.

    Parameters
    ----------
    columns : SourceColumns
        The columns of the model.
    start : int
        First index of the file.
    """
    if are_numbered(columns.numbers):
        return ""
    pairs = [f"{start + n} is {name!r}" for n, name in enumerate(columns.numbers[: SHOWN + 1])]
    more = ", …" * (len(pairs) > SHOWN)
    said = ", ".join(pairs[:SHOWN]) + more
    return f"its features have no names and are taken by their position: index {said}"


def are_numbered(names: Sequence[str], letters: str = "fx") -> bool:
    """Return True if all names are those of features that have only a number.

    Parameters
    ----------
    names : sequence of str
        The names.
    letters : str
        Letters before the number: ``f`` of data sets without names, ``x`` of estimators.

    Examples
    --------
    >>> are_numbered(["f0", "f7"]), are_numbered(["x0", "x1"]), are_numbered(["f0", "age"])
    (True, True, False)
    """
    return any(all(re.fullmatch(f"{one}[0-9]+", name) for name in names) for one in letters)


def _other_features(found: Sequence[str], columns: SourceColumns, where: str) -> DataError:
    """Return the error of numbered features that are not those of a model."""
    if are_numbered(columns.numbers, "f"):
        hint = "Check that both files count the same features, from the same first index"
    else:
        hint = "Write the rows to a .npz file with columns in the order of the model"
    return DataError(
        where,
        f"features by their numbers alone: {first_of(found, SHOWN)}",
        f"features of the model: {first_of(columns.numbers, SHOWN)}",
        hint,
    )


@dataclass(frozen=True, eq=False)
class Block:
    """Some successive rows of a file.

    Parameters
    ----------
    x : (r, d) float64 array or csr_array
        Their features, missing values as NaN.
    row_places : RowPlaces
        How messages name them.
    ids : list of str, or None
        Their names; None where the model knows no column of names.
    texts : (r, c) array of str objects, or None
        Their texts in the columns that the model needs, empty where they have none; None if it
        needs none.
    """

    x: Floats
    row_places: RowPlaces
    ids: list[str] | None = None
    texts: Array | None = None


@dataclass(frozen=True, eq=False)
class NewFile:
    """An open file of new rows.

    Parameters
    ----------
    rows : NewRows
        Its columns.
    blocks : iterator of Block
        Its rows, read when they are asked for.
    note : str
        What was left out; empty for nothing.
    """

    rows: NewRows
    blocks: Iterator[Block]
    note: str = ""


@dataclass(frozen=True)
class NewTable:
    """The table of a model, or of one of its views: what files of new rows are read as.

    Parameters
    ----------
    columns : SourceColumns
        Its columns.
    rows_at_once : int
        Rows of a block.
    ignored : collection of str
        Columns to leave out.
    sparse : bool
        True to keep rows of sparse files sparse.
    place : str
        What precedes the names of its columns in options.
    """

    columns: SourceColumns
    rows_at_once: int
    ignored: Collection[str] = ()
    sparse: bool = False
    place: str = ""


def opened_rows(path: Path, table: NewTable) -> AbstractContextManager[NewFile]:
    """Open a file of new rows: ``.csv``, ``.tsv``, ``.parquet``, ``.npz``, ``.svm`` or zarr.

    An ``.npz`` file has an array ``x``, or the parts of a sparse matrix, and may name its features
    and its rows; the lines of an ``.svm`` file begin with a label, which is not used.  Both are
    read at once.

    Parameters
    ----------
    path : Path
        The file.
    table : NewTable
        What it is read as.

    Raises
    ------
    mkldist.errors.DataError
        If the file cannot be read or its columns differ; also while blocks are read.
    """
    extension = ZARR if is_zarr(path) else extension_of(path.name, READERS)
    if not extension:
        found = ending_words(path.suffix, "file")
        raise DataError(str(path), found, f"a file ending in one of {', '.join(READERS)}")
    if extension == ZARR:
        check_zarr(path, str(path))
        return _opened_zarr(path, table)
    if extension not in TABLES:
        return _opened_arrays(path, table, is_archive=extension == ARCHIVE)
    if extension == ".parquet":
        return _opened_table(opened_parquet(path, str(path)), path, table)
    return _opened_csv(path, table)


@contextmanager
def _opened_csv(path: Path, table: NewTable) -> Iterator[NewFile]:
    with opened_csv(path, str(path)) as (names, lines):
        rows = _rows(table, names, path)
        yield NewFile(rows, _csv_blocks(rows, lines, table.rows_at_once))


def _rows(table: NewTable, names: Sequence[str], path: Path) -> NewRows:
    check_names(names, str(path), fewest=1)
    return NewRows.of(table.columns, names, str(path), table.ignored, table.place)


def _csv_blocks(rows: NewRows, lines: Rows, rows_at_once: int) -> Iterator[Block]:
    place = {name: position for position, name in enumerate(rows.names)}
    of_numbers = [place[name] for name in rows.numbers]
    words = (*rows.columns.categories, *rows.columns.texts, rows.id)
    of_texts = {name: place[name] for name in words if name}
    done = False
    while not done:
        values = array("d")
        texts: dict[str, list[str]] = {name: [] for name in of_texts}
        problems = TableProblems(rows.where, len(rows.names))
        places, done = array("q"), True
        for line, fields in lines:
            if not fields:
                continue
            places.append(line)
            if len(fields) != len(rows.names):
                problems.ragged(line, len(fields))
            else:
                chosen = [fields[position] for position in of_numbers]
                values.fromlist(numbers(chosen, rows.numbers, line, problems))
                for name, position in of_texts.items():
                    texts[name].append(fields[position].strip())
            if len(places) == rows_at_once:
                done = False
                break
        _check(problems, len(places))
        if places:
            x = np.frombuffer(values, dtype=np.float64).reshape(len(places), len(of_numbers))
            own = texts_of(rows.columns.texts, texts)
            yield Block(rows.features(x, texts), in_lines(places), texts.get(rows.id), own)


def _check(problems: TableProblems, n_rows: int) -> None:
    """Raise if rows of a block cannot be read; the remedies are those of a fitted model."""
    try:
        problems.check(n_rows)
    except DataError as error:
        hint = f"{DECIMALS}. {AS_NUMBERS}" if problems.has_decimal_commas else AS_NUMBERS
        raise DataError(error.where, error.found, error.expected, hint) from None


@contextmanager
def _opened_table(
    opened: AbstractContextManager[TableBlocks], path: Path, table: NewTable
) -> Iterator[NewFile]:
    """Open a table of which a few rows are read at a time."""
    with opened as file:
        rows = _rows(table, file.names, path)
        words = [*table.columns.categories, *table.columns.texts, *([rows.id] if rows.id else [])]
        wanted = list(dict.fromkeys([*rows.numbers, *words]))

        def blocks() -> Iterator[Block]:
            places = FROM_ONE
            for frame in file.read(wanted, table.rows_at_once):
                ids = frame_texts(frame[rows.id], rows.where, places) if rows.id else None
                texts = frame_columns_of_texts(table.columns, frame, rows.where, places)
                yield Block(frame_block(rows, frame, places), places, ids, texts)
                places = places.after(len(frame))

        yield NewFile(rows, blocks())


@contextmanager
def _opened_arrays(path: Path, table: NewTable, *, is_archive: bool) -> Iterator[NewFile]:
    columns, where, note = table.columns, str(path), ""
    ids, texts, places = None, None, FROM_ONE
    if is_archive:
        with opened_npz(path, where) as archive:
            x = _archive_rows(archive, table, where)
            ids, texts = _beside(archive, columns, x.shape[0])
    elif table.sparse:
        x, places, note = svmlight_rows(path, columns)
    else:
        read = read_svmlight(path, None, where, start=columns.start)
        x = array_rows(columns, _padded(read.x, len(columns.numbers)), where)
        places = read.row_places
        note = by_position(columns, _first_index(read))
    step = table.rows_at_once
    parts = (x[start : start + step] for start in range(0, x.shape[0], step))
    yield NewFile(
        _archive_columns(columns, where, ids), _array_blocks(parts, places, ids, texts), note
    )


@contextmanager
def _opened_zarr(path: Path, table: NewTable) -> Iterator[NewFile]:
    columns, where, step = table.columns, str(path), table.rows_at_once
    with opened_group(path, where) as group:
        if group.is_table:
            with _opened_table(nullcontext(group.table()), path, table) as file:
                yield file
            return
        parts: Iterator[Floats]
        if table.sparse or "x" not in group:
            x = _archive_rows(group, table, where)
            n_rows = x.shape[0]
            parts = (x[start : start + step] for start in range(0, n_rows, step))
        else:
            n_rows, place = group.length("x"), f"{where}, array 'x'"
            width, own = group.n_features("x"), group.feature_blocks("x", step)
            named = NamedFeatures.of(group, width, columns, where, table.ignored, table.place)
            if named is not None:
                own = map(named.in_order, own)
            parts = (array_rows(columns, part, place, texts_beside=True) for part in own)
        ids, texts = _beside(group, columns, n_rows)
        yield NewFile(
            _archive_columns(columns, where, ids), _array_blocks(parts, FROM_ONE, ids, texts)
        )


def _archive_rows(archive: NamedArrays, table: NewTable, where: str) -> Floats:
    return npz_rows(
        archive,
        table.columns,
        where,
        sparse=table.sparse,
        ignored=table.ignored,
        place=table.place,
    )


def _first_index(read: RawData) -> int:
    """Return the first index of a ``.svm`` file that was read."""
    return (read.columns and read.columns.start) or 0


def _beside(
    archive: NamedArrays, columns: SourceColumns, n_rows: int
) -> tuple[Array | None, Array | None]:
    """Return names (t,) and texts (t, c) of the rows of an archive; None where not needed."""
    ids = None
    if columns.id and columns.id in archive:
        ids = row_names(archive, columns.id, n_rows)
    return ids, npz_text_rows(archive, columns, n_rows)


def _archive_columns(columns: SourceColumns, where: str, ids: Array | None) -> NewRows:
    names = (*columns.numbers, *columns.texts, *(() if ids is None else (columns.id,)))
    return NewRows(columns, names, where)


def _array_blocks(
    parts: Iterator[Floats], places: RowPlaces, ids: Array | None, texts: Array | None
) -> Iterator[Block]:
    """Yield successive rows of features with their names and texts."""
    start = 0
    for part in parts:
        rows = slice(start, start + part.shape[0])
        yield Block(
            part,
            places.after(start),
            None if ids is None else ids[rows].tolist(),
            None if texts is None else texts[rows],
        )
        start = rows.stop


def _padded(x: Floats | None, width: int) -> Floats:
    """Return sparse rows with zeros for the features behind the last one that occurs."""
    given = np.empty((0, 0)) if x is None else x
    return np.pad(given, ((0, 0), (0, max(0, width - given.shape[1]))))


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
        A file for each view: a table or arrays as of :func:`mkldist.fit.new_rows.opened_rows`;
        of a view of Gram matrices see :func:`mkldist.fit.model_file.read_kernel_values`.
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
