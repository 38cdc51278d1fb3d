"""Excel workbooks: sheets of a header and rows, read row by row by openpyxl, an extra."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from mkldist.core.wording import truncate
from mkldist.data.csv_files import (
    LOOKED_AT,
    SHOWN,
    cell_text,
    looks_like_row,
    named_columns,
    table_of_rows,
)
from mkldist.data.opening import REWRITE, check_file, check_unpacked, imports, opened
from mkldist.data.tables import PLAIN, Table
from mkldist.errors import DataError, MkldistError
from mkldist.spec.datasets import TableFormat
from mkldist.spec.kinds import spelled


@contextmanager
def open_excel(
    path: Path,
    where: str,
    format: TableFormat = PLAIN,
    may_lack: str = "",
    known: Collection[str | None] = (),
) -> Iterator[Table]:
    """Open a sheet of a workbook, by default the first, as its format says; all are its `parts`.

    Cells hold the values that were last computed, and cells that are merged over several rows that
    of the first.  Blank rows are skipped.  What `known` means says :func:`open_csv`.
    """
    with _sheets(path, where) as sheets:

        def sheet(name: str) -> Table:
            return _table(name, sheets, where, format, may_lack, known)

        name = format.part if format.part in sheets else next(iter(sheets))
        yield replace(sheet(name), parts={other: partial(sheet, other) for other in sheets})


def likely_sheet(
    path: Path, where: str, header: bool | None = None, known: Collection[str | None] = ()
) -> TableFormat:
    """Return which sheet most likely is the table, and if it has a header."""
    keys: dict[str, Any] = {} if header is None else {"header": header}
    with _sheets(path, where) as sheets:
        heads = {
            name: [list(map(cell_text, cells)) for _, cells in islice(_rows(sheet), LOOKED_AT)]
            for name, sheet in sheets.items()
        }
    several = [name for name, rows in heads.items() if rows and len(rows[0]) > 1] or [
        next(iter(heads))
    ]
    part = max(several, key=lambda name: not set(known).isdisjoint(*heads[name][:1]))
    if part != next(iter(heads)):
        keys["part"] = part
    first, *others = heads[part] or [[]]
    if header is None and looks_like_row(first, others, known):
        keys["header"] = False
    return TableFormat(**keys)


@contextmanager
def _sheets(path: Path, where: str) -> Iterator[dict[str, Any]]:
    """Open the sheets of a workbook by name."""
    check_file(path, where)
    with imports("openpyxl", "formats", where):
        import openpyxl
    with opened(path, where) as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl tells what it leaves out: styles, menus
        try:
            with zipfile.ZipFile(stream) as archive:
                entries = archive.infolist()
                for entry in entries:
                    sizes = entry.file_size, entry.compress_size
                    check_unpacked(*sizes, f"{where}, {entry.filename}", "a sheet", "unzip")
                merged = any(_holds_merged(archive, entry) for entry in entries)
            # Sheets that are read row by row do not say which cells are merged.
            book = openpyxl.load_workbook(stream, read_only=not merged, data_only=True)
            sheets = {one.title: one for one in book.worksheets}
            if not sheets:
                raise DataError(where, "no sheet", "a sheet of a header and rows", REWRITE)
            yield sheets
        except MkldistError:
            raise
        except Exception as error:  # the parsers of zip files and XML raise many
            found = f"a workbook that cannot be read ({error or type(error).__name__})"
            raise DataError(where, found, "a complete workbook of Excel", REWRITE) from error


def _holds_merged(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    """Return True if a file of a workbook is a sheet with merged cells."""
    if not entry.filename.startswith("xl/worksheets/"):
        return False
    with archive.open(entry) as file:  # a block's end may cut one of its at least two mentions
        return any(b"<mergeCell" in block for block in iter(partial(file.read, 2**20), b""))


def _fill_merged(sheet: Any) -> list[str]:
    """Fill cells that are merged over several rows by their first; return their ranges."""
    ranges = [one for one in getattr(sheet, "merged_cells", ()) if one.max_row > one.min_row]
    ranges.sort(key=lambda one: (one.min_col, one.min_row))
    for one in ranges:
        sheet.unmerge_cells(one.coord)
        value = sheet.cell(one.min_row, one.min_col).value
        for row in sheet[one.coord]:
            for cell in row:
                cell.value = value
    return [str(one.coord) for one in ranges]


def _rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield rows that are not blank, each with its line; as long as the first or longer."""
    width = 0
    for line, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells = list(row)
        while len(cells) > width and cells[-1] in (None, ""):
            cells.pop()
        if any(cell not in (None, "") for cell in cells):
            width = width or len(cells)
            yield line, cells + [None] * (width - len(cells))


def _table(
    name: str,
    sheets: dict[str, Any],
    where: str,
    format: TableFormat,
    may_lack: str,
    known: Collection[str | None],
) -> Table:
    """Return a sheet as a table."""
    place = f"{where}, sheet {name!r}" if len(sheets) > 1 else where
    merged, notes = _fill_merged(sheets[name]), []
    if merged:
        notes.append(f"merged cells have the value of their first: {truncate(merged, SHOWN)}")
    rows = _rows(sheets[name])
    first = next(rows, None)
    if first is None:
        hint = f"Set part = another of {truncate([spelled(one) for one in sheets], SHOWN)}"
        raise DataError(place, "a sheet without cells", "a header and rows", hint)
    names, rows = named_columns(chain([first], rows), format, place, may_lack, known, notes)
    padded = ((line, cells + [None] * (len(names) - len(cells))) for line, cells in rows)
    return table_of_rows(names, padded, place, notes, name)
