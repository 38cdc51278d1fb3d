"""Data sets that come with scikit-learn.

Scikit-learn takes more than a second to import, and every command on a sweep reads its data.  The
first command that needs one of these data sets therefore keeps a copy in the user's cache folder,
for the installed version of scikit-learn alone.  A copy that is missing or damaged is made again.
The breast cancer data, those of the quickstart, are copied from scikit-learn's own file, which
takes some milliseconds; if that file is not as expected, scikit-learn loads them like the others.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.data.raw import RawData
from mkldist.durable import make_folder, write_file

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
CANCER_HEAD = "569,30,malignant,benign"
CANCER_NUCLEI = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity",
    "concave points", "symmetry", "fractal dimension",
)  # fmt: skip


def load_bundled(name: str) -> RawData:
    """Return one of the :data:`DESCRIPTIONS`; its labels are class names or real values."""
    loader = f"load_{LOADERS.get(name, name)}"
    origin = f"scikit-learn {metadata.version('scikit-learn')}, {loader}"
    copy = _folder() / f"{origin.replace(', ', ' ').replace(' ', '-')}.npz"
    arrays = _read(copy)
    if arrays is None:
        arrays = _cancer_file() if loader == "load_breast_cancer" else None
        arrays = arrays or _loaded(loader, OPTIONS.get(name, {}))
        _keep(copy, arrays)
    return RawData(
        labels=arrays["labels"],
        x=arrays["x"],
        feature_names=tuple(arrays["feature_names"].tolist()),
        origin=origin,
        task="classification" if arrays["labels"].dtype.kind == "U" else "regression",
    )


def _cancer_file() -> dict[str, Array] | None:
    """Return the breast cancer data of scikit-learn's file; None if it is not as expected."""
    package = metadata.distribution("scikit-learn")
    file = Path(str(package.locate_file("sklearn/datasets/data/breast_cancer.csv")))
    try:
        head, *lines = file.read_text().splitlines()
        values = np.array([line.split(",") for line in lines], dtype=np.float64)
    except (OSError, ValueError):  # UnicodeDecodeError is a ValueError
        return None
    if head != CANCER_HEAD or values.shape != (569, 31):
        return None
    names = [[f"mean {one}", f"{one} error", f"worst {one}"] for one in CANCER_NUCLEI]
    return {
        "labels": np.where(values[:, -1] == 1.0, "benign", "malignant"),
        "x": values[:, :-1].copy(),
        "feature_names": np.array(names).T.reshape(-1),
    }


def _loaded(loader: str, options: dict[str, Any]) -> dict[str, Array]:
    """Return features, their names and labels by a function of scikit-learn."""
    from sklearn import datasets

    load: Callable[..., Any] = getattr(datasets, loader)
    bunch = load(**options)
    labels, names = bunch.target, bunch.get("target_names")
    return {
        "labels": labels if names is None else np.array([str(name) for name in names])[labels],
        "x": np.ascontiguousarray(bunch.data, dtype=np.float64),
        "feature_names": np.array([str(name) for name in bunch.feature_names]),
    }


def _folder() -> Path:
    """Return the folder of the copies."""
    given = os.environ.get("MKLDIST_CACHE")
    if given:
        return Path(given) / "datasets"
    import platformdirs

    return Path(platformdirs.user_cache_dir("mkldist")) / "datasets"


def _read(copy: Path) -> dict[str, Array] | None:
    """Return the arrays of a copy; None if there is none that can be read."""
    try:
        with np.load(io.BytesIO(copy.read_bytes()), allow_pickle=False) as found:
            return {name: found[name] for name in ("labels", "x", "feature_names")}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _keep(copy: Path, arrays: dict[str, Any]) -> None:
    """Write a copy, unless the folder takes no files."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    with suppress(OSError):
        make_folder(copy.parent)
        write_file(copy, [content.getvalue()])
