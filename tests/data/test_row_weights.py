"""Row weights in every kind of source, and weights of classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr

from mkldist.data.catalogue import load_dataset
from mkldist.data.dataset import Dataset, RawData
from mkldist.data.inputs import input_data
from mkldist.data.labels import class_weights
from mkldist.data.snapshot import load_snapshot, save_snapshot
from mkldist.data.splits import make_splits
from mkldist.data.validate import validate
from mkldist.errors import DataError
from mkldist.spec.datasets import DatasetSpec, SplitsSpec
from tests.data.mistakes import mistake

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
