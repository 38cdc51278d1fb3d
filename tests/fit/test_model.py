"""Predictions of models against plain formulas, and columns of new rows."""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.data.dataset import Dataset, SourceColumns
from mkldist.errors import DataError, UnknownCategoryWarning
from mkldist.fit.decision import LabelCoding
from mkldist.fit.model import in_order
from mkldist.fit.new_rows import NewRows, opened_rows, unseen_lines
from tests.fit.made_up import COLUMNS, FEATURES, made_up_model, made_up_table, plain_values

TABLE = made_up_table()


@pytest.mark.parametrize("several_blocks", [False, True])
def test_decision_values_are_those_of_the_formulas(several_blocks):
    model = made_up_model()
    table = made_up_table(model.rows_at_once() + 9) if several_blocks else TABLE
    expected = plain_values(model, table)[:, 0]
    np.testing.assert_allclose(model.decision_function(table), expected, rtol=0, atol=1e-10)
    labels = np.where(expected >= 0, "well", "ill")
    np.testing.assert_array_equal(model.predict(table), labels)


def test_the_greatest_of_several_functions_decides():
    model = made_up_model((30, 10, 20))
    expected = plain_values(model, TABLE)
    np.testing.assert_allclose(model.decision_function(TABLE), expected, rtol=0, atol=1e-10)
    classes = np.array([30, 10, 20])[expected.argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(TABLE), classes)


def test_real_values_are_predictions():
    model = made_up_model(None)
    np.testing.assert_array_equal(model.predict(TABLE), model.decision_function(TABLE))


def test_no_rows_have_no_predictions():
    assert made_up_model().predict(TABLE.iloc[:0]).shape == (0,)
    assert made_up_model((1, 2, 3)).decision_function(TABLE.iloc[:0]).shape == (0, 3)


def test_the_order_of_columns_and_others_than_features_do_not_matter():
    model = made_up_model()
    expected = model.decision_function(TABLE)
    others = TABLE.iloc[:, ::-1].assign(constant=4.0, answer="ill").drop(columns=["note", "row"])
    np.testing.assert_array_equal(model.decision_function(others), expected)


def test_an_unknown_category_is_none_of_the_known_ones_and_told():
    model = made_up_model()
    with pytest.warns(UnknownCategoryWarning, match="'size': 2 rows of unknown .*'XL' in 2"):
        found = model.decision_function(TABLE.iloc[:2].assign(size="XL"))
    neither = plain_values(model, TABLE.iloc[:2].assign(size="XL"))[:, 0]
    np.testing.assert_allclose(found, neither, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("value", "said"), [(np.nan, "found no value"), (np.inf, "found an infinite value")]
)
def test_a_value_is_refused_by_row_and_column(value, said):
    model = made_up_model(filled=False)
    row = model.rows_at_once() + 3
    table = made_up_table(row + 2).fillna(0.0)
    table.loc[row, "b"] = value
    with pytest.raises(DataError, match=rf"X, row {row} \(from 0\), column 'b': {said}"):
        model.predict(table)
    if np.isnan(value):
        made_up_model().predict(table)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop(columns="a"), "no column 'a'; expected the 3 columns"),
        (lambda t: t.assign(age=1), "column 'age', unknown to the model.*--ignore age"),
        (lambda t: t.rename(columns={"size": "Size"}), "For 'size': Did you mean 'Size'"),
        (lambda t: t.assign(a="tall"), r"text in column 'a' .*'tall'.*model takes numbers"),
        (lambda t: t.assign(a=["1,5", *t["a"][1:]]), r"'a': found text '1,5'.*with a point"),
        (lambda t: t.to_numpy(), "an array; expected a DataFrame"),
    ],
    ids=["missing", "extra", "renamed", "text", "comma", "array"],
)
def test_rows_that_do_not_fit_are_refused(change, said):
    with pytest.raises(DataError, match=f"X.*{said}"):
        made_up_model().predict(change(TABLE))


