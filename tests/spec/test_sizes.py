"""Lists that memory could not hold are refused by their number, before they are made."""

from __future__ import annotations

import pytest

from mkldist.errors import SpecError
from mkldist.spec import sizes
from mkldist.spec.checks import check_fits


def test_half_of_the_memory_may_be_taken_and_no_more(monkeypatch):
    monkeypatch.setattr(sizes, "physical_memory", lambda: 2**31)
    check_fits(2**20, 2**10, "here", "things")
    with pytest.raises(SpecError) as caught:
        check_fits(2**20 + 1, 2**10, "here", "things", "Take fewer")
    assert str(caught.value) == (
        "here: found 1,048,577 things, which need 1.0 GiB of memory; expected at most 1.0 GiB, "
        "half of this machine's memory. Take fewer."
    )


def test_more_than_there_may_be_are_refused_with_what_they_need(monkeypatch):
    check_fits(1000, 1, "here", "things", most=1000)
    for memory in (2**10, 2**60):
        monkeypatch.setattr(sizes, "physical_memory", lambda memory=memory: memory)
        with pytest.raises(SpecError, match=r"2,147,483,648 things, which need 2\.0 GiB of memory"):
            check_fits(2**31, 1, "here", "things", most=1000)
        with pytest.raises(SpecError, match=r"expected at most 1,000$"):
            check_fits(2**31, 1, "here", "things", most=1000)


def test_numbers_of_thousands_of_digits_are_not_written_out():
    with pytest.raises(SpecError, match="found more than 1,000,000,000,000,000 things; expected"):
        check_fits(10**5000, 100, "here", "things")
