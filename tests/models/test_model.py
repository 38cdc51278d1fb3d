"""Predictions of models against plain formulas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.data.dataset import Dataset
from mkldist.errors import DataError, UnknownCategoryWarning
from mkldist.fit.model import LabelCoding
from tests.models.made_up import FEATURES, made_up_model, made_up_table, plain_values

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
    ("change", "filled", "said"),
    [
        (lambda t: t.drop(columns="a"), True, "no column 'a'; expected the 3 columns"),
        (lambda t: t.assign(age=1), True, "column 'age', unknown to the model.*--ignore age"),
        (lambda t: t.rename(columns={"size": "Size"}), True, "For 'size': Did you mean 'Size'"),
        (lambda t: t.assign(a="tall"), True, r"text in column 'a' .*'tall'.*model takes numbers"),
        (
            lambda t: t.assign(b=np.inf),
            True,
            r"row 0 \(from 0\), column 'b': found an infinite value",
        ),
        (
            lambda t: t,
            False,
            r"row 0 \(from 0\), column 'a': found no value.*fills no missing values",
        ),
        (
            lambda t: t.assign(a=["1,5", *t["a"][1:]]),
            True,
            r"column 'a': found text '1,5'.*Write decimals with a point",
        ),
        (lambda t: t.to_numpy(), True, "an array; expected a DataFrame"),
    ],
    ids=["missing", "extra", "renamed", "text", "infinite", "gap", "comma", "array"],
)
def test_rows_that_do_not_fit_are_refused(change, filled, said):
    with pytest.raises(DataError, match=f"X.*{said}"):
        made_up_model(filled=filled).predict(change(TABLE))


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
    again = LabelCoding.from_dict(labels.as_dict())
    assert again.predictions(np.array([[-1.0], [0.0]])).tolist() == labels.classes.tolist()