def test_an_array_has_its_columns_in_order():
    x = np.random.default_rng(0).normal(size=(30, 3))
    y = x[:, 0] > 0
    estimator = mkldist.MKLClassifier(kernels=[mkldist.kernels.Gaussian(widths=1.0)]).fit(x, y)
    model = estimator.to_model()
    frame = pd.DataFrame(x, columns=["x0", "x1", "x2"]).iloc[:, ::-1]
    np.testing.assert_array_equal(model.decision_function(x), model.decision_function(frame))
    with pytest.raises(
        DataError, match="X: found 2 columns; expected 3, as the model has: x0, x1, x2"
    ):
        model.predict(x[:, :2])


def test_it_says_what_it_is():
    model = made_up_model()
    assert repr(model).startswith("<Model: level on made up, classes ill, well, ")
    weights = model.kernel_weights
    assert list(weights.columns) == ["kernel", "weight"]
    assert len(weights) == model.n_kernels
    assert weights["kernel"].str.contains("|".join([*FEATURES, "all"])).all()


def test_ties_go_to_the_most_frequent_class():
    data = Dataset("d", np.zeros((4, 1)), np.array([2.0, 1.0, 1.0, 0.0]), ("a", "b", "c"))
    labels = LabelCoding.of_dataset(data, np.arange(len(data.y)))
    assert labels.predictions(np.zeros((1, 3))).tolist() == ["b"]


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("-1", "1"), "i"),
        (("0.5", "1"), "f"),
        (("rest", "1"), "U"),
        (("1_2", "2"), "U"),
        (("01", "1"), "U"),
        (("+1", "1"), "U"),
        (("1.0", "1"), "U"),
        (("inf", "1"), "U"),
        (("9007199254740992", "9007199254740993"), "i"),
        (("-1", "18446744073709551615"), "O"),
        (("0.5", "9007199254740993"), "U"),
    ],
)
def test_classes_have_the_type_of_the_labels(names, kind):
    data = Dataset("d", np.zeros((2, 1)), np.array([-1.0, 1.0]), names)
    labels = LabelCoding.of_dataset(data, np.arange(len(data.y)))
    assert labels.classes.dtype.kind == kind
    assert tuple(map(str, labels.classes.tolist())) == (names if kind != "f" else ("0.5", "1.0"))
    given = labels.classes.tolist(), labels.classes.dtype.str
    again = LabelCoding.of_names(*given, answers=labels.answers)
    assert again.predictions(np.array([[-1.0], [0.0]])).tolist() == labels.classes.tolist()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_items_are_taken_when_they_are_needed(n_threads):
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(50):
            taken.append(item)
            yield item

    for done, _ in enumerate(in_order(lambda x: x, items(), n_threads), start=1):
        assert len(taken) <= done + n_threads


def test_calls_are_side_by_side():
    together = threading.Barrier(3, timeout=20)
    assert list(in_order(lambda x: together.wait() >= 0, range(3), 3)) == [True] * 3


def features(source: object, columns: SourceColumns = COLUMNS) -> tuple[NewRows, np.ndarray]:
    """Return rows in Python, matched with columns of a model, and their features."""
    with opened_rows(source, columns, 2, "X") as rows:
        return rows, np.concatenate([block.x for block in rows.blocks])


def match(names: tuple[str, ...], columns: SourceColumns = COLUMNS, **keys: object) -> NewRows:
    """Return a table without rows that has columns of these names."""
    frame = pd.DataFrame(columns=list(names))
    with opened_rows(frame, columns, 2, "t.csv", **keys) as rows:
        return rows


def test_features_are_those_of_scikit_learns_encoder():
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame({"size": ["S", "L", None, "XL", "L"], "b": range(5), "a": range(5, 10)})
    rows, x = features(frame)
    encoder = OneHotEncoder(categories=[["L", "S", "?"]], handle_unknown="ignore")
    expected = encoder.fit_transform(frame[["size"]].fillna("?")).toarray()
    np.testing.assert_array_equal(x[:, 2:], expected[:, :2])  # "?" is not kept
    np.testing.assert_array_equal(x[:, :2], frame[["a", "b"]])
    assert rows.unseen == Counter({("size", "XL"): 1})


