"""Input that cannot be used, by every way: the class of the error, not its words."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import mkldist
from mkldist.errors import (
    ConvergenceWarning,
    DataError,
    GramError,
    InputError,
    OutputError,
    SpecError,
    StoreError,
    UnknownCategoryWarning,
)
from tests.fit.problems import FEW_KERNELS, METHODS, TEST, TRAIN, TWO, VALUES, N, X, given
from tests.fit.test_inputs import BY_COLUMN, NAMES, split_table
from tests.fit.ways import called, model_of, predicted, standardised, sweep

POINTS = standardised(X, TRAIN)[TRAIN]
LABELS = TWO[TRAIN].astype(float)
FRAME = pd.DataFrame(X, columns=NAMES)
LEVEL = {"name": "level", "C": 1.0}
BANK = {"kernels": FEW_KERNELS}


def changed(array: np.ndarray, place: Any, value: float) -> np.ndarray:
    """Return a copy with one value in place of another."""
    found = array.copy()
    found[place] = value
    return found


@cache
def bank() -> mkldist.KernelBank:
    """Return the few kernels."""
    return mkldist.KernelBank(POINTS, FEW_KERNELS, normalisation="trace")


SOLVES: dict[type[Exception], dict[str, Callable[[], Any]]] = {
    GramError: {
        "points for a bank": lambda: mkldist.solve("level", bank().on(POINTS), LABELS),
        "path of texts": lambda: mkldist.solve_path("level", bank(), LABELS, C=["a"]),
    },
}


def classifier(**settings: Any) -> mkldist.MKLClassifier:
    return mkldist.MKLClassifier(**{"kernels": FEW_KERNELS, **settings})


@cache
def model() -> mkldist.Model:
    """Return a model of a DataFrame."""
    return classifier().fit(FRAME.iloc[TRAIN], TWO[TRAIN]).to_model()


Y = TWO[TRAIN]
REAL = VALUES[TRAIN]
ROWS = X[TRAIN]
ESTIMATORS: dict[type[Exception], dict[str, Callable[[], Any]]] = {
    ValueError: {
        "real labels": lambda: classifier().fit(ROWS, REAL),
        "negative weight": lambda: classifier().fit(ROWS, Y, sample_weight=-np.ones(len(Y))),
        "fewer weights of rows": lambda: classifier().fit(ROWS, Y, sample_weight=[1.0]),
        "values of text": lambda: mkldist.MKLRegressor().fit(ROWS, np.where(Y > 0, "a", "b")),
        "one class with a nan": lambda: mkldist.OneClassMKL(impute=None).fit(
            changed(ROWS, (0, 0), np.nan)
        ),
    },
    DataError: {
        "columns of one name": lambda: classifier().fit(
            FRAME.iloc[TRAIN].set_axis(["a"] * FRAME.shape[1], axis=1), Y
        ),
        "a weight that overflows": lambda: classifier().fit(
            ROWS, Y, sample_weight=np.full(len(Y), 1e300)
        ),
        "a weight near zero": lambda: mkldist.OneClassMKL().fit(
            ROWS, sample_weight=changed(np.ones(len(Y)), 2, 1e-300)
        ),
    },
}
MODELS: dict[type[Exception], dict[str, Callable[[], Any]]] = {
    DataError: {
        "one row of numbers": lambda: model().predict(X[0]),
        "sparse": lambda: model().predict(csr_array(X)),
        "a view it has not": lambda: model().predict(FRAME, views={"genes": FRAME}),
        "dense for sparse": lambda: (
            classifier(impute=None, scale=None)
            .fit(csr_array(ROWS), Y)
            .to_model()
            .predict(csr_array(X[:, :3]))
        ),
    }
}


def swept(data: Any, method: Any = LEVEL, bank: Any = BANK, **tables: Any) -> Callable[[Path], Any]:
    """Return a call of a sweep, which takes the folder."""
    return lambda folder: sweep(folder / "r", data, [method], bank, **tables)


def of(x: Any, y: Any, **more: Any) -> dict[str, Any]:
    return {"mine": {"x": x, "y": y, "train": TRAIN[None], "test": TEST[None], **more}}


TABLE = split_table(FRAME)
SWEEPS: dict[type[Exception], dict[str, Callable[[Path], Any]]] = {
    DataError: {
        "several tables": swept({"mine": ({"a": FRAME, "b": FRAME}, TWO)}),
    },
    SpecError: {
        "sparse with scale": swept(
            of(csr_array(X), TWO), datasets=[{"name": "mine", "sparse": True}]
        ),
    },
}


def each(table: dict[type[Exception], dict[str, Any]]) -> list[Any]:
    """Return the calls of a table with the errors that they raise, for `parametrize`."""
    return [
        pytest.param(error, call, id=name)
        for error, calls in table.items()
        for name, call in calls.items()
    ]


@pytest.mark.parametrize(("error", "call"), [*each(SOLVES), *each(ESTIMATORS), *each(MODELS)])
def test_python(error, call):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(("error", "call"), each(SWEEPS))
def test_sweeps(error, call, tmp_path):
    with pytest.raises(error):
        call(tmp_path)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the results of a table, `r`, and a model of it, `a.model`."""
    folder = tmp_path_factory.mktemp("wrong")
    table = TABLE.assign(size=np.where(np.arange(N) % 2, "S", "L"))
    datasets = [{"name": "mine", "label": "label", "categorical": ["size"]}]
    sweep(folder / "r", {"mine": table}, [LEVEL], BANK, datasets=datasets, splits=BY_COLUMN)
    model_of(folder / "r", folder / "a.model")
    return folder


