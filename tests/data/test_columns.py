"""Column names of tables, the choice of the label column, and lists of names: `listing`."""

from __future__ import annotations

import pytest

from mkldist.core.wording import truncate
from mkldist.data.columns import ColumnChoice, check_names, column_roles, label_position
from mkldist.spec.datasets import DatasetSpec, SplitsSpec
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


@pytest.mark.parametrize("name", ["class", "Label", "TARGET", "y", "Diagnosis"])
def test_a_label_is_known_by_its_name_wherever_it_stands(name: str) -> None:
    assert label_position(["a", name, "b"], None, "t") == 1


def test_a_label_that_is_not_known_by_its_name_is_asked_for() -> None:
    with mistake("no label, and no column that is called", "one of 'b', 'disease', 'a'"):
        label_position(["disease", "a", "b"], None, "t")
    with mistake("columns 'class' and 'y'", "Set label = one of 'class', 'y'"):
        label_position(["class", "a", "y"], None, "t")


def test_a_column_of_categories_that_divides_the_rows_is_no_feature() -> None:
    entry = DatasetSpec(name="t", file="t.csv", categorical=("site", "sex"))
    splits = SplitsSpec(kind="leave-one-group-out", groups="site")
    roles = column_roles(["a", "site", "sex", "label"], ColumnChoice.of(entry, splits), "t")
    assert (roles.features, roles.categorical, roles.of_splits) == ((0,), (2,), (1,))


def test_every_column_has_one_role() -> None:
    names = ["number", "age", "sex", "note", "ill"]
    choice = ColumnChoice("ill", "number", ("note",), ("sex",))
    roles = column_roles(names, choice, "t")
    assert (roles.label, roles.features, roles.categorical) == (4, (1,), (2,))
    assert roles.feature_names == ("age",)
    assert roles.left_out == ("'number' (names the rows)", "'note' (ignored)")
    assert roles.label_said == "column 'ill', chosen by label = \"ill\""


def test_a_label_that_is_ignored_is_not_chosen_by_its_name() -> None:
    names = ["a", "class", "y"]
    roles = column_roles(names, ColumnChoice(ignore=("class",)), "t")
    assert (roles.label, roles.features) == (2, (0,))
    assert roles.label_said == "column 'y', chosen by its name"


@pytest.mark.parametrize(("choice", "words"), [
    (ColumnChoice(ignore=("aa",)), ("ignore: found no column 'aa'", "Did you mean 'a'?")),
    (ColumnChoice(categorical=("zzz",)), ("categorical: found no column 'zzz'", "a, b, label")),
    (ColumnChoice(id="x1"), ("id: found no column 'x1'",)),
    (ColumnChoice(ignore=("a",), categorical=("a",)), ("'a' in ignore and in categorical",)),
    (ColumnChoice(ignore=("a", "a")), ("'a' twice in ignore",)),
    (ColumnChoice("a", id="a"), ("'a' as the label and in another role",)),
    (ColumnChoice(ignore=("a", "b")), ("no feature column", "Ignore fewer")),
])  # fmt: skip
def test_roles_that_columns_cannot_have(choice: ColumnChoice, words: tuple[str, ...]) -> None:
    with mistake(*words):
        column_roles(NAMES, choice, "t")


@pytest.mark.parametrize("key", ["id", "ignore", "categorical"])
def test_sources_without_columns_take_none(key: str) -> None:
    ColumnChoice("y").check_label_alone("t")
    with mistake(f"{key}, but no table of columns", f"Remove {key}"):
        ColumnChoice(**{key: ("a",)}).check_label_alone("t")
    with mistake("column 'a' for [splits], but no table of columns", "other [splits]"):
        ColumnChoice(of_splits=("a",)).check_label_alone("t")


def test_names_that_are_missing_or_twice() -> None:
    check_names(NAMES, "t")
    with mistake("the name 'a' of columns 1, 3", "Rename"):
        check_names(["a", "b", "a", "label"], "t")
    with mistake("no name of column 1 of 3", "index=False"):
        check_names(["", "b", "label"], "t")
    with mistake("1 column (a b label)", "comma, semicolon or tab"):
        check_names(["a b label"], "t")


def test_lists_are_cut_after_the_first_names() -> None:
    assert truncate(NAMES, 3) == "a, b, label"
    assert truncate(NAMES, 1, "more columns") == "a, … 2 more columns"
