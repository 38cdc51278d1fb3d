"""Data sets from raw data: rows, labels and names stay together, and mistakes are named."""

from typing import Any

import numpy as np
import pytest

from mkldist.core.wording import in_lines
from mkldist.data.dataset import Dataset, RawData, Split
from mkldist.data.validate import validate
from mkldist.errors import DataError
from mkldist.spec.datasets import DatasetSpec, SplitsSpec
from tests.data.mistakes import mistake

NAMES = ("age", "flat", "size")
X = np.array([[1.0, 5, 3], [2, 5, 2], [4, 5, 1], [8, 5, np.nan]])
LABELS = np.array(["a", "b", "c", "a"])
PARTITION = Split(np.array([3, 1]), np.array([2, 0]))


def made(x: np.ndarray = X, **options: Any) -> Dataset:
    options = {"classes": ("a", "b"), "impute": "median", **options}
    if "positive" in options:
        del options["classes"]
    spec = DatasetSpec(name="t", **options)
    raw = RawData(LABELS, x, NAMES, (PARTITION,), {"all_of_it": (0, 1, 2)}, origin="here")
    return validate(spec, raw, "data set 't'")


def test_rows_columns_names_and_partitions_stay_together() -> None:
    found = made(groups={"g": ["size", 0], "n": [2]})
    np.testing.assert_array_equal(found.x, [[1, 3], [2, 2], [8, np.nan]])
    assert found.impute == "median"
    assert found.y.tolist() == [-1, 1, -1]
    assert found.feature_names == ("age", "size")
    assert found.groups == {"all_of_it": (0, 1), "g": (1, 0), "n": (1,)}
    assert found.predefined[0].train.tolist() == [2, 1]
    assert found.predefined[0].test.tolist() == [0]
    assert (found.name, found.classes, found.origin) == ("t", ("a", "b"), "here")


def test_constant_features_may_stay() -> None:
    found = made(drop_constant=False, groups={"g": ["flat"]})
    assert found.feature_names == NAMES
    assert found.groups["g"] == (1,)


def test_imputation_counts_only_where_a_value_is_missing() -> None:
    complete = X[:, [0, 0, 0]]
    whole, plain = made(complete), made(complete, impute=None)
    assert whole.impute is None
    assert whole.fingerprint == plain.fingerprint
    prints = {made(impute=impute).fingerprint for impute in ("median", "mean", "most_frequent")}
    assert len(prints) == 3


def test_what_was_done_is_accounted_for() -> None:
    summary = made().summary
    assert (summary.n_rows, summary.missing, summary.constant) == (4, (1, 1), ("flat",))
    assert summary.notes == ("class 'a' has 2 rows only", "class 'b' has 1 row only")


def test_a_feature_whose_known_values_are_equal_is_constant() -> None:
    assert made(np.array([[1.0, 5, 3], [2, np.nan, 2], [4, 5, 1], [8, 5, 1]])).n_features == 2


def test_missing_and_infinite_values_are_refused() -> None:
    with mistake("'size' (1)", "of 3 rows", "impute"):
        made(impute=None)
    with mistake("infinite values in 'age' (4)"):
        made(X * [np.inf, 1, 1], positive="a")


def test_mistakes_of_labels_and_of_values_are_in_one_message() -> None:
    raw = RawData(np.array(["a", "", "b", ""]), X, NAMES)
    words = ("no label in 2 of 4 rows", "missing values in 'size' (1)", "Remove these rows")
    with mistake(*words, 'Set impute = "median"'):
        validate(DatasetSpec(name="t"), raw, "t")
    with pytest.raises(DataError, match="no label") as caught:
        validate(DatasetSpec(name="t", impute="mean"), raw, "t")
    assert "missing values" not in str(caught.value)


def test_features_that_are_all_constant() -> None:
    with mistake("3 features, all of them constant", "label"):
        made(np.ones((4, 3)))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (["siz"], ("no feature 'siz'", "Did you mean 'size'?")),
        ([3], ("feature 3", "from 0 to 2")),
        ([-1], ("feature -1",)),
        ([0, "age"], ("a feature twice",)),
        (["flat"], ("only constant features", "drop_constant = false")),
        ([], ("no features",)),
    ],
)
def test_wrong_groups(members: list[int | str], words: tuple[str, ...]) -> None:
    with mistake("groups.g", *words):
        made(groups={"g": members})


def test_gram_matrices_are_cut_to_the_classes() -> None:
    grams = np.arange(32.0).reshape(2, 4, 4)
    raw = RawData(LABELS, None, partitions=(PARTITION,), grams=grams)
    found = validate(DatasetSpec(name="t", grams="g", classes=("a", "b")), raw, "t")
    kept = [0, 1, 3]
    np.testing.assert_array_equal(found.grams, grams[np.ix_([0, 1], kept, kept)])
    assert (found.n_points, found.n_features) == (3, 0)
    whole = validate(DatasetSpec(name="t", grams="g", positive="a"), raw, "t")
    assert whole.grams is grams
    for option in ({"groups": {"g": [0]}}, {"impute": "median"}):
        with mistake(next(iter(option)), "which need features"):
            validate(DatasetSpec(name="t", grams="g", positive="a", **option), raw, "t")


