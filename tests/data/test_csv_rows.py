"""Rows of CSV files, and the limit of the csv module, which is the user's again afterwards."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from mkldist.data import csv_rows as module
from mkldist.data.csv_rows import LONG_TEXTS, csv_rows
from tests.data.mistakes import mistake


@pytest.fixture
def limit() -> Iterator[int]:
    """Set a limit of the user's own."""
    before = csv.field_size_limit(1000)
    yield 1000
    csv.field_size_limit(before)


def test_the_limit_is_lifted_while_a_table_is_open(limit: int) -> None:
    with LONG_TEXTS, LONG_TEXTS:
        assert list(csv_rows(["x" * 200_000], ",", "t")) == [(1, ["x" * 200_000])]
    assert csv.field_size_limit() == limit


def test_the_limit_is_back_after_a_mistake(limit: int) -> None:
    with mistake("t, line 1"), LONG_TEXTS:
        list(csv_rows(['"a'], ",", "t"))
    assert csv.field_size_limit() == limit


def test_a_greater_limit_of_the_user_stays() -> None:
    before = csv.field_size_limit(2 * module.LONGEST_TEXT)
    with LONG_TEXTS:
        assert csv.field_size_limit() == 2 * module.LONGEST_TEXT
    assert csv.field_size_limit(before) == 2 * module.LONGEST_TEXT


def test_a_table_that_ends_leaves_the_limit_to_those_of_other_threads(limit: int) -> None:
    both = Barrier(2)

    def read(waits: bool) -> int:
        with LONG_TEXTS:
            both.wait()
            if not waits:
                return csv.field_size_limit()
            both.wait()
            return len(next(csv_rows(["x" * 200_000], ",", "t"))[1][0])

    with ThreadPoolExecutor(2) as threads:
        long, short = threads.submit(read, True), threads.submit(read, False)
        assert short.result() == module.LONGEST_TEXT
        both.wait()
        assert long.result() == 200_000
    assert csv.field_size_limit() == limit


def test_a_text_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(module, "LONGEST_TEXT", 5000)
    lines = ["a,b\n", '1,"2\n', *["3,4\n"] * 2000]
    with mistake("t, line 2", "field larger than field limit (5000); read to"), LONG_TEXTS:
        list(csv_rows(lines, ",", "t"))
