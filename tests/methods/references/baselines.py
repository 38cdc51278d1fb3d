"""Majority class and cross-validated machines: choices by scikit-learn, optima by Clarabel.

At an extreme C scikit-learn's machine is stopped after many pair updates, or it would not end.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from tests.methods.instances import Instance
from tests.methods.references import Case, Params, with_C
from tests.methods.references.simplex_svm import EXTREMES, simplex_optimum, svm_value

Scores = dict[tuple[int, float], tuple[float, float]]

PAIR_UPDATES = 1_000_000


def fold_of_each(y: np.ndarray, n_folds: int) -> np.ndarray:
    """Deal the points of each class out in turn; all into no fold where a class has one point."""
    n_folds = min(n_folds, int((y > 0).sum()), int((y < 0).sum()))
    fold = np.empty(len(y), dtype=int)
    for label in (-1, 1):
        members = np.flatnonzero(y == label)
        for place, member in enumerate(members):
            fold[member] = place % n_folds
    return fold


def cv_scores(grams: np.ndarray, y: np.ndarray, Cs: list[float], n_folds: int = 5) -> Scores:
    """Return held-out error and mean hinge loss of scikit-learn's machine by kernel and C."""
    fold = fold_of_each(y, n_folds)
    single = len(np.unique(fold)) == 1  # train on all points and score these
    scores: Scores = {}
    for m, K in enumerate(grams):
        for C in Cs:
            f = np.empty(len(y))
            for k in np.unique(fold):
                out, kept = fold == k, (fold != k) | single
                svc = SVC(C=C, kernel="precomputed", tol=1e-5, max_iter=PAIR_UPDATES)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    svc.fit(K[np.ix_(kept, kept)], y[kept])
                f[out] = svc.decision_function(K[np.ix_(out, kept)])
            error = float((np.where(f >= 0, 1, -1) != y).mean())
            scores[m, C] = (error, float(np.maximum(0, 1 - y * f).mean()))
    return scores


def choice(grams: np.ndarray, y: np.ndarray, Cs: list[float]) -> tuple[int, float]:
    """Return the kernel and C of least error, hinge loss (to four decimals), C and index."""
    scores = cv_scores(grams, y, Cs)
    return min(scores, key=lambda mC: (scores[mC][0], round(scores[mC][1], 4), mC[1], mC[0]))


def machine(instance: Instance, y: np.ndarray, kernel: int, C: float) -> float:
    return simplex_optimum(Instance("one", instance.grams[[kernel]], y, C), y, {"C": C})


def best_single_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    return machine(instance, y, *choice(instance.grams, y, [params["C"]]))


def svm_params(instance: Instance) -> Params:
    return {"C_min": 0.01 * instance.C, "C_max": instance.C, "C_num": 3}


def svm_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    Cs = [params["C_min"] * 10**k for k in range(3)]
    return machine(instance, y, *choice(instance.grams, y, Cs))


def chosen_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    return svm_value(instance, y, {"C": solution.extra["chosen_C"]}, solution)


def majority_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Return the minimum over b of C sum of hinge: convex and piecewise linear, so at a kink."""
    return min(params["C"] * np.maximum(0, 1 - y * b).sum() for b in (-1.0, 1.0))


SVM_EXTREMES = ({"C_min": 1e-8, "C_max": 1e8}, {"C_num": 1})

CASES = [
    Case("majority", majority_optimum, svm_value, with_C, extremes=EXTREMES),
    Case(
        "best_single",
        best_single_optimum,
        svm_value,
        with_C,
        extremes=({"C": 1e-8}, {"C": 1e4}),  # at 1e8 scikit-learn's machine does not end
        folds=True,
        staged=True,
    ),
    Case(
        "svm",
        svm_optimum,
        chosen_value,
        svm_params,
        extremes=SVM_EXTREMES,
        folds=True,
        staged=True,
    ),
]
