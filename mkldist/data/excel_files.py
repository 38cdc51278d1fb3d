"""Excel workbooks: sheets of a header and rows, read row by row by openpyxl, an extra."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.core.wording import RowLabels, in_lines
from mkldist.data.opening import REWRITE, check_file, check_unpacked, imports, opened
from mkldist.data.tables import UNNAMED, Table, TableProblems
from mkldist.errors import DataError, MkldistError

if TYPE_CHECKING:
    import pandas as pd

EXTENSIONS = (".xlsx", ".xlsm")


@contextmanager
def open_excel(path: Path, where: str) -> Iterator[Table]:
    """Open the first sheet of a workbook; the others are its `parts`.

    Cells hold the values that were last computed.  Blank rows are skipped.
    """
    check_file(path, where)
    with imports("openpyxl", "formats", where):
        import openpyxl
    with opened(path, where) as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl tells what it leaves out: styles, menus
        try:
            with zipfile.ZipFile(stream) as archive:
                for entry in archive.infolist():
                    sizes = entry.file_size, entry.compress_size
                    check_unpacked(*sizes, f"{where}, {entry.filename}", "a sheet", "unzip")
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            sheets = {one.title: one for one in book.worksheets}
            if not sheets:
                raise DataError(where, "no sheet", "a sheet of a header and rows", REWRITE)
            yield _sheet(next(iter(sheets)), sheets, where)
        except MkldistError:
            raise
        except Exception as error:  # the parsers of zip files and XML raise many
            found = f"a workbook that cannot be read ({error or type(error).__name__})"
            raise DataError(where, found, "a complete workbook of Excel", REWRITE) from error


def _sheet(name: str, sheets: dict[str, Any], where: str) -> Table:
    """Return a sheet as a table."""
    place = f"{where}, sheet {name!r}" if len(sheets) > 1 else where
    rows = (
        (line, cells)
        for line, cells in enumerate(sheets[name].iter_rows(values_only=True), start=1)
        if any(cell not in (None, "") for cell in cells)
    )
    header = list(next(rows, (0, ()))[1])
    while header and header[-1] in (None, ""):
        header.pop()
    names = ["" if cell is None else str(cell).strip() for cell in header]
    if not any(names):
        expected = "a header and rows"
        raise DataError(place, "a sheet without cells", expected, "Name another sheet by part")
    if len(names) > 1 and not names[0] and all(names[1:]) and UNNAMED not in names:
        names[0] = UNNAMED
    problems = TableProblems(place, len(names))

    def read(columns: Sequence[str], count: int) -> Iterator[tuple[pd.DataFrame, RowLabels]]:
        import pandas as pd

        while block := list(islice(rows, count)):
            for line, cells in block:
                if any(cell not in (None, "") for cell in cells[len(names) :]):
                    problems.ragged(line, len(cells))
            cells = [(*row, *[None] * len(names))[: len(names)] for _, row in block]
            frame = pd.DataFrame(cells, columns=names, dtype=object)
            yield frame[list(columns)], in_lines([line for line, _ in block])

    parts = {other: partial(_sheet, other, sheets, where) for other in sheets}
    return Table(tuple(names), read, problems, part=name, parts=parts)
