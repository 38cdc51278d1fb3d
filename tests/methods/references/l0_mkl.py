"""Hinge loss with at most k kernels: the least optimum of all supports of k kernels.

Every feasible alpha bounds the optimum on a support S from below by ``1'alpha - 1/2 max_{m in S}
q_m``.  Supports are solved by increasing bounds, and the alpha of each improves the bounds of the
others, until the least bound is no less than the least optimum found.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tests.methods.instances import Instance
from tests.methods.references import Case, Params, with_C
from tests.methods.references.simplex_svm import EXTREMES, simplex_point, svm_value

K = 2
EVERYTHING = 1000  # no fewer than the kernels of any instance
MILDER = ({"C": 1e-8}, {"C": 1e4})  # Clarabel fails on single pairs of kernels at C = 1e8


def best_support(instance: Instance, y: np.ndarray, params: Params) -> tuple[float, np.ndarray]:
    """Return the optimum over all supports, and one that attains it."""
    grams = instance.grams
    k = min(params["k"], len(grams))
    supports = np.array(list(itertools.combinations(range(len(grams)), k)))
    bounds = np.full(len(supports), -np.inf)
    least, best = np.inf, supports[0]
    while bounds.min() < least:
        i = int(bounds.argmin())
        part = Instance("part", grams[supports[i]], y, instance.C)
        optimum, alpha = simplex_point(part, y, params)
        if optimum < least:
            least, best = optimum, supports[i]
        q = np.einsum("i,mij,j->m", alpha * y, grams, alpha * y)
        bounds = np.maximum(bounds, alpha.sum() - 0.5 * q[supports].max(axis=1))
        bounds[i] = np.inf
    return least, best


def best_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    return best_support(instance, y, params)[0]


def _case(label: str, k: int, extremes: tuple[Params, ...], **about: Any) -> Case:
    return Case(
        "l0_mkl",
        best_optimum,
        svm_value,
        lambda instance: with_C(instance) | {"k": k},
        label=label,
        extremes=extremes,
        **about,
    )


CASES = [_case("all", EVERYTHING, EXTREMES), _case("two", K, MILDER, relaxed=True)]
