"""Parquet tables, read by pyarrow, an optional dependency."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mkldist.data.columns import ColumnChoice, check_names, column_roles
from mkldist.data.frames import frame_data
from mkldist.data.opening import REWRITE, check_file
from mkldist.data.raw import RawData
from mkldist.errors import DataError
from mkldist.row_places import FROM_ONE


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
    with opened_parquet(path, where) as file:
        # pyarrow.parquet.read_table would make columns of folder names like a=1.
        table = file.read()
    names = [str(name) for name in table.column_names if name != "__index_level_0__"]
    check_names(names, where)
    roles = column_roles(names, choice, where)
    if not table.num_rows:
        raise DataError(where, "no rows", "at least one row of each class", REWRITE)
    frame = table.replace_schema_metadata().to_pandas()  # pandas' own may be damaged
    return frame_data(frame, roles, where, FROM_ONE)


@contextmanager
def opened_parquet(path: Path, where: str) -> Iterator[Any]:
    """Open a Parquet file as pyarrow does.

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
        with parquet.ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            where,
            f"a Parquet file that cannot be read ({error})",
            "a complete Parquet file",
            REWRITE,
        ) from error
