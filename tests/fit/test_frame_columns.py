"""Columns of a DataFrame of categorical and nullable types, as columns of plain numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest

from mkldist import MKLClassifier
from mkldist.errors import DataError, SpecError, UnknownCategoryWarning
from mkldist.kernels import Gaussian, Linear

N = 40
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(size=N),
        "sex": pd.Categorical(RNG.choice(["m", "f"], N), ["m", "f", "none"]),
        "crp": RNG.normal(size=N),
        "site": pd.Categorical(RNG.choice(["b", "a", None], N)),
    }
)
Y = np.where(FRAME["age"] + (FRAME["sex"] == "f") + RNG.normal(size=N) > 0.5, "yes", "no")
PLAIN = pd.DataFrame(
    {name: FRAME[name] for name in ("age", "crp")}
    | {f"sex={one}": (FRAME["sex"] == one).astype(float) for one in ("m", "f")}
    | {f"site={one}": (FRAME["site"] == one).astype(float) for one in ("a", "b")}
    | {"site=?": FRAME["site"].isna().astype(float)}
)
SEX = ["sex=m", "sex=f"]


@pytest.mark.parametrize(
    ("settings", "plain"),
    [
        ({}, {}),
        ({"kernels": [Gaussian(1.0, features=["sex", "all"])]}, {"groups": {"sex": SEX}}),
        ({"views": {"v": ["sex", "crp"]}}, {"views": {"v": [*SEX, "crp"]}}),
        ({"views": {"v": [1, 2]}}, {"views": {"v": [2, 3, 1]}}),
        (
            {"groups": {"g": ["age", "sex"]}, "kernels": [Linear(features="g")]},
            {"groups": {"g": ["age", *SEX]}},
        ),
    ],
    ids=["all", "a column", "view by name", "view by number", "group"],
)
def test_categories_are_indicators(settings, plain):
    found = MKLClassifier(**settings).fit(FRAME, Y)
    expected = MKLClassifier(**{**settings, **plain}).fit(PLAIN, Y)
    values = expected.decision_function(PLAIN)
    np.testing.assert_allclose(found.decision_function(FRAME), values, atol=1e-9)
    assert found.feature_names_in_.tolist() == list(FRAME.columns)
    mixed = FRAME[::-1].assign(sex=lambda f: f["sex"].astype(str))
    saved = found.to_model().decision_function(mixed[["site", "crp", "age", "sex"]])
    np.testing.assert_allclose(saved, values[::-1], atol=1e-9)
    few = FRAME[:5].assign(sex=FRAME["sex"][:5].cat.remove_unused_categories())
    np.testing.assert_allclose(found.decision_function(few), values[:5], atol=1e-9)


def test_categories_that_the_fit_has_not_seen_are_said():
    model = MKLClassifier().fit(FRAME, Y)
    new = FRAME[:3].assign(sex=["none", "f", None])
    with pytest.warns(UnknownCategoryWarning, match=r"'sex': 'none', 'sex': '\?'.*none of the"):
        found = model.decision_function(new)
    plain = MKLClassifier().fit(PLAIN, Y)
    rows = PLAIN[:3].assign(**{"sex=m": 0.0, "sex=f": [0.0, 1.0, 0.0]})
    np.testing.assert_allclose(found, plain.decision_function(rows), atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(FRAME)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME.drop(columns="sex"))
    with pytest.warns(UserWarning, match="feature names"), pytest.raises(DataError, match="a Data"):
        model.predict(np.zeros((2, 4)))
    with pytest.raises(SpecError, match="names of columns, beside columns of categories"):
        MKLClassifier(groups={"g": [0]}).fit(FRAME, Y)


@pytest.mark.parametrize(
    "column",
    [
        pd.array([1, 2, None, 4] * 10, dtype="Int64"),
        pd.array([1.5, None, 0.5, 4.0] * 10, dtype="Float64"),
        pd.array([True, False, None, True] * 10, dtype="boolean"),
        pd.Series([1.5, pd.NA, None, 4] * 10, dtype=object),
        pd.Categorical([3, 1, None, 2] * 10),
        pd.Categorical([True, False] * 20),
    ],
    ids=["Int64", "Float64", "boolean", "object", "categories of numbers", "truth values"],
)
@pytest.mark.parametrize("name", ["b", 7])
def test_nullable_columns_are_numbers(column, name):
    frame = pd.DataFrame({"a" if name == "b" else 3: FRAME["age"], name: column})
    plain = frame.copy()
    plain[name] = [np.nan if pd.isna(one) else float(one) for one in column]
    found, expected = (MKLClassifier().fit(X, Y).decision_function(X) for X in (frame, plain))
    np.testing.assert_array_equal(found, expected)


def test_categories_of_polars_are_those_of_pandas():
    polars = pytest.importorskip("polars")
    columns = {name: FRAME[name].to_list() for name in FRAME}
    kinds = {"sex": polars.Enum(["m", "f"]), "site": polars.Categorical}
    columns["site"] = [None if pd.isna(one) else one for one in columns["site"]]
    frame = polars.DataFrame(columns, schema_overrides=kinds)
    values = MKLClassifier().fit(frame, polars.Series(Y.tolist())).decision_function(frame)
    expected = MKLClassifier().fit(FRAME, Y).decision_function(FRAME)
    np.testing.assert_allclose(values, expected, atol=1e-9)
