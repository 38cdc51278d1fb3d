"""Data sets that come with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mkldist.data.raw import RawData
from mkldist.spec.kinds import Task

DESCRIPTIONS = {
    "breast_cancer": "569 points, 30 features; benign, malignant (Wisconsin diagnostic, UCI)",
    "wdbc": "another name of breast_cancer",
    "iris": "150 points, 4 features; classes setosa, versicolor, virginica",
    "wine": "178 points, 13 features; classes class_0, class_1, class_2",
    "digits": "1797 points, 64 features; classes 0 to 9",
    "diabetes": "442 points, 10 features; regression: progression of the disease in a year",
}
LOADERS = {"wdbc": "breast_cancer"}
# By default scikit-learn scales these features by statistics of all rows, test rows included.
OPTIONS: dict[str, dict[str, Any]] = {"diabetes": {"scaled": False}}


def load_bundled(name: str) -> RawData:
    """Return one of the :data:`DESCRIPTIONS`; its labels are class names or real values."""
    import sklearn
    from sklearn import datasets

    loader = f"load_{LOADERS.get(name, name)}"
    load: Callable[[], Any] = getattr(datasets, loader)
    bunch = load(**OPTIONS.get(name, {}))
    names = bunch.get("target_names")
    task: Task = "regression" if names is None else "classification"
    return RawData(
        labels=bunch.target if names is None else np.array([str(n) for n in names])[bunch.target],
        x=np.ascontiguousarray(bunch.data, dtype=np.float64),
        feature_names=tuple(str(name) for name in bunch.feature_names),
        origin=f"scikit-learn {sklearn.__version__}, {loader}",
        task=task,
    )
