"""Texts that stand for numbers."""

from __future__ import annotations

import pytest

from mkldist.data.labels import finite_number, name_of_number, number_of_name


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1.0), (" 2.5 ", 2.5), ("-1e3", -1000.0), ("+.5", 0.5), ("0x1", None), ("1,5", None),
     ("", None), ("nan", None), ("inf", None), ("1e999", None), ("1_000", None), ("yes", None)],
)  # fmt: skip
def test_only_finite_numbers_are_numbers(text, number):
    assert finite_number(text) == number


@pytest.mark.parametrize(
    ("text", "name"),
    [("-0", "0"), (" 007 ", "7"), ("9007199254740993.0", "9007199254740993"), ("1e3", "1000"),
     (".50", "0.5"), ("0" * 5000 + "1", "1"), ("1_0", None), ("inf", None), ("a", None)],
)  # fmt: skip
def test_a_number_has_one_name_with_all_of_its_digits(text, name):
    assert name_of_number(text) == name


def test_a_name_gives_its_number_back():
    assert number_of_name("9007199254740993") == 2**53 + 1
    assert number_of_name("0.5") == 0.5
