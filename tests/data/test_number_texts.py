"""Texts that stand for numbers."""

from __future__ import annotations

import pytest

from mkldist.data.number_texts import finite_number


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1.0), (" 2.5 ", 2.5), ("-1e3", -1000.0), ("+.5", 0.5), ("0x1", None), ("1,5", None),
     ("", None), ("nan", None), ("inf", None), ("1e999", None), ("1_000", None), ("yes", None)],
)  # fmt: skip
def test_only_finite_numbers_are_numbers(text, number):
    assert finite_number(text) == number
