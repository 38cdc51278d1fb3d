"""Natural order of names and paths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mkldist.core.natural_order import natural_key, natural_path_key


def test_numbers_count_as_numbers():
    names = ["m1000", "m20", "m100", "m3", "level", "m", "2m", "10m", "m01", "m1"]
    assert sorted(names, key=natural_key) == [
        "2m", "10m", "level", "m", "m01", "m1", "m3", "m20", "m100", "m1000",
    ]  # fmt: skip


def test_paths_are_ordered_name_by_name():
    paths = ["d/m100/level", "d/m20/level", "d/m20", "d10", "d2/x"]
    assert sorted(paths, key=natural_path_key) == [
        "d/m20", "d/m20/level", "d/m100/level", "d2/x", "d10",
    ]  # fmt: skip


@given(st.text(), st.text())
def test_equal_keys_are_equal_names(one, other):
    assert (natural_key(one) == natural_key(other)) == (one == other)


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="0123456789")), st.text())
def test_names_without_digits_keep_their_order(one, other):
    other = "".join(c for c in other if not c.isdecimal())
    assert (natural_key(one) < natural_key(other)) == (one < other)
