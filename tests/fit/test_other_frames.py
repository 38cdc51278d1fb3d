"""Frames of polars and tables of Arrow, wherever a DataFrame of pandas may stand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.data.tables import pandas_frame
from mkldist.errors import DataError

N = 40
DRAW = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "a": DRAW.normal(size=N),
        "b": np.where(np.arange(N) % 7 == 0, np.nan, DRAW.normal(size=N)),
        "word": ["ab" if one else "ba" for one in DRAW.integers(0, 2, N)],
        "count": np.arange(N) % 5,
    }
)
Y = np.where(FRAME["a"] + (FRAME["word"] == "ab") > 0.5, "yes", "no")


class Columns:
    """Frame as polars has it, in a place without polars and without Arrow."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame, self.columns = frame, list(frame.columns)

    def __getitem__(self, name: str) -> pd.Series:
        return self._frame[name]

    def to_numpy(self) -> np.ndarray:
        return self._frame.to_numpy()

    def to_pandas(self) -> pd.DataFrame:
        raise ModuleNotFoundError("No module named 'pyarrow'")


def made(kind: str, frame: pd.DataFrame = FRAME) -> Any:
    if kind == "columns":
        return Columns(frame)
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame({n: frame[n].tolist() for n in frame})
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


KINDS = pytest.mark.parametrize("kind", ["columns", "polars", "arrow"])


@KINDS
def test_they_hold_the_same_values(kind):
    found = pandas_frame(made(kind))
    assert list(found.columns) == list(FRAME.columns)
    np.testing.assert_array_equal(found[["a", "b", "count"]], FRAME[["a", "b", "count"]])
    assert found["word"].tolist() == FRAME["word"].tolist()


@KINDS
def test_banks_take_them_with_columns_of_texts(kind):
    full, signs = FRAME.drop(columns="b"), np.where(Y == "yes", 1.0, -1.0)
    spectrum = mkldist.kernels.Spectrum(length=2, features="word")
    found = []
    for X in (full, made(kind, full)):
        bank = mkldist.KernelBank(
            X, [mkldist.kernels.Gaussian(widths=1.0), spectrum], texts=["word"]
        )
        solution = mkldist.solve("uniform", bank, signs)
        found.append(solution.decision_function(bank.on(X)))
    np.testing.assert_array_equal(*found)


@KINDS
def test_estimators_and_models_take_them(kind):
    new = FRAME.iloc[:9]
    plain = mkldist.MKLClassifier(texts=["word"]).fit(FRAME, Y)
    other = mkldist.MKLClassifier(texts=["word"]).fit(made(kind), Y)
    expected = plain.decision_function(new)
    np.testing.assert_array_equal(other.decision_function(made(kind, new)), expected)
    assert other.feature_names_in_.tolist() == list(FRAME.columns)
    model = plain.to_model()
    np.testing.assert_array_equal(model.predict(made(kind, new)), model.predict(new))


@KINDS
def test_sweeps_take_them(kind, tmp_path):
    spec = {
        "name": "mine",
        "datasets": [{"name": "mine", "impute": "median", "categorical": ["word"]}],
        "banks": [{"kernels": [mkldist.kernels.Linear()]}],
        "methods": [{"name": "uniform"}],
    }
    errors = []
    for place, x in (("plain", FRAME), ("other", made(kind))):
        tree = mkldist.sweep(spec, {"mine": (x, Y)}, output=tmp_path / place)
        errors.append(tree["mine/uniform"].objective.item())
    assert errors[0] == errors[1]


def test_a_lazy_frame_is_refused():
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match="a lazy frame; expected rows"):
        mkldist.KernelBank(polars.LazyFrame({"a": [1.0, 2.0]}), "do2009")
