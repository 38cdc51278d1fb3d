"""The validator: rows, labels and names stay together, and what was decided is said."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mkldist.core.wording import in_lines
from mkldist.data import checks
from mkldist.data.catalogue import load_dataset
from mkldist.data.checks import check_values
from mkldist.data.dataset import Dataset, RawData, Split, TextColumns
from mkldist.data.validate import (
    check_known_rows,
    drawn_per_class,
    drawn_points,
    identical_lines,
    summary_lines,
    validate,
)
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec, SplitsSpec
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


def test_rows_columns_names_and_partitions_stay_together():
    found = made(groups={"g": ["size", 0], "n": [2]})
    np.testing.assert_array_equal(found.x, [[1, 3], [2, 2], [8, np.nan]])
    assert found.impute == "median"
    assert found.y.tolist() == [-1, 1, -1]
    assert found.feature_names == ("age", "size")
    assert found.groups == {"all_of_it": (0, 1), "g": (1, 0), "n": (1,)}
    assert found.predefined[0].train.tolist() == [2, 1]
    assert found.predefined[0].test.tolist() == [0]
    assert (found.name, found.classes, found.origin) == ("t", ("a", "b"), "here")


def test_constant_features_may_stay():
    found = made(drop_constant=False, groups={"g": ["flat"]})
    assert found.feature_names == NAMES
    assert found.groups["g"] == (1,)


def test_imputation_counts_only_where_a_value_is_missing():
    complete = X[:, [0, 0, 0]]
    whole, plain = made(complete), made(complete, impute=None)
    assert whole.impute is None
    assert whole.fingerprint == plain.fingerprint
    prints = {made(impute=impute).fingerprint for impute in ("median", "mean", "most_frequent")}
    assert len(prints) == 3


def test_what_was_done_is_accounted_for():
    summary = made().summary
    assert (summary.n_rows, summary.missing, summary.constant) == (4, (1, 1), ("flat",))
    assert summary.notes == ("class 'a' has 2 rows only", "class 'b' has 1 row only")


def test_missing_and_infinite_values_are_refused():
    with mistake("'size' (1)", "of 3 rows", "impute"):
        made(impute=None)
    with mistake("infinite values in 'age' (4)"):
        made(X * [np.inf, 1, 1], positive="a")


def test_features_that_are_all_constant():
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
def test_wrong_groups(members, words):
    with mistake("groups.g", *words):
        made(groups={"g": members})


def test_gram_matrices_are_cut_to_the_classes():
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


def test_gram_matrices_keep_the_groups_and_the_order_of_their_rows():
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
def test_kept_rows_without_a_group_are_refused(missing):
    of_splits = {"ward": np.array(["p", missing, "p", "q"])}
    raw = RawData(LABELS, X, NAMES, of_splits=of_splits, row_labels=in_lines([2, 4, 5, 6]))
    spec = DatasetSpec(name="t", impute="median", positive="a")
    with mistake("t, column 'ward': found no group in 1 of 4 rows, the first is line 4; expected"):
        validate(spec, raw, "t", splits=SplitsSpec(groups="ward"))
    without = DatasetSpec(name="t", impute="median", classes=("a", "c"))
    kept = validate(without, raw, "t", splits=SplitsSpec(groups="ward"))
    assert kept.row_groups is not None
    assert kept.row_groups.tolist() == [0, 0, 1]


def test_values_are_labels_of_every_row():
    raw = RawData(np.array(["1.5", "-2", "30", "4"]), X, NAMES, (PARTITION,))
    spec = DatasetSpec(name="t", task="regression", impute="median")
    found = validate(spec, raw, "data set 't'")
    assert found.task == "regression"
    assert found.classes is None
    assert found.y.tolist() == [1.5, -2.0, 30.0, 4.0]
    assert found.predefined[0].train.tolist() == [3, 1]


def test_the_source_says_what_its_labels_are_unless_the_user_does():
    raw = RawData(np.array([1.0, 0.0, 1.0, 0.0]), X[:, :2], NAMES[:2], task="regression")
    assert validate(DatasetSpec(name="t"), raw, "t").y.tolist() == [1.0, 0.0, 1.0, 0.0]
    as_classes = validate(DatasetSpec(name="t", task="classification"), raw, "t")
    assert as_classes.y.tolist() == [1.0, -1.0, 1.0, -1.0]
    with mistake("positive for a data set of regression", "Remove this key"):
        validate(DatasetSpec(name="t", positive="1"), raw, "t")


def test_the_same_numbers_as_classes_and_as_values_are_two_data_sets():
    raw = RawData(np.array([1.0, -1.0, 1.0, -1.0]), X[:, :2], NAMES[:2])
    one, other = (
        validate(DatasetSpec(name="t", task=task), raw, "t")
        for task in ("classification", "regression")
    )
    np.testing.assert_array_equal(one.y, other.y)
    assert one.fingerprint != other.fingerprint


def test_some_points_of_each_class():
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


HEADER = "number,age,sex,flat,note,disease"
ROWS = [
    f"{i},{'' if i % 7 == 0 else 30 + i % 5},{'mf'[i % 2]},3,text {i},{('no', 'yes', 'No')[i % 3]}"
    for i in range(21)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("\n".join([HEADER, *ROWS]) + "\n")
    return tmp_path


def said(folder: Path, fit: str = "train", **entry: Any) -> list[str]:
    columns = {"ignore": ("note",), "categorical": ("sex",), "label": "disease"}
    spec = DatasetSpec(**{"name": "t", "file": "t.csv", "impute": "median"} | columns | entry)
    return summary_lines(load_dataset(spec, [], folder, 0), PreprocessingSpec(fit=fit))


def test_everything_that_was_decided_is_said(folder):
    assert said(folder) == [
        "t: 21 rows, 4 features, classification",
        "  label:     column 'disease', chosen by label = \"disease\"",
        "  classes:   No (7 rows), no (7 rows), yes (7 rows)",
        "  left out:  'note' (ignored)",
        "  constant:  'flat'",
        "  encoded:   'sex' as 2 features",
        "  missing:   3 of 21 rows miss values in 1 column: filled with the median of each "
        "training part",
        "  note:      'number' numbers the rows and is taken as a feature; id = \"number\" leaves "
        "it out",
        "  note:      classes 'No' and 'no' differ in upper and lower case alone",
    ]


def test_of_two_classes_the_signs_are_said_and_of_rows_those_left_out(folder):
    lines = said(folder, "all", classes=("no", "yes"), id="number", impute="most_frequent")
    assert lines[0] == "t: 14 of 21 rows, 3 features, classification"
    assert lines[2] == "  classes:   no (7 rows) is -1, yes (7 rows) is +1"
    assert lines[3] == "  positive:  yes: sensitivity, F1 and average precision are of it"
    assert lines[4] == "  left out:  'number' (names the rows), 'note' (ignored)"
    assert lines[-2].endswith("filled with the most frequent value of all rows")
    assert "6 rows are equal to others in all features, such as line 5 and line 15" in lines[-1]


def test_values_and_gram_matrices():
    y = np.array([25.0, 346, 100])
    values = Dataset("v", np.eye(3), y, None, ("a", "b", "c"))
    assert summary_lines(values, PreprocessingSpec()) == [
        "v: 3 rows, 3 features, regression",
        "  values:    from 25 to 346",
    ]
    grams = Dataset("g", None, np.sign(y - 50), ("no", "yes"), grams=np.ones((7, 3, 3)))
    first, *_ = summary_lines(grams, PreprocessingSpec())
    assert first == "g: 3 rows, 7 Gram matrices, classification"


def test_groups_are_counted():
    y = np.array([1.0, -1, 1, -1])
    groups = np.array([0, 1, 1, 0])
    dataset = Dataset("t", np.eye(4), y, ("no", "yes"), tuple("abcd"), row_groups=groups)
    assert "  groups:    2, whose rows stay in one part" in summary_lines(
        dataset, PreprocessingSpec()
    )


LETTERS = ("a", "b", "c")
NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("block_bytes", [2**23, 100])
def test_gaps_and_infinite_values_are_counted_or_refused_by_column(block_bytes, monkeypatch):
    monkeypatch.setattr(checks, "BLOCK_BYTES", block_bytes)
    assert check_values(np.eye(3), LETTERS, "median", "t") == (0, 0)
    x = np.array([[NAN, 1, NAN], [1, 2, 3], [NAN, 2, 3]])
    assert check_values(x, LETTERS, "median", "t") == (2, 2)
    for values, impute, words in (
        ([[NAN, 1, NAN], [NAN, 2, 3], [4, 5, 6]], None, ("'a' (2)", "'c' (1)", "of 3 rows")),
        ([[1, -INF, NAN], [1, 2, 3]], "median", ("infinite values in 'b' (1)", "finite")),
        ([[NAN, NAN, 1], [1, NAN, 3]], "median", ("without any value in 'b' (2)", "Remove")),
    ):
        with mistake(*words):
            check_values(np.array(values), LETTERS, impute, "t")
    with mistake("'f7' (2)", "12 more columns"):
        check_values(np.full((2, 20), NAN), [f"f{i}" for i in range(20)], None, "t")


def test_a_split_must_know_a_value_of_every_feature():
    x = np.array([[1, NAN, 1], [2, NAN, NAN], [3, 5, 2], [4, 6, 3]])
    whole, part = Split(np.array([1, 2]), np.array([3])), Split(np.array([0, 1]), np.array([3]))
    unlabelled = Split(np.array([0, 1]), np.array([3]), np.array([2]))
    dataset = Dataset("t", x, np.array([1.0, -1, 1, -1]), ("no", "yes"), LETTERS, impute="mean")
    check_known_rows(dataset, [whole, unlabelled])
    with mistake("split 1 of 2", "no value of 'b' in its training part of 2", 'fit = "all"'):
        check_known_rows(dataset, [whole, part])


Y = np.tile([0.0, 1.0, 1.0, 2.0], 30)


def drawn(count: int, seed: int = 0) -> np.ndarray:
    return drawn_per_class(Y, count, seed, LETTERS, "t.csv")


def test_each_class_has_its_count_of_distinct_rows():
    rows = drawn(7)
    assert (np.diff(rows) > 0).all()
    assert np.bincount(Y[rows].astype(int)).tolist() == [7, 7, 7]
    assert drawn(30).size == 90


def test_the_seed_decides():
    np.testing.assert_array_equal(drawn(7, 4), drawn(7, 4))
    assert drawn(7, 4).tolist() != drawn(7, 5).tolist()


def test_a_class_of_fewer_points():
    with mistake("t.csv: per_class", "30 points of class 'a'", "at most 30"):
        drawn(31)


def test_a_part_keeps_the_proportions_of_the_classes():
    for count in (3, 4, 40, 120):
        rows = drawn_points(Y, count, 0, stratified=True, where="t.csv")
        counts = np.bincount(Y[rows].astype(int), minlength=3)
        assert (np.diff(rows) > 0).all()
        assert counts.sum() == count
        assert counts.min() >= 1
        assert (np.abs(counts - count * np.array([0.25, 0.5, 0.25])) <= 1).all()
    again = drawn_points(Y, 40, 0, stratified=True, where="t.csv")
    other = drawn_points(Y, 40, 1, stratified=True, where="t.csv")
    assert again.tolist() == drawn_points(Y, 40, 0, stratified=True, where="t.csv").tolist()
    assert again.tolist() != other.tolist()


def test_a_rare_class_keeps_a_point():
    y = np.repeat([0.0, 1.0], [1, 999])
    assert 0 in drawn_points(y, 10, 0, stratified=True, where="t.csv")


def test_points_of_real_values_are_drawn_about_equally_often():
    times = np.zeros(50)
    for seed in range(400):
        times[drawn_points(np.arange(50.0), 10, seed, stratified=False, where="t.csv")] += 1
    assert (np.abs(times - 80) < 5 * np.sqrt(80)).all()


def test_more_points_than_there_are_or_fewer_than_classes():
    with mistake("t.csv: n_points", "121 of 120 points", "at most 120"):
        drawn_points(Y, 121, 0, stratified=True, where="t.csv")
    with mistake("t.csv: n_points", "2 of 120 points", "at least one of each of 3 classes"):
        drawn_points(Y, 2, 0, stratified=True, where="t.csv")


VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.5, np.nan])


@pytest.mark.slow
@settings(deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(0, 12), st.integers(1, 3)), elements=VALUES))
def test_all_rows_that_have_an_equal_are_counted(x):
    words = [str((row + 0.0).tolist()) for row in x]
    count = sum(words.count(word) > 1 for word in words)
    found = identical_lines(x)
    assert bool(found) == bool(count)
    if found:
        assert found[0].startswith(f"{count} rows are equal to others in all features, such as row")


def test_rows_of_one_group_and_of_other_texts_do_not_count():
    x = np.array([[1.0], [1.0], [2.0]])
    assert identical_lines(x, groups=np.array([0, 0, 1])) == ()
    assert identical_lines(x, groups=np.array([0, 1, 1])) != ()
    assert identical_lines(x, TextColumns.of({"dna": ["a", "c", "a"]})) == ()
    assert identical_lines(x, TextColumns.of({"dna": ["a", "a", "a"]})) != ()
