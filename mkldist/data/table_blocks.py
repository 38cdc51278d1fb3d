"""Tables in files that are read a few rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mkldist.core.wording import FROM_ONE
from mkldist.data.columns import ColumnChoice, check_names, column_roles
from mkldist.data.frames import frames_data
from mkldist.data.opening import REWRITE
from mkldist.data.raw import RawData
from mkldist.data.row_blocks import rows_at_once
from mkldist.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class TableBlocks:
    """An open table.

    Parameters
    ----------
    names : tuple of str
        Its columns.
    n_rows : int
        Number of its rows.
    read : callable
        ``read(columns, rows)`` yields successive rows of some columns, about so many at a time.
    """

    names: tuple[str, ...]
    n_rows: int
    read: Callable[[Sequence[str], int], Iterator[pd.DataFrame]]


def table_data(table: TableBlocks, choice: ColumnChoice, where: str) -> RawData:
    """Return the raw data of an open table with a label column.

    Parameters
    ----------
    table : TableBlocks
        The table.
    choice : ColumnChoice
        The label column, and others that are no features of numbers.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If it has no rows, columns are absent, the features do not fit into memory, or a feature
        column holds no numbers.
    """
    check_names(table.names, where)
    roles = column_roles(table.names, choice, where)
    if not table.n_rows:
        raise DataError(where, "no rows", "at least one row of each class", REWRITE)
    wanted = [name for name in table.names if name not in choice.ignore]
    frames = table.read(wanted, rows_at_once(8 * len(wanted)))
    raw = frames_data(frames, table.n_rows, roles, where, FROM_ONE)
    return replace(raw, own_memory=True)
