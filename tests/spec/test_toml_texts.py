"""TOML texts of which a parser makes no end are refused at once."""

from __future__ import annotations

import tomllib

import pytest

from mkldist.spec.toml_texts import TooLongError, parsed_toml


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a." * 50_000 + "a = 1", "a key of over 100 parts"),
        ("a = " + "[" * 4000, "lists or tables in each other too deep to read"),
        ("a = " + "1" * 5000, "a whole number of more than 4000 digits"),
    ],
)
def test_texts_beyond_all_use_are_refused(text, found):
    with pytest.raises(TooLongError, match=found):
        parsed_toml(text)


def test_other_mistakes_stay_those_of_toml():
    with pytest.raises(tomllib.TOMLDecodeError):
        parsed_toml("a = ")
