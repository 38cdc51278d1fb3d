"""Parquet tables, read a few rows at a time by pyarrow, an optional dependency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.data.columns import ColumnChoice
from mkldist.data.opening import REWRITE, check_file
from mkldist.data.raw import RawData
from mkldist.data.table_blocks import TableBlocks, table_data
from mkldist.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

INDEX = "__index_level_0__"  # of pandas, no column of its table
PAGE_BYTES = 2**20


def read_parquet(path: Path, choice: ColumnChoice, where: str) -> RawData:
    """Read a Parquet table with a label column.

    Parameters
    ----------
    path : Path
        The file.
    choice : ColumnChoice
        The label column, and others that are no features of numbers.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If pyarrow is not installed, the file is damaged, or a feature column holds no numbers.
    """
    with opened_parquet(path, where) as table:
        return table_data(table, choice, where)


@contextmanager
def opened_parquet(path: Path, where: str) -> Iterator[TableBlocks]:
    """Open a Parquet file, of which memory holds a few rows and the pages that they are in.

    Raises
    ------
    DataError
        If pyarrow is not installed or the file is damaged; also inside the ``with`` block.
    """
    check_file(path, where)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise DataError(
            where,
            "no package pyarrow",
            "pyarrow, to read Parquet",
            "Run: pip install 'mkldist[parquet]'",
        ) from error
    try:
        # With a buffer of its own, a column is read page by page, where pyarrow would read all of
        # the file ahead.  read_table would make columns of folder names like a=1.
        with parquet.ParquetFile(path, buffer_size=PAGE_BYTES, pre_buffer=False) as file:
            names = tuple(str(name) for name in file.schema_arrow.names if name != INDEX)
            yield TableBlocks(names, file.metadata.num_rows, partial(_frames, file))
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            where,
            f"a Parquet file that cannot be read ({error})",
            "a complete Parquet file",
            REWRITE,
        ) from error


def _frames(file: Any, columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
    """Yield successive rows of some columns, (rows, c)."""
    for batch in file.iter_batches(rows, columns=list(columns)):
        yield batch.replace_schema_metadata().to_pandas()  # pandas' own may be damaged