def test_a_column_of_the_model_stands_once_in_a_frame():
    frame = pd.DataFrame([[1, 2, "S", 3, 4]], columns=["a", "b", "size", "a", "label"])
    with pytest.raises(DataError, match=r"^X: found 2 columns 'a'; expected .* Rename or drop"):
        features(frame)


def test_numbers_may_be_text_and_truth_values():
    frame = pd.DataFrame({"a": ["1", "2.5"], "b": [True, False], "size": ["S", "S"]})
    _, x = features(frame)
    assert x[:, :2].tolist() == [[1.0, 1.0], [2.5, 0.0]]


def test_all_differences_are_told_in_one_message():
    said = "t.csv: found no column 'a', 'size'; columns 'Sise', 'age', unknown to the model"
    with pytest.raises(DataError, match=said):
        match(("b", "Sise", "age"))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("A", "b", "Size "), "'a': Did you mean 'A'.*'size': Did you mean 'Size '.*"),
        (("A", "b", "size", "a note"), "Did you mean 'A'.*: --ignore A --ignore 'a note'."),
        (("a", "b", "size", "y", "z"), "any order. Rename .*: --ignore y --ignore z."),
    ],
)
def test_a_name_of_other_case_or_signs_is_shown(names, said):
    with pytest.raises(DataError, match=f"{said}$"):
        match(names)


def test_columns_may_be_ignored_by_name():
    assert match(("a", "b", "size", "age"), ignored=["age"]).id == ""
    with pytest.raises(DataError, match=r"no column 'agee' to ignore.*Did you mean 'age'"):
        match(("a", "b", "size", "age"), ignored=["agee"])


def test_a_label_has_no_name_where_the_source_was_no_table():
    columns = SourceColumns(["f0", "f1"])
    _, x = features(pd.DataFrame([["ill", 1, 2]], columns=["label", "f1", "f0"]), columns)
    assert x.tolist() == [[2.0, 1.0]]


def test_positions_of_an_array_are_those_of_the_columns():
    columns = SourceColumns(("a", "b", "c"), kept=(0, 2))
    assert features([[1, 2, 3]], columns)[1].tolist() == [[1.0, 3.0]]


def test_lines_about_unknown_categories():
    unseen = Counter({("size", "XL"): 2, ("colour", "red"): 1, ("size", "M"): 1})
    assert [line.split(" (")[0] for line in unseen_lines(unseen)] == [
        "column 'size': 3 rows of unknown categories",
        "column 'colour': 1 row of unknown categories",
    ]
    [line] = unseen_lines(Counter({("size", "?"): 2, ("size", "XL"): 1}))
    assert "no value in 2, 'XL' in 1" in line


COLUMNS_T = SourceColumns(("a", "b"), texts=("s", "t"), id="row")


def test_texts_stand_in_the_order_of_the_columns():
    frame = pd.DataFrame({"t": ["x", "y"], "b": [1, 2], "s": [1, None], "a": [3, 4]})
    with opened_rows(frame, COLUMNS_T, 9, "X") as rows:
        [block] = rows.blocks
    assert block.texts.tolist() == [["1", "x"], ["", "y"]]
    with opened_rows(frame, replace(COLUMNS_T, texts=(), others=("s", "t")), 9, "X") as rows:
        assert next(rows.blocks).texts is None


def test_a_file_without_columns_has_no_texts(tmp_path):
    (tmp_path / "n.svm").write_text("0 1:1 2:1\n")
    columns = replace(COLUMNS_T, numbers=("f0", "f1"), start=1)
    with (
        pytest.raises(
            DataError, match=r"found an array; expected a DataFrame, for columns of texts"
        ),
        opened_rows(tmp_path / "n.svm", columns, 9),
    ):
        pass
