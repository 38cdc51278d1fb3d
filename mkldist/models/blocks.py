"""New rows of a file, a block at a time: tables in bounded memory, arrays as they are."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mkldist.arrays import Floats
from mkldist.data.archives import opened_npz
from mkldist.data.columns import check_names
from mkldist.data.csv_files import Rows, numbers, opened_csv
from mkldist.data.files import READERS, TABLES, extension_of
from mkldist.data.frames import frame_texts
from mkldist.data.npz_files import npz_features
from mkldist.data.parquet_files import opened_parquet
from mkldist.data.source_columns import SourceColumns
from mkldist.data.svmlight_files import read_svmlight
from mkldist.data.table_problems import TableProblems
from mkldist.errors import DataError
from mkldist.models.rows import AS_NUMBERS, NewRows, array_rows, frame_block


@dataclass(frozen=True, eq=False)
class Block:
    """Some successive rows of a file.

    Parameters
    ----------
    x : (r, d) float64
        Their features, missing values as NaN.
    first : int
        Number of the first of them, from 0.
    ids : list of str, or None
        Their names; None where the model knows no column of names.
    """

    x: Floats
    first: int
    ids: list[str] | None = None


@dataclass(frozen=True, eq=False)
class NewFile:
    """An open file of new rows.

    Parameters
    ----------
    rows : NewRows
        Its columns.
    blocks : iterator of Block
        Its rows, read when they are asked for.
    """

    rows: NewRows
    blocks: Iterator[Block]


def opened_rows(
    path: Path, columns: SourceColumns, rows_at_once: int, ignored: Collection[str] = ()
) -> AbstractContextManager[NewFile]:
    """Open a file of new rows: ``.csv``, ``.tsv``, ``.parquet``, ``.npz`` or ``.svm``.

    An ``.npz`` file has an array ``x``; the lines of an ``.svm`` file begin with a label, which is
    not used.  Both are read at once.

    Parameters
    ----------
    path : Path
        The file.
    columns : SourceColumns
        Columns of the model.
    rows_at_once : int
        Rows of a block.
    ignored : collection of str
        Columns to leave out.

    Raises
    ------
    mkldist.errors.DataError
        If the file cannot be read or its columns differ; also while blocks are read.
    """
    extension = extension_of(path.name, READERS)
    if not extension:
        found = f"a file ending in {path.suffix or 'nothing'!r}"
        raise DataError(str(path), found, f"a file ending in one of {', '.join(READERS)}")
    if extension not in TABLES:
        return _opened_arrays(path, columns, rows_at_once)
    opened = _opened_parquet if extension == ".parquet" else _opened_csv
    return opened(path, columns, rows_at_once, ignored)


@contextmanager
def _opened_csv(
    path: Path, columns: SourceColumns, rows_at_once: int, ignored: Collection[str]
) -> Iterator[NewFile]:
    with opened_csv(path, str(path)) as (names, lines):
        check_names(names, str(path), fewest=1)
        rows = NewRows.of(columns, names, str(path), ignored)
        yield NewFile(rows, _csv_blocks(rows, lines, rows_at_once))


def _csv_blocks(rows: NewRows, lines: Rows, rows_at_once: int) -> Iterator[Block]:
    place = {name: position for position, name in enumerate(rows.names)}
    of_numbers = [place[name] for name in rows.numbers]
    of_texts = {name: place[name] for name in (*rows.columns.categories, rows.id) if name}
    first, done = 0, False
    while not done:
        values = array("d")
        texts: dict[str, list[str]] = {name: [] for name in of_texts}
        problems = TableProblems(rows.where, len(rows.names))
        count, done = 0, True
        for line, fields in lines:
            if not fields:
                continue
            count += 1
            if len(fields) != len(rows.names):
                problems.ragged(line, len(fields))
            else:
                chosen = [fields[position] for position in of_numbers]
                values.fromlist(numbers(chosen, rows.numbers, line, problems))
                for name, position in of_texts.items():
                    texts[name].append(fields[position].strip())
            if count == rows_at_once:
                done = False
                break
        _check(problems, count)
        if count:
            x = np.frombuffer(values, dtype=np.float64).reshape(count, len(of_numbers))
            yield Block(rows.features(x, texts), first, texts.get(rows.id))
        first += count


def _check(problems: TableProblems, n_rows: int) -> None:
    """Raise if rows of a block cannot be read; the remedies are those of a fitted model."""
    try:
        problems.check(n_rows)
    except DataError as error:
        raise DataError(error.where, error.found, error.expected, AS_NUMBERS) from None


@contextmanager
def _opened_parquet(
    path: Path, columns: SourceColumns, rows_at_once: int, ignored: Collection[str]
) -> Iterator[NewFile]:
    with opened_parquet(path, str(path)) as file:
        names = [str(name) for name in file.schema_arrow.names if name != "__index_level_0__"]
        check_names(names, str(path), fewest=1)
        rows = NewRows.of(columns, names, str(path), ignored)
        wanted = [*rows.numbers, *columns.categories, *([rows.id] if rows.id else [])]

        def blocks() -> Iterator[Block]:
            first = 0
            for batch in file.iter_batches(rows_at_once, columns=wanted):
                frame = batch.to_pandas()
                ids = frame_texts(frame[rows.id]) if rows.id else None
                yield Block(frame_block(rows, frame), first, ids)
                first += len(frame)

        yield NewFile(rows, blocks())


@contextmanager
def _opened_arrays(path: Path, columns: SourceColumns, rows_at_once: int) -> Iterator[NewFile]:
    if path.suffix == ".npz":
        with opened_npz(path, str(path)) as archive:
            given = npz_features(archive, str(path))
        x = array_rows(columns, given, f"{path}, array 'x'")
    else:
        sparse = _padded(read_svmlight(path, None, str(path)).x, len(columns.numbers))
        x = array_rows(columns, sparse, str(path))
    starts: Sequence[int] = range(0, len(x), rows_at_once)
    blocks = (Block(x[start : start + rows_at_once], start) for start in starts)
    yield NewFile(NewRows(columns, columns.numbers, str(path)), blocks)


def _padded(x: Floats | None, width: int) -> Floats:
    """Return sparse rows with zeros for the features behind the last one that occurs."""
    given = np.empty((0, 0)) if x is None else x
    return np.pad(given, ((0, 0), (0, max(0, width - given.shape[1]))))