def test_gram_matrices_keep_the_groups_and_the_order_of_their_rows() -> None:
    of_splits = {"groups": np.array(["p", "q", "", "p"]), "order": np.array(["4", "3", "2", "1"])}
    grams = np.arange(32.0).reshape(2, 4, 4)
    raw = RawData(LABELS, None, grams=grams, of_splits=of_splits)
    spec = DatasetSpec(name="t", grams="g", classes=("a", "b"))
    by_group = validate(spec, raw, "t", splits=SplitsSpec(groups="groups"))
    assert by_group.row_groups is not None
    assert by_group.row_groups.tolist() == [0, 1, 0]
    in_time = validate(spec, raw, "t", splits=SplitsSpec(kind="time", order="order"))
    assert in_time.row_order is not None
    assert in_time.row_order.tolist() == [2, 1, 0]


@pytest.mark.parametrize("missing", ["", "nan", " NA "])
def test_kept_rows_without_a_group_are_refused(missing: str) -> None:
    of_splits = {"ward": np.array(["p", missing, "p", "q"])}
    raw = RawData(LABELS, X, NAMES, of_splits=of_splits, row_labels=in_lines([2, 4, 5, 6]))
    spec = DatasetSpec(name="t", impute="median", positive="a")
    with mistake("t, column 'ward': found no group in 1 of 4 rows, the first is line 4; expected"):
        validate(spec, raw, "t", splits=SplitsSpec(groups="ward"))
    without = DatasetSpec(name="t", impute="median", classes=("a", "c"))
    kept = validate(without, raw, "t", splits=SplitsSpec(groups="ward"))
    assert kept.row_groups is not None
    assert kept.row_groups.tolist() == [0, 0, 1]


def test_values_are_labels_of_every_row() -> None:
    raw = RawData(np.array(["1.5", "-2", "30", "4"]), X, NAMES, (PARTITION,))
    spec = DatasetSpec(name="t", task="regression", impute="median")
    found = validate(spec, raw, "data set 't'")
    assert found.task == "regression"
    assert found.classes is None
    assert found.y.tolist() == [1.5, -2.0, 30.0, 4.0]
    assert found.predefined[0].train.tolist() == [3, 1]


def test_the_source_says_what_its_labels_are_unless_the_user_does() -> None:
    raw = RawData(np.array([1.0, 0.0, 1.0, 0.0]), X[:, :2], NAMES[:2], task="regression")
    assert validate(DatasetSpec(name="t"), raw, "t").y.tolist() == [1.0, 0.0, 1.0, 0.0]
    as_classes = validate(DatasetSpec(name="t", task="classification"), raw, "t")
    assert as_classes.y.tolist() == [1.0, -1.0, 1.0, -1.0]
    with mistake("positive for a data set of regression", "Remove this key"):
        validate(DatasetSpec(name="t", positive="1"), raw, "t")


def test_the_same_numbers_as_classes_and_as_values_are_two_data_sets() -> None:
    raw = RawData(np.array([1.0, -1.0, 1.0, -1.0]), X[:, :2], NAMES[:2])
    one, other = (
        validate(DatasetSpec(name="t", task=task), raw, "t")
        for task in ("classification", "regression")
    )
    np.testing.assert_array_equal(one.y, other.y)
    assert one.fingerprint != other.fingerprint


def test_gram_matrices_of_values() -> None:
    grams = np.stack([np.eye(3), 2 * np.eye(3)])
    raw = RawData(np.array([1.0, 2.0, 4.0]), None, grams=grams)
    found = validate(DatasetSpec(name="t", task="regression"), raw, "t")
    assert found.task == "regression"
    assert found.grams is grams


def test_some_points_of_each_class() -> None:
    labels = np.repeat(["a", "b", "c"], [50, 7, 9])
    x = np.arange(66.0)[:, None] * [1, 2]
    raw = RawData(labels, x, ("f", "g"), (Split(np.arange(40), np.arange(40, 66)),))
    spec = DatasetSpec(name="t", classes=("b", "a"), per_class=5)
    found, again, other = (validate(spec, raw, "t", seed) for seed in (3, 3, 4))
    assert found.y.tolist() == [1.0] * 5 + [-1.0] * 5
    rows = found.x[:, 0].astype(int)
    assert (np.diff(rows) > 0).all()
    assert (labels[rows] == np.repeat(["a", "b"], 5)).all()
    np.testing.assert_array_equal(found.x, again.x)
    assert found.fingerprint != other.fingerprint
    assert (rows[found.predefined[0].train] < 40).all()
    with mistake("7 points of class 'b'", "at most 7"):
        validate(DatasetSpec(name="t", per_class=8), raw, "t")
    found = validate(DatasetSpec(name="t", classes=("b", "a"), n_points=20), raw, "t")
    assert found.y.tolist() == [1.0] * 18 + [-1.0] * 2
    with mistake("per_class", "regression"):
        spec = DatasetSpec(name="t", task="regression", per_class=2)
        validate(spec, RawData(x[:, 0], x, ("f", "g")), "t")
