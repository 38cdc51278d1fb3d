"""Column names of tables, the choice of the label column, and lists of names: `listing`."""

from __future__ import annotations

import pytest

from mkldist.data.columns import check_names, label_position
from mkldist.data.listing import first_of
from tests.data.mistakes import mistake

NAMES = ["a", "b", "label"]


@pytest.mark.parametrize(("label", "position"), [
    (None, 2), ("label", 2), ("a", 0), (0, 0), (1, 1), (-1, 2), (-3, 0),
])  # fmt: skip
def test_the_label_by_name_position_and_default(label: str | int | None, position: int) -> None:
    assert label_position(NAMES, label, "t") == position


def test_the_label_column_must_be_there() -> None:
    with mistake("no column 'labl'", "Did you mean 'label'?"):
        label_position(NAMES, "labl", "t")
    with mistake("no column 'zzz'", "the columns a, b, label"):
        label_position(NAMES, "zzz", "t")
    with mistake("f0, f1, f2, f3, f4, f5, f6, f7, … 12 more"):
        label_position([f"f{i}" for i in range(20)], "zzz", "t")
    for position in (3, -4):
        with mistake(f"label = {position}, but 3 columns", "from -3 to 2"):
            label_position(NAMES, position, "t")


@pytest.mark.parametrize("name", ["class", "Label", "TARGET", "y"])
def test_a_label_that_is_not_last_must_be_named(name: str) -> None:
    with mistake(f"a column {name!r}", "'b' stands last", f'label = "{name}"'):
        label_position([name, "a", "b"], None, "t")
    assert label_position([name, "a", "y"], None, "t") == 2


def test_names_that_are_missing_or_twice() -> None:
    check_names(NAMES, "t")
    with mistake("columns 1, 3 have the same name 'a'", "Rename"):
        check_names(["a", "b", "a", "label"], "t")
    with mistake("column 1 of 3 has no name", "index=False"):
        check_names(["", "b", "label"], "t")
    with mistake("1 column (a b label)", "comma, semicolon or tab"):
        check_names(["a b label"], "t")


def test_lists_are_cut_after_the_first_names() -> None:
    assert first_of(NAMES, 3) == "a, b, label"
    assert first_of(NAMES, 1, "more columns") == "a, … 2 more columns"
