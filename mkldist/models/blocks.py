"""New rows of a file, a block at a time: tables in bounded memory, arrays as they are."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mkldist.arrays import Array, Floats
from mkldist.data.archives import NamedArrays, opened_npz
from mkldist.data.columns import check_names
from mkldist.data.csv_files import numbers, opened_csv
from mkldist.data.csv_rows import Rows
from mkldist.data.files import ARCHIVE, READERS, TABLES, ZARR, extension_of
from mkldist.data.frames import frame_texts
from mkldist.data.npz_files import row_names
from mkldist.data.parquet_files import opened_parquet
from mkldist.data.raw import RawData
from mkldist.data.source_columns import SourceColumns
from mkldist.data.svmlight_files import read_svmlight
from mkldist.data.table_blocks import TableBlocks
from mkldist.data.table_problems import DECIMALS, TableProblems
from mkldist.data.zarr_files import opened_group
from mkldist.data.zarr_stores import check_zarr, is_zarr
from mkldist.errors import DataError, ending_words
from mkldist.models.array_files import (
    NamedFeatures,
    by_position,
    npz_rows,
    npz_text_rows,
    svmlight_rows,
)
from mkldist.models.rows import (
    AS_NUMBERS,
    NewRows,
    array_rows,
    frame_block,
    frame_columns_of_texts,
)
from mkldist.models.text_columns import texts_of
from mkldist.row_places import FROM_ONE, RowPlaces, in_lines


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
    yield NewFile(_named(columns, where, ids), _array_blocks(parts, places, ids, texts), note)


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
        yield NewFile(_named(columns, where, ids), _array_blocks(parts, FROM_ONE, ids, texts))


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


def _named(columns: SourceColumns, where: str, ids: Array | None) -> NewRows:
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
