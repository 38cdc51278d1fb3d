"""Parquet tables, read a few rows at a time by pyarrow, an optional dependency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.core.wording import FROM_ONE, RowLabels
from mkldist.data.opening import REWRITE, check_file, imports
from mkldist.data.tables import Table, TableProblems, shared_texts
from mkldist.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

INDEX = "__index_level_0__"  # of pandas, no column of its table
PAGE_BYTES = 2**20


@contextmanager
def open_parquet(path: Path, where: str) -> Iterator[Table]:
    """Open a Parquet file, of which memory holds a few rows and the pages that they are in."""
    check_file(path, where)
    with imports("pyarrow", "parquet", where):
        import pyarrow
        from pyarrow import parquet
    try:
        # With a buffer of its own, a column is read page by page, where pyarrow would read all of
        # the file ahead.  read_table would make columns of folder names like a=1.
        schema = parquet.read_schema(path)
        of_texts = pyarrow.string(), pyarrow.large_string()
        texts = [field.name for field in schema if field.type in of_texts]
        with parquet.ParquetFile(
            # Texts that repeat are few bytes of a file, and may be many of memory.
            path, buffer_size=PAGE_BYTES, pre_buffer=False, read_dictionary=texts
        ) as file:  # fmt: skip

            def read(columns: Sequence[str], rows: int) -> Iterator[tuple[pd.DataFrame, RowLabels]]:
                start = 0
                for batch in file.iter_batches(rows, columns=list(columns)):
                    frame = batch.replace_schema_metadata().to_pandas()  # its own may be damaged
                    for name in frame.columns.intersection(texts):
                        frame[name] = shared_texts(frame[name])
                    yield frame[list(columns)], FROM_ONE.after(start)
                    start += len(frame)

            names = tuple(str(name) for name in schema.names if name != INDEX)
            categories = tuple(
                str(field.name)
                for field in schema
                if pyarrow.types.is_dictionary(field.type) and field.type.value_type in of_texts
            )
            n_rows = file.metadata.num_rows
            yield Table(names, read, TableProblems(where), n_rows, categories=categories)
    except (pyarrow.ArrowException, OSError) as error:
        found = f"a Parquet file that cannot be read ({error})"
        raise DataError(where, found, "a complete Parquet file", REWRITE) from error
