"""Values as a sweep file spells them: TOML reads them back."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkldist.spec.toml_texts import spelled, toml_text

WORDS = st.text("abc äß'\"\\\t#=", max_size=4)
PLAIN = st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False) | WORDS
NESTED = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)
    ),
    max_leaves=3,
)


@given(NESTED)
def test_toml_reads_what_is_spelled(value):
    text = spelled(value)
    assert len(text) == 60 or tomllib.loads(f"value = {text}")["value"] == value


def test_tuples_are_lists():
    assert spelled((1, "a")) == '[1, "a"]'


@pytest.mark.parametrize(("length", "ending"), [(58, 'a"'), (59, "a...")])
def test_long_values_are_cut(length, ending):
    text = spelled("a" * length)
    assert len(text) == 60
    assert text.endswith(ending)


TABLE = st.dictionaries(WORDS, NESTED | st.lists(st.dictionaries(WORDS, NESTED, max_size=2)))


@given(st.dictionaries(WORDS, NESTED | TABLE | st.lists(TABLE, max_size=2), max_size=4))
def test_toml_reads_a_document_that_is_written(document):
    assert tomllib.loads(toml_text(document)) == document


def test_a_number_of_more_digits_than_python_writes_is_told_by_its_bits():
    assert spelled([1 << 20_000]) == "[a whole number of 20001 bits]"
