"""Data sets that come with scikit-learn: their descriptions, and their positive class."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from mkldist.data.catalogue import DESCRIPTIONS, load_bundled, load_dataset
from mkldist.spec.datasets import DatasetSpec


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_descriptions_say_what_is_there(name: str) -> None:
    raw = load_bundled(name)
    assert raw.x is not None
    assert np.isfinite(raw.x).all()
    text = DESCRIPTIONS["breast_cancer" if name == "wdbc" else name]
    assert text.startswith(f"{len(raw.x)} points, {raw.x.shape[1]} features; ")
    if raw.task == "regression":
        assert "regression" in text
        return
    assert name in ("digits", "wdbc") or set(np.unique(raw.labels)) <= {
        word.strip(" :(;,") for word in text.split()
    }


def test_malignant_is_positive_under_both_names() -> None:
    bunch = load_breast_cancer()
    for name in ("breast_cancer", "wdbc"):
        dataset = load_dataset(DatasetSpec(name=name), [], Path(), 0)
        np.testing.assert_array_equal(dataset.x, bunch.data)
        np.testing.assert_array_equal(dataset.y, 1 - 2 * bunch.target)
        assert dataset.classes == ("benign", "malignant")
        assert dataset.feature_names[0] == "mean radius"
        assert "load_breast_cancer" in dataset.origin
