"""Tables: the role of each column, frames of all kinds, categories, and mistakes in one message."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from mkldist.data import checks
from mkldist.data.dataset import RawData
from mkldist.data.tables import (
    ColumnChoice,
    TableProblems,
    check_names,
    feature_columns,
    frame_features,
    frame_labels,
    frame_table,
    frame_texts,
    label_position,
    table_data,
)
from mkldist.errors import DataError
from mkldist.spec.datasets import DatasetSpec, SplitsSpec
from tests.data.mistakes import mistake

NAMES = ["a", "b", "label"]


@pytest.mark.parametrize(("label", "position"), [
    (None, 2), ("label", 2), ("a", 0), (0, 0), (1, 1), (-1, 2), (-3, 0),
])  # fmt: skip
def test_the_label_by_name_position_and_default(label, position):
    assert label_position(NAMES, label, "t") == position


def test_the_label_column_must_be_there():
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
def test_a_label_is_known_by_its_name_wherever_it_stands(name):
    assert label_position(["a", name, "b"], None, "t") == 1


def test_a_label_that_is_not_known_by_its_name_is_asked_for():
    with mistake("no label, and no column that is called", "one of 'b', 'disease', 'a'"):
        label_position(["disease", "a", "b"], None, "t")
    with mistake("columns 'class' and 'y'", "Set label = one of 'class', 'y'"):
        label_position(["class", "a", "y"], None, "t")


def read(frame: pd.DataFrame, **columns: Any) -> RawData:
    return table_data(frame_table(frame, "t"), ColumnChoice(**columns), "t")


def test_every_column_has_one_role():
    numbers = {"number": np.arange(12), "age": [40.0, 30.0, 50.0, 60.0] * 3}
    frame = pd.DataFrame({**numbers, "sex": ["m", "f"] * 6, "note": "x", "ill": ["a", "b"] * 6})
    raw = read(frame, label="ill", id="number", ignore=("note",), categorical=("sex",))
    assert raw.feature_names == ("age", "sex=f", "sex=m")
    assert raw.groups == {"sex": (1, 2)}
    assert raw.summary.label == "column 'ill', chosen by label = \"ill\""
    assert raw.summary.left_out == ("'number' (names the rows)", "'note' (ignored)")
    assert raw.summary.encoded == ("'sex' as 2 features",)
    assert raw.summary.notes == ()
    [note] = read(frame, label="ill", ignore=("note", "sex")).summary.notes
    assert note.startswith("'number' numbers the rows")
    assert 'id = "number"' in note
    entry = DatasetSpec(name="t", file="t.csv", categorical=("site", "sex"))
    splits = SplitsSpec(kind="leave-one-group-out", groups="site")
    choice = ColumnChoice.of(entry, splits)
    assert feature_columns(["a", "site", "sex", "label"], choice, "t") == ("label", ("a",))
    assert (choice.categorical, choice.of_splits) == (("sex",), ("site",))


@pytest.mark.parametrize(("choice", "words"), [
    (ColumnChoice(ignore=("aa",)), ("ignore: found no column 'aa'", "Did you mean 'a'?")),
    (ColumnChoice(categorical=("zzz",)), ("categorical: found no column 'zzz'", "a, b, label")),
    (ColumnChoice(id="x1"), ("id: found no column 'x1'",)),
    (ColumnChoice(ignore=("a",), categorical=("a",)), ("'a' in ignore and in categorical",)),
    (ColumnChoice(ignore=("a", "a")), ("'a' twice in ignore",)),
    (ColumnChoice("a", id="a"), ("'a' as the label and in another role",)),
    (ColumnChoice(ignore=("a", "b")), ("no feature column", "Ignore fewer")),
])  # fmt: skip
def test_roles_that_columns_cannot_have(choice, words):
    with mistake(*words):
        feature_columns(NAMES, choice, "t")


@pytest.mark.parametrize("key", ["id", "ignore", "categorical"])
def test_sources_without_columns_take_none(key):
    ColumnChoice("y").check_label_alone("t")
    with mistake(f"{key}, but no table of columns", f"Remove {key}"):
        ColumnChoice(**{key: ("a",)}).check_label_alone("t")
    with mistake("column 'a' for [splits], but no table of columns", "other [splits]"):
        ColumnChoice(of_splits=("a",)).check_label_alone("t")


def test_names_that_are_missing_or_twice():
    check_names(NAMES, "t")
    with mistake("the name 'a' of columns 1, 3", "Rename"):
        check_names(["a", "b", "a", "label"], "t")
    with mistake("no name of column 1 of 3", "index=False"):
        check_names(["", "b", "label"], "t")
    with mistake("1 column (a b label)", "comma, semicolon or tab"):
        check_names(["a b label"], "t")


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.sampled_from(["red", "blue", "Blue", "10 cm"]), min_size=5, max_size=9))
def test_indicators_are_those_of_scikit_learn(texts):
    expected = OneHotEncoder(sparse_output=False).fit_transform(np.array(texts)[:, None])
    found = read(pd.DataFrame({"c": texts, "label": "x"}), categorical=("c",))
    np.testing.assert_array_equal(found.x, expected)
    assert found.feature_names == tuple(f"c={name}" for name in sorted(set(texts)))


def test_categories_follow_the_numbers_and_form_groups():
    sizes = ["2", "10", "2", "", "10", "NA"]
    frame = pd.DataFrame({"size": sizes, "sex": ["m", "f"] * 3, "age": np.arange(6.0), "y": 1})
    found = read(frame, categorical=("size", "sex"))
    assert found.feature_names == ("age", "size=2", "size=10", "size=?", "sex=f", "sex=m")
    assert found.groups == {"size": (1, 2, 3), "sex": (4, 5)}
    assert found.x[3].tolist() == [3, 0, 0, 1, 1, 0] == [3, *found.x[5, 1:4], 1, 0]
    with mistake("column 'name'", "in each of 6 rows", 'id = "name"'):
        read(frame.assign(name=list("abcdef")), ignore=("size", "sex"), categorical=("name",))


FRAME = pd.DataFrame(
    {
        "a": [1, 2, 3],
        "b": [0.5, None, -1],
        "c": [True, False, True],
        "d": pd.array([1, None, 3], "Int64"),
        "e": ["1", None, "2.5"],
        "f": pd.Categorical([7, 8, 7]),
    }
)


def test_columns_of_all_kinds():
    nan = np.nan
    found = frame_features(FRAME, "t")
    expected = [[1, 0.5, 1, 1, 1, 7], [2, nan, 0, nan, nan, 8], [3, -1, 1, 3, 2.5, 7]]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float64
    assert found.flags.c_contiguous


def test_labels_of_all_kinds():
    assert frame_labels(FRAME["c"]).tolist() == ["True", "False", "True"]
    np.testing.assert_array_equal(frame_labels(FRAME["d"]), [1, np.nan, 3])
    assert frame_labels(FRAME["e"]).tolist() == ["1", "", "2.5"]
    assert frame_labels(pd.Series(pd.Categorical(["p", "q", "p"]))).tolist() == ["p", "q", "p"]


@pytest.mark.parametrize("kind", ["int64", "Int64", "uint64"])
def test_large_whole_numbers_of_labels_keep_their_digits(kind, monkeypatch):
    labels = [2**53, 2**53 + 1, 2**53]
    assert frame_labels(pd.Series(labels, dtype=kind)).tolist() == labels
    assert frame_labels(pd.Series([2**53, 1, 2], dtype=kind)).dtype == np.float64
    frame = pd.DataFrame({"a": [0.5, 1, 2], "y": pd.Series([1, 2**53, 2**53 + 1], dtype=kind)})
    monkeypatch.setattr(checks, "BLOCK_BYTES", 32)  # blocks of two rows
    assert read(frame).labels.tolist() == frame["y"].tolist()


def test_text_in_feature_columns():
    with mistake("column 'colour' (3 of 3 rows, such as 'red' in row 0 (from 0))", "get_dummies"):
        frame_features(FRAME.assign(colour=["red", "blue", "red"]), "t")
    many = pd.DataFrame({f"f{i}": ["x", "y"] for i in range(12)})
    with mistake("'f7' (2 of 2", "… 4 more"):
        frame_features(many, "t")
    frame = pd.DataFrame({"age": [1, 2, "old", 3]}, index=[7, 7, 8, 9])
    with mistake("t, row 2 (from 0), column 'age': found text 'old'", "get_dummies"):
        frame_features(frame, "t")
    with pytest.raises(DataError, match=r"'age' .*'1,5' .*Write decimals with a point\.$"):
        frame_features(FRAME.assign(age="1,5"), "t")


@pytest.mark.parametrize("date", [pd.Timestamp("2020-01-31"), "31.1.2020"])
def test_dates_are_to_be_turned_into_numbers(date):
    with mistake("dates in column 'seen'", "Turn dates into numbers, such as (dates - dates"):
        frame_features(FRAME.assign(seen=date), "t")
    with mistake("dates in column 'seen'", 'ignore = ["seen"]', 'kind = "time"'):
        read(FRAME.assign(seen=date, label="x"))


def test_no_feature_column():
    with mistake("a label column alone"):
        frame_features(FRAME[[]], "t")


def test_bytes_are_texts_in_utf8():
    column = pd.Series([b"ab", "gé".encode(), None], name="dna")
    assert frame_texts(column) == ["ab", "gé", ""]
    assert frame_labels(column).tolist() == ["ab", "gé", ""]
    for read in (frame_texts, frame_labels):
        with mistake("t.parquet, column 'dna', row 1 (from 0): found bytes that are not UTF-8"):
            read(pd.Series([b"a", b"\xff"], name="dna"), "t.parquet")


@pytest.fixture
def problems() -> TableProblems:
    return TableProblems("t.csv", 5)


def test_all_mistakes_are_in_one_message(problems):
    for line in range(2, 12):
        problems.no_number("sex", f"line {line}", "male")
        problems.no_number("admitted", f"line {line}", "2021-03-01")
    problems.no_number("age", "line 4", "old")
    problems.no_number("dose", "line 5", "1,5")
    problems.ragged(12, 3)
    problems.ragged(13, 7)
    with mistake(
        "text in column 'sex' (10 of 12 rows, such as 'male' in line 2)",
        "dates in column 'admitted' (10 of 12 rows",
        "text in column 'age' (1 of 12 rows, such as 'old' in line 4)",
        "2 rows of another length than the header, the first of 3 fields in line 12",
        "5 fields in every row",
        'set categorical = ["sex", "age"]',
        'Set ignore = ["admitted"]',
        "Write decimals with a point",
    ):
        problems.check(10)


@pytest.mark.parametrize("text", ["2021-03-01", "1.3.2021", "03/01/21", "2021-03-01 12:30"])
def test_dates_are_told_from_text(problems, text):
    problems.no_number("admitted", "line 2", text)
    with mistake(f"a date {text!r}", 'ignore = ["admitted"]', "numbers of days"):
        problems.check(1)
