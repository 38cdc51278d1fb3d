"""Small problems of every kind, and the methods that learn them."""

from typing import Any

import numpy as np

N = 60
ALL_KERNELS = [
    {"function": "gaussian", "widths": [0.5, 2.0], "features": ["all", "each"]},
    {"function": "polynomial", "degrees": [2]},
]
FEW_KERNELS = [
    {"function": "gaussian", "widths": [1.0], "features": ["all", "each"]},
    {"function": "linear"},
]
NEIGHBOURS = 5
OUTER = 100.0  # C of one class
GRAPH = {"gamma_a": 0.01, "gamma_i": 0.01}
METHODS: dict[str, dict[str, Any]] = {
    "level": {"C": 10.0},
    "simplemkl": {"C": 10.0},
    "silp": {"C": 10.0},
    "hessianmkl": {"C": 10.0},
    "skm": {"C": 10.0},
    "gmkl": {"C": 10.0},
    "rmkl": {"C": 10.0},
    "lp_mkl": {"C": 10.0},
    "l0_mkl": {"C": 10.0, "k": 2},
    "group_mkl": {"C": 10.0},
    "smo_mkl": {"C": 10.0},
    "spicymkl": {"C": 20.0},
    "elastmkl": {"C": 20.0},
    "primalmkl": {"C": 100.0},
    "lapmkl": GRAPH,
    "lapsvm": GRAPH,
    "mklsvm": GRAPH,
    "lsvm": GRAPH,
    "glks": GRAPH,
    "laprls": GRAPH,
    "rls": {"gamma_a": 0.01},
    "easymkl": {"lam": 0.1},
    "align": {"C": 10.0},
    "alignf": {"C": 10.0},
    "uniform": {"C": 10.0},
    "svm": {},
    "best_single": {"C": 10.0},
    "majority": {},
}
FEW_LABELS = ("lapmkl", "lapsvm", "mklsvm", "lsvm", "glks", "laprls", "rls")
"""Methods that learn from rows without a label too."""
ON_GRAPHS = tuple(name for name in FEW_LABELS if name != "rls")


def _draw() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(N, 4)) * [1.0, 10.0, 0.1, 3.0] + [0.0, 5.0, 1.0, -2.0]
    z = (x - [0.0, 5.0, 1.0, -2.0]) / [1.0, 10.0, 0.1, 3.0]
    value = z[:, 0] * z[:, 1] + 0.5 * z[:, 2] + 0.2 * draw.normal(size=N)
    return x, value, draw.permutation(N)


X, VALUES, _order = _draw()
"""Features of several units, (n, d), and what they say, (n,)."""
TWO = np.where(VALUES > 0, 1, -1)
THREE = np.digitize(VALUES, [-0.4, 0.4])
TRAIN, UNLABELLED, TEST = (np.sort(one) for one in np.split(_order, [36, 44]))
SEEN = np.concatenate([TRAIN, UNLABELLED])
NEW = np.concatenate([UNLABELLED, TEST])


def given(y: np.ndarray, x: Any = X, *, unlabelled: bool = False, **more: Any) -> dict[str, Any]:
    """Return a data set for a sweep, with its only split."""
    parts = {"train": TRAIN[None], "test": TEST[None]}
    if unlabelled:
        parts["unlabelled"] = UNLABELLED[None]
    return {"mine": {"x": x, "y": y, **parts, **more}}


SHARING = ("level", "silp", "hessianmkl", "lp_mkl", "group_mkl", "l0_mkl", "alignf", "uniform")
"""Methods whose classes may share kernel weights; mklsvm and lsvm do with few labels."""
WEIGHING = (
    "level", "simplemkl", "silp", "hessianmkl", "lp_mkl", "group_mkl", "align", "alignf", "uniform",
)  # fmt: skip
"""Methods that take weights of points."""
REGRESSIONS = (
    ("primalmkl", "squared"),
    ("primalmkl", "epsilon-squared"),
    ("spicymkl", "squared"),
    ("spicymkl", "epsilon"),
    ("elastmkl", "squared"),
)
"""Methods and losses of real values."""


def against_rest(classes: np.ndarray) -> np.ndarray:
    """Return labels -1 and +1 of each class against the rest, (n, k)."""
    return np.where(classes[:, None] == np.unique(classes), 1.0, -1.0)


def weights_of(labels: np.ndarray) -> np.ndarray:
    """Return weights of points, those of class +1 three times as large on average."""
    drawn = np.random.default_rng(3).uniform(0.2, 2.0, len(labels))
    return drawn * np.where(labels > 0, 3.0, 1.0)
