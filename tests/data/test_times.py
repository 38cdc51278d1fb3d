"""The order of rows in time, against sorting by Python."""

from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.data.labels import is_date, rows_in_order
from tests.data.mistakes import mistake


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.datetimes(), min_size=1, max_size=9))
def test_dates_are_in_the_order_of_time(dates: list[datetime]) -> None:
    found = rows_in_order(np.array([date.isoformat() for date in dates]), "t")
    assert found.tolist() == sorted(range(len(dates)), key=dates.__getitem__)


@settings(deadline=None)
@given(st.lists(st.integers(-200, 200) | st.integers(2**60, 2**60 + 9), min_size=1, max_size=9))
def test_numbers_are_in_the_order_of_numbers(numbers: list[int]) -> None:
    found = rows_in_order(np.array([str(number) for number in numbers]), "t")
    assert found.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


@pytest.mark.parametrize("text", ["", "soon", "31.02.2021", "2021-03-01T12:00+02:00", "7"])
def test_a_value_without_an_order_is_refused(text: str) -> None:
    with mistake("row 1 (from 0)", repr(text), "such as 2021-03-01"):
        rows_in_order(np.array(["2021-02-28", text]), "t")


@settings(deadline=None)
@given(st.lists(st.datetimes(), min_size=1, max_size=9))
def test_dates_with_dots_begin_with_the_day(dates: list[datetime]) -> None:
    found = rows_in_order(np.array([f"{d.day}.{d.month}.{d.year:04}" for d in dates]), "t")
    assert found.tolist() == sorted(range(len(dates)), key=lambda i: dates[i].date())
    assert is_date("31.12.2020 09:30")


def test_dates_with_slashes_may_be_two_days_and_are_refused() -> None:
    with mistake("'1/2/2021' in row 0", "as year-month-day"):
        rows_in_order(np.array(["1/2/2021", "3/2/2021"]), "t")
