"""Labels of two classes, of several, and of real values, and those that cannot be learnt."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.core.wording import in_lines
from mkldist.data.labels import class_labels, real_values
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
def test_the_greater_of_two_classes_is_positive(
    labels: np.ndarray[Any, Any], classes: tuple[str, str]
) -> None:
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
def test_whole_numbers_keep_all_of_their_digits(labels: np.ndarray[Any, Any]) -> None:
    found = class_labels(labels, "t")
    assert found.classes == ("9007199254740992", "9007199254740993")
    assert found.y.tolist() == [1, -1, 1]
    chosen = class_labels(labels, "t", positive="09007199254740992.0")
    assert chosen.y.tolist() == [-1, 1, -1]


def test_two_of_three_classes() -> None:
    found = class_labels(np.array([3, 1, 2, 1, 3]), "t", classes=("3", "+1.0"))
    assert found.rows.tolist() == [0, 1, 3, 4]
    assert found.y.tolist() == [-1, 1, 1, -1]
    assert found.classes == ("3", "1")


def test_one_class_against_the_rest() -> None:
    found = class_labels(np.array(["c", "a", "b"]), "t", positive="b")
    assert found.y.tolist() == [-1, -1, 1]
    assert found.classes == ("rest", "b")
    assert class_labels(np.array(["a", "b"]), "t", positive="a").classes == ("b", "a")


@settings(deadline=None)
@given(st.lists(st.sampled_from("pqrs"), min_size=8).filter(lambda names: len({*names}) > 1))
def test_rest_and_positive_make_up_all(names: list[str]) -> None:
    chosen = names[0]
    found = class_labels(np.array(names), "t", positive=chosen)
    assert (found.y > 0).tolist() == [name == chosen for name in names]


def test_three_classes_are_numbered_in_order() -> None:
    found = class_labels(np.array(["9", "10", "2", "10", "2.0", "9"]), "t")
    assert found.classes == ("2", "9", "10")
    assert found.y.tolist() == [1, 2, 0, 2, 0, 1]


def test_some_of_many_classes_in_an_order_of_ones_own() -> None:
    found = class_labels(np.array(list("abcdabcd")), "t", classes=("d", "a", "c"))
    assert found.rows.tolist() == [0, 2, 3, 4, 6, 7]
    assert found.y.tolist() == [1, 2, 0, 1, 2, 0]
    assert found.classes == ("d", "a", "c")


def test_a_class_of_one_point_gets_both_ways_out() -> None:
    with mistake(
        "3 classes, 2 of a single point: '1' (2), '2' (1), '10' (1); '2' is in row 1 (from 0)",
        "two points of each",
        'classes = ["1", "2", …]',
        "positive",
    ):
        class_labels(np.array(["1", "2", "10", "1"]), "t")
    kept = class_labels(np.array(["1", "2", "10", "1"]), "t", classes=("1", "2"))
    assert kept.y.tolist() == [-1, 1, -1]


def test_a_class_of_one_point_may_be_a_slip_of_the_pen() -> None:
    labels = np.array(["yes", "no", "no", "Yes", "yes", "yes"])
    with mistake("'Yes' is in line 5", "'Yes' and 'yes' differ in upper and", '["yes", "no", …]'):
        class_labels(labels, "t", row_labels=in_lines(range(2, 8)))


def test_many_classes_may_be_the_wrong_column() -> None:
    with mistake("500 classes", "490 more", "another column", 'task = "regression"'):
        class_labels(np.arange(500) / 7, "t")


def test_one_class_only() -> None:
    with mistake("one class only, '1' (3)", "two classes"):
        class_labels(np.ones(3), "t")
    with mistake("one class only, '1' (2)"):
        class_labels(np.array(["1", "1.0"]), "t", positive="1")


@pytest.mark.parametrize(
    "labels", [np.array([1, np.nan, 0]), np.array(["a", "", "b"]), np.array(["a", "?", "b"])]
)
def test_missing_labels(labels: np.ndarray[Any, Any]) -> None:
    with mistake("no label in 1 of 3 rows", "row 1"):
        class_labels(labels, "t")


def test_labels_that_are_none() -> None:
    with mistake("label inf in row 1"):
        class_labels(np.array([1, np.inf, 0]), "t")
    with mistake("shape (2, 2)"):
        class_labels(np.eye(2), "t")
    with mistake("complex128"):
        class_labels(np.array([1j, 0]), "t")


def test_unknown_classes() -> None:
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
def test_real_values_are_taken_as_they_are(labels: np.ndarray[Any, Any]) -> None:
    assert real_values(labels, "t").tolist() == [1.5, -2.0, 0.0]


def test_two_numbers_may_be_values() -> None:
    assert real_values(np.array([1, 0, 1]), "t").dtype == np.float64


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
def test_values_that_cannot_be_learnt(labels: list[Any], words: tuple[str, ...]) -> None:
    with mistake(*words):
        real_values(np.array(labels), "t")


@given(st.lists(st.floats(-1e150, 1e150), min_size=2).filter(lambda y: len({*y}) > 1))
def test_numbers_in_text_are_the_same_numbers(values: list[float]) -> None:
    found = real_values(np.array([repr(value) for value in values]), "t")
    np.testing.assert_array_equal(found, values)
