"""Answers of `solve` to small problems, to which the other ways are held."""

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
    SEEN,
    THREE,
    TRAIN,
    TWO,
    X,
    against_rest,
)
from tests.fit.ways import Found, by_solve, neighbours_laplacian, standardised

POINTS = standardised(X, SEEN)


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


def one_class() -> Found:
    """Return the answer for the rows of class +1 alone."""
    inner = POINTS[TRAIN[TWO[TRAIN] > 0]]
    bank = mkldist.KernelBank(inner, FEW_KERNELS, normalisation="trace")
    return by_solve("primalmkl", bank, np.ones(len(inner)), POINTS[NEW], loss="one-class", C=OUTER)
