"""Numbers of a few dozen solutions, as ``golden.json`` keeps them.

``python -m tests.fit.golden`` writes the file anew from this code: only after a change that is
meant to move solutions.  ``test_golden.py`` holds every later version to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mkldist
from tests.fit.problems import (
    ALL_KERNELS,
    FEW_KERNELS,
    FEW_LABELS,
    METHODS,
    NEIGHBOURS,
    NEW,
    ON_GRAPHS,
    OUTER,
    REGRESSIONS,
    SEEN,
    SHARING,
    TEST,
    THREE,
    TRAIN,
    TWO,
    VALUES,
    WEIGHING,
    X,
    against_rest,
    weights_of,
)
from tests.fit.ways import Found, by_solve, neighbours_laplacian, standardised

FILE = Path(__file__).with_name("golden.json")
POINTS = standardised(X, SEEN)
N_VALUES = 4  # decision values that are kept
ACTIVE = 1e-3  # weight of an active kernel


def few_kernels() -> mkldist.KernelBank:
    """Return the few kernels on the training points."""
    return mkldist.KernelBank(POINTS[TRAIN], FEW_KERNELS, normalisation="trace")


def two_classes(method: str) -> Found:
    """Return the answer of a method, which sees the unlabelled rows if it can."""
    rows = SEEN if method in FEW_LABELS else TRAIN
    labels = TWO[rows].astype(float)
    labels[len(TRAIN) :] = 0.0
    more = {}
    if method in ON_GRAPHS:
        more["laplacian"] = neighbours_laplacian(POINTS[rows], NEIGHBOURS)
    bank = mkldist.KernelBank(POINTS[rows], ALL_KERNELS, normalisation="trace")
    return by_solve(method, bank, labels, POINTS[NEW], **METHODS[method], **more)


def three_classes(method: str, *, shared: bool) -> Found:
    """Return the answer for three classes, with kernel weights of their own or shared ones."""
    labels = against_rest(THREE[TRAIN])
    given: Any = labels if shared else list(labels.T)
    return by_solve(method, few_kernels(), given, POINTS[NEW], **METHODS[method])


def real_values(method: str, loss: str) -> Found:
    """Return the answer for real values."""
    params = {"loss": loss, **METHODS[method]}
    return by_solve(method, few_kernels(), VALUES[TRAIN], POINTS[NEW], **params)


def one_class() -> Found:
    """Return the answer for the rows of class +1 alone."""
    inner = POINTS[TRAIN[TWO[TRAIN] > 0]]
    bank = mkldist.KernelBank(inner, FEW_KERNELS, normalisation="trace")
    return by_solve("primalmkl", bank, np.ones(len(inner)), POINTS[NEW], loss="one-class", C=OUTER)


def weighted(method: str) -> Found:
    """Return the answer where the points have weights."""
    weights = weights_of(TWO[TRAIN])
    labels = TWO[TRAIN]
    return by_solve(method, few_kernels(), labels, POINTS[NEW], weights=weights, **METHODS[method])


PROBLEMS: dict[str, tuple[str, Callable[[], Found]]] = {
    **{f"two {name}": (name, partial(two_classes, name)) for name in METHODS},
    **{f"three {name}": (name, partial(three_classes, name, shared=False)) for name in SHARING},
    **{f"shared {name}": (name, partial(three_classes, name, shared=True)) for name in SHARING},
    **{f"values {a} {b}": (a, partial(real_values, a, b)) for a, b in REGRESSIONS},
    **{f"weighted {name}": (name, partial(weighted, name)) for name in WEIGHING},
    "one primalmkl": ("primalmkl", one_class),
}
"""By name the method and what finds the answer."""


def numbers(found: Found) -> dict[str, Any]:
    """Return the numbers of an answer that are kept."""
    return {
        "bounds": found.bounds.tolist(),
        "active_kernels": int((found.weights > ACTIVE).sum()),
        "bias": np.ravel(found.bias).tolist(),
        "values": found.values[-N_VALUES:].tolist(),
        "largest_value": float(np.abs(found.values).max()),
        "positive": int((found.values[-len(TEST) :] >= 0).sum()),
    }


if __name__ == "__main__":
    lines = [
        f"{json.dumps(name)}: {json.dumps(numbers(find()))}" for name, (_, find) in PROBLEMS.items()
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