ROWS_OF_FILE = FRAME.assign(size="S").iloc[TEST]
FITS: dict[str, tuple[type[Exception], list[str]]] = {
    "no results": (StoreError, ["none", "-o", "b.model"]),
    "unknown method": (InputError, ["r", "-o", "b.model", "--method", "levle"]),
    "unknown data set": (InputError, ["r", "-o", "b.model", "--dataset", "x"]),
    "unknown bank": (InputError, ["r", "-o", "b.model", "--bank", "x"]),
    "unknown parameter": (InputError, ["r", "-o", "b.model", "--set", "D=1"]),
    "wrong parameter": (SpecError, ["r", "-o", "b.model", "--set", "C=-1"]),
    "no value": (InputError, ["r", "-o", "b.model", "--set", "C"]),
    "no such split": (InputError, ["r", "-o", "b.model", "--split", "7"]),
    "a file that is there": (OutputError, ["r", "-o", "a.model"]),
}


@pytest.mark.parametrize("name", FITS)
def test_the_command_fit(name, results, monkeypatch):
    error, words = FITS[name]
    monkeypatch.chdir(results)
    with pytest.raises(error):
        called("fit", *words)
    assert not (results / "b.model").exists()


FILES: dict[str, tuple[type[Exception], pd.DataFrame, list[str]]] = {
    "an unknown column": (DataError, ROWS_OF_FILE.assign(note=1), []),
    "a column less": (DataError, ROWS_OF_FILE.drop(columns="age"), []),
    "a category less": (DataError, ROWS_OF_FILE.drop(columns="size"), []),
    "texts": (DataError, ROWS_OF_FILE.assign(age="x"), []),
    "missing values": (DataError, ROWS_OF_FILE.assign(age=np.nan), []),
    "no rows": (DataError, ROWS_OF_FILE.iloc[:0], []),
    "ignored what is not there": (InputError, ROWS_OF_FILE, ["--ignore", "note"]),
    "ignored what the model needs": (DataError, ROWS_OF_FILE, ["--ignore", "age"]),
    "an unknown view": (InputError, ROWS_OF_FILE, ["--view", "genes=new.csv"]),
    "no name of a view": (InputError, ROWS_OF_FILE, ["--view", "new.csv"]),
}


@pytest.mark.parametrize("name", FILES)
def test_the_command_predict(name, results, tmp_path):
    error, rows, words = FILES[name]
    rows.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(error):
        predicted(results / "a.model", tmp_path / "new.csv", *words)
    assert not (tmp_path / "predictions.csv").exists()


def test_files_that_are_no_models_or_data(results, tmp_path):
    ROWS_OF_FILE.to_csv(tmp_path / "new.csv", index=False)
    whole = (results / "a.model").read_bytes()
    (tmp_path / "cut.model").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.model").write_text("model")
    for name in ("cut.model", "text.model", "none.model", "new.csv"):
        with pytest.raises(InputError):
            mkldist.load_model(tmp_path / name)
        with pytest.raises(InputError):
            predicted(tmp_path / name, tmp_path / "new.csv")
    for name in ("none.csv", "cut.model"):
        with pytest.raises(InputError):
            predicted(results / "a.model", tmp_path / name)


def test_unknown_categories_are_told(results):
    kept = mkldist.load_model(results / "a.model")
    with pytest.warns(UnknownCategoryWarning):
        kept.predict(ROWS_OF_FILE.assign(size="M"))


@pytest.mark.parametrize("method", ["level", "primalmkl", "spicymkl"])
def test_early_stops_are_told_by_every_way(method, tmp_path):
    params = {**METHODS[method], "max_iter": 1}
    with pytest.warns(ConvergenceWarning):
        found = mkldist.solve(method, bank(), LABELS, tol=1e-8, **params)
    assert str(found.stop_reason) == "max_iter"
    settings = {"C": params.pop("C")} if "C" in params else {}
    with pytest.warns(ConvergenceWarning):
        other = classifier(
            method=method, tol=1e-8, normalisation="trace", method_params=params, **settings
        ).fit(X[TRAIN], TWO[TRAIN])
    assert other.stop_reason_ == "max_iter"
    assert other.objective_ == pytest.approx(found.objective, rel=1e-9)
    entry = {"name": method, **METHODS[method], "max_iter": 1}
    run = sweep(tmp_path / "r", given(TWO), [entry], BANK)[f"mine/{method}"].to_dataset().squeeze()
    assert str(run.stop_reason.values) == "max_iter"
    assert float(run.objective) == pytest.approx(found.objective, rel=1e-9)
