"""Data sets that scikit-learn brings along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mkldist.data.raw import RawData

DESCRIPTIONS = {
    "breast_cancer": "569 points, 30 features; benign, malignant (Wisconsin diagnostic, UCI)",
    "wdbc": "another name of breast_cancer",
    "iris": "150 points, 4 features; setosa, versicolor, virginica: set classes or positive",
    "wine": "178 points, 13 features; class_0, class_1, class_2: set classes or positive",
    "digits": "1797 points, 64 features; 0 to 9: set classes or positive",
}
LOADERS = {"wdbc": "breast_cancer"}


def load_bundled(name: str) -> RawData:
    """Return a data set of :data:`DESCRIPTIONS` with its class names as labels."""
    import sklearn
    from sklearn import datasets

    loader = f"load_{LOADERS.get(name, name)}"
    load: Callable[[], Any] = getattr(datasets, loader)
    bunch = load()
    classes = np.array([str(name) for name in bunch.target_names])
    return RawData(
        labels=classes[bunch.target],
        x=np.ascontiguousarray(bunch.data, dtype=np.float64),
        feature_names=tuple(str(name) for name in bunch.feature_names),
        origin=f"scikit-learn {sklearn.__version__}, {loader}",
    )
