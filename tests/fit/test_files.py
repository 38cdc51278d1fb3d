"""Predictions of files against those of the same rows in Python, and explanations of a sweep."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.datasets import dump_svmlight_file

import mkldist
from tests.fit.problems import FEW_KERNELS, METHODS, TEST, THREE, TRAIN, TWO, VALUES, X, given
from tests.fit.test_inputs import BY_COLUMN, NAMES, sparse_points, split_table, with_gaps
from tests.fit.ways import TOL, assert_near, by_sweep, called, model_of, predicted, sweep

FRAME = pd.DataFrame(X, columns=NAMES)
BANK = {"kernels": FEW_KERNELS}
LEVEL = {"name": "level", "C": 10.0}


def write(rows: pd.DataFrame, kind: str, folder: Path) -> Path:
    """Write rows to a file of some kind."""
    file = folder / f"new.{kind}"
    if kind == "csv":
        rows.to_csv(file, index=False)
    elif kind == "tsv":
        rows.to_csv(file, index=False, sep="\t")
    elif kind == "csv.gz":
        rows.to_csv(file, index=False)
    elif kind == "parquet":
        rows.to_parquet(file)
    elif kind == "npz":
        np.savez(file, x=rows.to_numpy(), feature_names=np.array(list(rows)))
    elif kind == "svm":
        dump_svmlight_file(rows.to_numpy(), np.zeros(len(rows)), str(file), zero_based=False)
    else:
        group = zarr.open_group(file, mode="w")
        for name in rows:
            group.create_array(name, data=rows[name].to_numpy())
    return file


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """Return the model of a table that lacks values, and decision values of the test rows."""
    folder = tmp_path_factory.mktemp("two")
    frame = pd.DataFrame(with_gaps(), columns=NAMES)
    datasets = [{"name": "mine", "label": "label", "impute": "median"}]
    data = {"mine": split_table(frame)}
    tree = sweep(folder / "r", data, [LEVEL], BANK, datasets=datasets, splits=BY_COLUMN)
    model_of(folder / "r", folder / "a.model")
    return folder / "a.model", by_sweep(tree["mine/level"], TEST).values


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "npz", "zarr"])
def test_tables_of_every_kind(kind: str, two: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    file, expected = two
    rows = pd.DataFrame(with_gaps(), columns=NAMES).iloc[TEST, ::-1]
    found = predicted(file, write(rows, kind, tmp_path))
    assert_near(found["decision"], expected)
    model = mkldist.load_model(file)
    np.testing.assert_array_equal(found["decision"], model.decision_function(rows))
    assert found["prediction"].tolist() == model.predict(rows).tolist()
    assert set(found["prediction"]) == {"no", "yes"}


@pytest.mark.parametrize("kind", ["npz", "svm"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_arrays_without_names(kind: str, is_sparse: bool, tmp_path: Path) -> None:
    points = sparse_points()
    dump_svmlight_file(points, TWO, str(tmp_path / "all.svm"), zero_based=False)
    entry = {"name": "mine", "file": str(tmp_path / "all.svm"), "sparse": is_sparse}
    kernels = [{"function": "gaussian", "widths": [10.0, 30.0]}, {"function": "linear"}]
    sweep(
        tmp_path / "r", {}, [{"name": "primalmkl", "C": 10.0}], {"kernels": kernels},
        datasets=[entry],
        preprocessing={"scale": "none"}, splits={"kind": "holdout"},
    )  # fmt: skip
    node = mkldist.open_results(tmp_path / "r")["mine/primalmkl"]
    values = node.decision_values.values.squeeze()
    test = np.flatnonzero(~np.isnan(values))
    assert len(test) == len(TWO) // 2
    model = model_of(tmp_path / "r", tmp_path / "a.model")
    rows = points[test] if is_sparse else points[test].toarray()
    assert_near(model.decision_function(rows), values[test])
    if kind == "svm":
        file = tmp_path / "new.svm"
        dump_svmlight_file(points[test], np.zeros(len(test)), str(file), zero_based=False)
    elif is_sparse:
        file = tmp_path / "new.npz"
        parts = {name: getattr(rows, name) for name in ("data", "indices", "indptr", "shape")}
        np.savez(file, **parts)
    else:
        file = tmp_path / "new.npz"
        np.savez(file, x=rows)
    assert_near(predicted(tmp_path / "a.model", file)["decision"], values[test])


@pytest.mark.slow
def test_three_classes_and_real_values(tmp_path: Path) -> None:
    names = np.array(["low", "middle", "high"])[THREE]
    sweep(tmp_path / "three", given(names, feature_names=NAMES), [LEVEL], BANK)
    model = model_of(tmp_path / "three", tmp_path / "three.model")
    rows = FRAME.iloc[TEST]
    found = predicted(tmp_path / "three.model", write(rows, "csv", tmp_path))
    assert found["prediction"].tolist() == model.predict(rows).tolist()
    columns = [name for name in found if name.startswith("decision[")]
    assert sorted(columns) == ["decision[high]", "decision[low]", "decision[middle]"]
    np.testing.assert_array_equal(found[columns], model.decision_function(rows))

    datasets = [{"name": "mine", "task": "regression"}]
    entry = {"name": "primalmkl", "loss": "squared", "C": 100.0}
    sweep(tmp_path / "values", given(VALUES, feature_names=NAMES), [entry], BANK, datasets=datasets)
    model = model_of(tmp_path / "values", tmp_path / "values.model")
    found = predicted(tmp_path / "values.model", write(rows, "parquet", tmp_path))
    assert list(found) == ["prediction"]
    np.testing.assert_array_equal(found["prediction"], model.predict(rows))


def test_a_file_of_an_estimator_predicts_files(tmp_path: Path) -> None:
    fitted = mkldist.MKLClassifier(kernels=FEW_KERNELS).fit(FRAME.iloc[TRAIN], THREE[TRAIN])
    fitted.to_model().save(tmp_path / "a.model")
    rows = FRAME.iloc[TEST]
    found = predicted(tmp_path / "a.model", write(rows, "csv", tmp_path))
    assert found["prediction"].tolist() == fitted.predict(rows).tolist()
    assert_near(found.filter(like="decision["), fitted.decision_function(rows))


def test_a_model_on_all_rows_is_an_estimator_on_all_rows(tmp_path: Path) -> None:
    sweep(tmp_path / "r", given(TWO), [{"name": "level", "C": [1.0, 10.0]}], BANK)
    called("fit", tmp_path / "r", "-o", tmp_path / "a.model", "--set", "C=10")
    model = mkldist.load_model(tmp_path / "a.model")
    fitted = mkldist.MKLClassifier(
        C=10.0, kernels=FEW_KERNELS, normalisation="trace", tol=1e-8
    ).fit(X, TWO)
    assert_near(model.facts["objective"], fitted.objective_)
    assert_near(model.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize("method", ["level", "primalmkl", "uniform"])
def test_explanations_are_of_the_weights_and_decisions(method: str, tmp_path: Path) -> None:
    params = dict(METHODS[method])
    data = given(TWO, X, feature_names=NAMES)
    tree = sweep(tmp_path / "r", data, [{"name": method, **params}], BANK)
    weights = tree[f"mine/{method}"].kernel_weights.squeeze().to_series()
    [told] = mkldist.explain(tmp_path / "r", method=method)
    fitted = mkldist.MKLClassifier(
        method, C=params.pop("C", 1.0), kernels=FEW_KERNELS, normalisation="trace", tol=TOL,
        method_params=params,
    ).fit(FRAME.iloc[TRAIN], TWO[TRAIN])  # fmt: skip
    parts = fitted.contributions(FRAME.iloc[TEST], by="kernels")
    parts -= parts.mean()
    whole = parts.sum(axis=1)
    covered = 0.0
    for share in told.of("kernel"):
        assert_near(share.weight.mean, weights[share.name] / weights.sum())
        part = parts[share.name] if share.name in parts else 0.0 * whole
        assert_near(share.decision.mean, (part * whole).sum() / (whole**2).sum(), 1e-9)
        covered += share.weight.mean
    assert covered == pytest.approx(1.0)


def test_the_command_explains_as_python_does(tmp_path: Path) -> None:
    sweep(tmp_path / "r", given(TWO), [LEVEL], BANK)
    [told] = mkldist.explain(tmp_path / "r")
    [document] = json.loads(called("explain", tmp_path / "r", "--json"))["explanations"]
    assert document["method"] == "level"
    found = {(one["level"], one["name"]): one["weight"]["mean"] for one in document["shares"]}
    assert found == {(one.level, one.name): one.weight.mean for one in told.shares}
