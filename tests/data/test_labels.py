"""Labels of classes and of real values, texts of numbers, times, and row weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.core.wording import in_lines
from mkldist.data.catalogue import load_dataset
from mkldist.data.dataset import Dataset, RawData
from mkldist.data.inputs import input_data
from mkldist.data.labels import (
    class_labels,
    class_notes,
    class_weights,
    finite_number,
    is_date,
    name_of_number,
    negative_first,
    real_values,
    rows_in_order,
)
from mkldist.data.snapshot import load_snapshot, save_snapshot
from mkldist.data.splits import make_splits
from mkldist.data.validate import validate
from mkldist.errors import DataError
from mkldist.spec.datasets import DatasetSpec, SplitsSpec
from tests.data.mistakes import mistake


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([1, -1, 1]), ("-1", "1")),
        (np.array([1.0, 0.0, 1.0]), ("0", "1")),
        (np.array(["+1", "-1", "1.0"]), ("-1", "1")),
        (np.array(["10", "9", "10"]), ("9", "10")),
        (np.array(["yes", "no", " yes"]), ("no", "yes")),
        (np.array([b"b", b"a", b"b"]), ("a", "b")),
        (np.array([True, False, True]), ("False", "True")),
        (np.array([2.5, 0.5, 2.5]), ("0.5", "2.5")),
    ],
)
def test_the_greater_of_two_classes_is_positive(labels, classes):
    found = class_labels(labels, "t")
    assert found.y.tolist() == [1, -1, 1]
    assert found.classes == classes
    assert found.rows.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["9007199254740993", "9007199254740992", "+9007199254740993.0"]),
        np.array([2**53 + 1, 2**53, 2**53 + 1]),
        np.array([b"9007199254740993", b"9007199254740992", b"9007199254740993"]),
    ],
)
def test_whole_numbers_keep_all_of_their_digits(labels):
    found = class_labels(labels, "t")
    assert found.classes == ("9007199254740992", "9007199254740993")
    assert found.y.tolist() == [1, -1, 1]
    chosen = class_labels(labels, "t", positive="09007199254740992.0")
    assert chosen.y.tolist() == [-1, 1, -1]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["02139", "10001", "02139"], ("02139", "10001")),
        (["007", "08", "007"], ("007", "08")),
        (["0", "00.5", "0"], ("0", "0.5")),
        (["02139", "2139", "02139"], ("02139", "2139")),
        (["1e3", "1000.0", "1000"], ("1000", "1e3")),
        (["1.000e+00", "0.000e+00", "1"], ("0", "1")),  # as numpy.savetxt writes numbers
    ],
)
def test_codes_are_classes_of_their_own(labels, classes):
    found = class_labels(np.array(labels), "t")
    assert found.classes == classes
    named = class_labels(np.array(labels), "t", positive=classes[0])
    assert named.classes == classes[::-1]
    apart = float(classes[0]) != float(classes[1])
    assert bool(class_notes(np.repeat(found.y, 5), found.classes)) != apart
    if apart:
        named = class_labels(np.array(labels), "t", positive=str(float(classes[0])))
        assert named.classes == classes[::-1]


def test_a_number_that_two_codes_write_names_neither():
    labels = np.array(["007", "07", "7"] * 2)
    assert class_labels(labels, "t").classes == ("007", "07", "7")
    assert class_labels(labels, "t", positive="7.0").y.tolist() == [-1, -1, 1] * 2
    with mistake("no class '7'"):
        class_labels(labels[labels != "7"], "t", positive="7")


@pytest.mark.parametrize(
    ("counts", "classes"),
    [
        ({"case": 5, "ctl": 5}, ("ctl", "case")),
        ({"No": 3, "Yes": 90}, ("No", "Yes")),
        ({"+": 9, "-": 9}, ("-", "+")),
        ({"M": 9, "B": 4}, ("B", "M")),
        ({"M": 4, "F": 9}, ("F", "M")),  # no words: the rarer one last
        ({"1": 4, "0": 1}, ("0", "1")),
        ({"2": 40, "1": 4}, ("1", "2")),
        ({"2": 4, "10": 4}, ("2", "10")),
        ({"True": 9, "False": 1}, ("False", "True")),
        ({"relapse": 9, "no relapse": 2}, ("no relapse", "relapse")),
        ({"non-responder": 2, "responder": 9}, ("non-responder", "responder")),
        ({"healthy": 1, "AML": 9}, ("healthy", "AML")),
        ({"ridge": 5, "alpine": 5}, ("alpine", "ridge")),
        ({"4": 9, "2": 5}, ("2", "4")),
        *(
            ({sought: 65, without: 35}, (without, sought))
            for line in (
                "malade/sain cas/témoin Fall/Kontrolle tot/lebend muerto/vivo enfermo/sano",
                "treated/untreated treated/placebo high/low high-risk/low-risk AD/HC MCI/CN",
                "Progressive/Stable unstable/stable R/NR responder/nonresponder",
            )
            for sought, without in (pair.split("/") for pair in line.split())
        ),
    ],
)
def test_the_class_that_is_sought_is_last(counts, classes):
    assert negative_first(counts) == classes


def test_two_of_three_classes():
    found = class_labels(np.array([3, 1, 2, 1, 3]), "t", classes=("3", "+1.0"))
    assert found.rows.tolist() == [0, 1, 3, 4]
    assert found.y.tolist() == [-1, 1, 1, -1]
    assert found.classes == ("3", "1")


def test_one_class_against_the_rest():
    found = class_labels(np.array(["c", "a", "b"]), "t", positive="b")
    assert found.y.tolist() == [-1, -1, 1]
    assert found.classes == ("rest", "b")
    assert class_labels(np.array(["a", "b"]), "t", positive="a").classes == ("b", "a")


def test_three_classes_are_numbered_in_order():
    found = class_labels(np.array(["9", "10", "2", "10", "2.0", "9"]), "t")
    assert found.classes == ("2", "9", "10")
    assert found.y.tolist() == [1, 2, 0, 2, 0, 1]


def test_some_of_many_classes_in_an_order_of_ones_own():
    found = class_labels(np.array(list("abcdabcd")), "t", classes=("d", "a", "c"))
    assert found.rows.tolist() == [0, 2, 3, 4, 6, 7]
    assert found.y.tolist() == [1, 2, 0, 1, 2, 0]
    assert found.classes == ("d", "a", "c")


def test_a_class_of_one_point_gets_both_ways_out():
    with mistake(
        "3 classes, 2 of a single point: '1' (2), '2' (1), '10' (1); '2' is in row 1 (from 0)",
        "two points of each",
        'classes = ["1", "2", …]',
        "positive",
    ):
        class_labels(np.array(["1", "2", "10", "1"]), "t")
    kept = class_labels(np.array(["1", "2", "10", "1"]), "t", classes=("1", "2"))
    assert kept.y.tolist() == [-1, 1, -1]


def test_a_class_of_one_point_may_be_a_slip_of_the_pen():
    labels = np.array(["yes", "no", "no", "Yes", "yes", "yes"])
    with mistake("'Yes' is in line 5", "correct names that differ in upper", '["yes", "no", …]'):
        class_labels(labels, "t", row_labels=in_lines(range(2, 8)))


def test_many_classes_may_be_the_wrong_column():
    with mistake("500 classes", "490 more", "another column", 'task = "regression"'):
        class_labels(np.arange(500) / 7, "t")


def test_one_class_only():
    with mistake("one class only, '1' (3)", "two classes"):
        class_labels(np.ones(3), "t")
    with mistake("one class only, '1' (2)"):
        class_labels(np.array(["1", "1.0"]), "t", positive="1")


@pytest.mark.parametrize(
    "labels", [np.array([1, np.nan, 0]), np.array(["a", "", "b"]), np.array(["a", "?", "b"])]
)
def test_missing_labels(labels):
    with mistake("no label in 1 of 3 rows", "row 1"):
        class_labels(labels, "t")


def test_labels_that_are_none():
    with mistake("label inf in row 1"):
        class_labels(np.array([1, np.inf, 0]), "t")
    with mistake("shape (2, 2)"):
        class_labels(np.eye(2), "t")
    with mistake("complex128"):
        class_labels(np.array([1j, 0]), "t")


def test_unknown_classes():
    labels = np.array(["setosa", "virginica", "versicolor"])
    with mistake("no class 'virginca'", "'setosa' (1)", "Did you mean 'virginica'?"):
        class_labels(labels, "t", positive="virginca")
    with mistake("no class '4'", "as they stand in the data"):
        class_labels(labels, "t", classes=("setosa", "4"))
    with mistake("twice the same"):
        class_labels(labels, "t", classes=("setosa", "setosa"))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1.5, -2, 0]),
        np.array(["1.5", " -2", "0.0"]),
        np.array([b"1.5", b"-2", b"0"]),
        np.array([1.5, -2, 0], dtype=np.float32),
    ],
)
def test_real_values_are_taken_as_they_are(labels):
    assert real_values(labels, "t").tolist() == [1.5, -2.0, 0.0]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["1", "", "2"], ("no label in 1 of 3 rows", "row 1")),
        ([1.0, np.nan, 2.0], ("no label in 1 of 3 rows", "row 1")),
        (["1", "two", "3"], ("label 'two' in row 1", "numbers", "classification")),
        (["1", "inf", "3"], ("label 'inf' in row 1",)),
        ([1.0, 2.0, -np.inf], ("label -inf in row 2", "finite")),
        ([1.0, 1e200, 3.0], ("label 1e+200 in row 1", "rescale")),
        ([True, False, True], ("label 'True' in row 0",)),
        ([4.0, 4.0, 4.0], ("one value only, 4, in 3 rows", "labels that vary")),
        ([[1.0, 2.0], [3.0, 4.0]], ("shape (2, 2)",)),
    ],
)
def test_values_that_cannot_be_learnt(labels, words):
    with mistake(*words):
        real_values(np.array(labels), "t")


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


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.datetimes(), min_size=1, max_size=9))
def test_dates_are_in_the_order_of_time(dates):
    found = rows_in_order(np.array([date.isoformat() for date in dates]), "t")
    assert found.tolist() == sorted(range(len(dates)), key=dates.__getitem__)


@settings(deadline=None)
@given(st.lists(st.integers(-200, 200) | st.integers(2**60, 2**60 + 9), min_size=1, max_size=9))
def test_numbers_are_in_the_order_of_numbers(numbers):
    found = rows_in_order(np.array([str(number) for number in numbers]), "t")
    assert found.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


@pytest.mark.parametrize("text", ["", "soon", "31.02.2021", "2021-03-01T12:00+02:00", "7"])
def test_a_value_without_an_order_is_refused(text):
    with mistake("row 1 (from 0)", repr(text), "such as 2021-03-01"):
        rows_in_order(np.array(["2021-02-28", text]), "t")


@settings(deadline=None)
@given(st.lists(st.datetimes(), min_size=1, max_size=9))
def test_dates_with_dots_begin_with_the_day(dates):
    found = rows_in_order(np.array([f"{d.day}.{d.month}.{d.year:04}" for d in dates]), "t")
    assert found.tolist() == sorted(range(len(dates)), key=lambda i: dates[i].date())
    assert is_date("31.12.2020 09:30")


def test_dates_with_slashes_may_be_two_days_and_are_refused():
    with mistake("'1/2/2021' in row 0", "as year-month-day"):
        rows_in_order(np.array(["1/2/2021", "3/2/2021"]), "t")


WEIGHTS = [1.0, 0.0, 2.5, 1e-3, 4.0, 1.0]
X = np.random.default_rng(0).normal(size=(6, 2))
Y = np.array(["a", "b", "a", "b", "a", "b"])
FRAME = pd.DataFrame({"f": X[:, 0], "g": X[:, 1], "w": WEIGHTS, "label": Y})
ARRAYS = {"x": X, "y": Y, "w": np.array(WEIGHTS)}
GRAMS = {"grams": (X @ X.T)[None], "y": Y, "w": np.array(WEIGHTS)}


def written(folder: Path, kind: str) -> dict[str, str]:
    """Write the data, and return the keys of a data set that name them."""
    file = folder / f"t.{kind.removesuffix('-grams')}"
    match kind:
        case "csv":
            FRAME.to_csv(file, index=False)
        case "parquet":
            FRAME.to_parquet(file)
        case "npz":
            np.savez(file, **ARRAYS)
        case "npz-grams":
            np.savez(file, **GRAMS)
        case "zarr":
            zarr.save_group(file, **ARRAYS | {"y": Y == "a"})
        case "zarr-grams":
            zarr.save_group(file, **GRAMS | {"y": Y == "a"})
    return {"grams" if "grams" in kind else "file": file.name}


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz", "npz-grams", "zarr", "zarr-grams"])
def test_a_file_may_hold_row_weights(kind, tmp_path):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    spec = DatasetSpec(name="t", weights="w", **written(tmp_path, kind))
    found = load_dataset(spec, [], tmp_path, 0)
    np.testing.assert_array_equal(found.weights, WEIGHTS)
    assert found.n_features == (0 if "grams" in kind else 2)
    other = spec.model_copy(
        update={"weights": None, "ignore": ("w",) * (kind in ("csv", "parquet"))}
    )
    assert load_dataset(other, [], tmp_path, 0).fingerprint != found.fingerprint


@pytest.mark.parametrize(
    "data",
    [{"x": X, "y": Y, "weights": WEIGHTS}, {"x": FRAME[["f", "g"]], "y": Y, "weights": WEIGHTS}],
)
def test_so_may_data_in_python(data):
    given = input_data(data, "here")
    assert given.weighs_rows
    spec = DatasetSpec(name="t", weights="weights")
    found = load_dataset(spec, [], Path(), 0, given=given)
    np.testing.assert_array_equal(found.weights, WEIGHTS)
    assert found.n_features == 2


def dataset(weights: Any = WEIGHTS, **keys: Any) -> Dataset:
    raw = RawData(Y, X, ("f", "g"), weights=np.asarray(weights))
    return validate(DatasetSpec(name="t", weights="w", **keys), raw, "t.csv")


@pytest.mark.parametrize(
    ("value", "found"),
    [("-1", "'-1'"), ("", "''"), ("heavy", "'heavy'"), (np.nan, "'nan'"), (np.inf, "'inf'")],
)
def test_a_weight_that_is_none_is_refused_by_its_row(value, found):
    weights = np.array(WEIGHTS, dtype=object)
    weights[3] = value
    with mistake("t.csv, weights 'w'", f"weight {found} in row 3", "1e-100 to 1e+100"):
        dataset(
            np.array([str(one) for one in weights])
            if isinstance(value, str)
            else weights.astype(float)
        )


def test_weights_of_zero_alone_are_refused():
    with pytest.raises(DataError, match="weight 0 in every row"):
        dataset(np.zeros(6))


def test_sources_without_columns_have_no_weights():
    with mistake("weights, but no table of columns"):
        load_dataset(DatasetSpec(name="iris", weights="w"), [], Path(), 0)


def test_weights_of_kept_rows_stay_with_them_and_in_a_snapshot(tmp_path):
    found = dataset(n_points=4)
    rows = [np.flatnonzero((x == X).all(axis=1))[0] for x in found.x]
    np.testing.assert_array_equal(found.weights, np.array(WEIGHTS)[rows])
    save_snapshot(tmp_path / "s", found, ())
    np.testing.assert_array_equal(load_snapshot(tmp_path / "s")[0].weights, found.weights)


def test_rows_of_weight_zero_are_in_test_parts_alone():
    splits = make_splits(SplitsSpec(kind="kfold", folds=3), dataset(), 0)
    assert not any(1 in split.train for split in splits)
    assert sum(1 in split.test for split in splits) == 1
    assert sum(len(split.train) for split in splits) == 2 * 6 - 2


def test_classes_weigh_as_asked():
    numbers = np.array([0, 0, 0, 1])
    found = class_weights("balanced", ("no", "yes"), numbers)
    np.testing.assert_allclose(found, [4 / 6, 4 / 2])
    weights = np.array([1.0, 0.5, 0.5, 2.0])  # as much of either
    np.testing.assert_allclose(class_weights("balanced", ("no", "yes"), numbers, weights), 1.0)
    assert class_weights({"1.0": 3.0}, ("0", "1"), numbers).tolist() == [1.0, 3.0]


def test_weights_of_unknown_classes_and_of_values_are_refused():
    with mistake("class_weight", "no class 'c'", "'a', 'b'"):
        dataset(class_weight={"c": 2.0})
    raw = RawData(X[:, 0], X, ("f", "g"), task="regression")
    with mistake("class_weight", "a data set of regression"):
        validate(DatasetSpec(name="t", class_weight="balanced"), raw, "t.csv")
