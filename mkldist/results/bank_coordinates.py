"""Coordinates along the splits of a node that describe its banks: their bytes and build times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from mkldist.results.coordinates import Coordinate
from mkldist.results.schema import BANK_BYTES, BUILD_TIMES

if TYPE_CHECKING:
    from mkldist.planning.model import BankPlan


def bank_coordinates(banks: Iterable[BankPlan], n_splits: int) -> dict[str, Coordinate]:
    """Return bytes and build times of the banks of a node, along its splits.

    The times of stored banks come with the runs, and are NaN until then; a bank that is not stored
    takes none.

    Parameters
    ----------
    banks : iterable of BankPlan
        Banks of one data set and label: one for each split, or one for all.
    n_splits : int
        Number of splits.
    """
    n_bytes = np.full(n_splits, np.nan)
    seconds = np.full(n_splits, np.nan)
    for bank in banks:
        if bank.split is None or bank.split < n_splits:
            where = slice(None) if bank.split is None else bank.split
            n_bytes[where] = bank.n_bytes
            seconds[where] = np.nan if bank.stored else 0.0
    times = {time.name: Coordinate(time, seconds) for time in BUILD_TIMES}
    return {BANK_BYTES.name: Coordinate(BANK_BYTES, n_bytes), **times}
