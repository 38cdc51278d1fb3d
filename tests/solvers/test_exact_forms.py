"""Forms that rounding cannot break, and the best multiple of a dual point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mkldist.solvers.queries import best_multiple, largest_forms
from tests.methods import plain_bank


def test_forms_are_at_least_those_of_extended_precision():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(5, 40, 3))
    grams = roots @ roots.swapaxes(1, 2)
    vectors = rng.normal(size=(40, 4))
    for root in roots:  # near the null space the terms cancel
        vectors -= root @ np.linalg.lstsq(root, vectors, rcond=None)[0]
    found = plain_bank.run(largest_forms(vectors), grams)
    exact = np.einsum(
        "ir,mij,jr->mr", vectors, grams.astype(np.longdouble), vectors.astype(np.longdouble)
    )
    assert (found >= exact).all()
    assert (found <= exact + 1e-11).all()


@pytest.mark.parametrize(("height", "form"), [(2.0, 1.0), (2.0, 2.0), (2.0, 9.0), (2.0, 0.0)])
def test_no_multiple_has_a_greater_dual_value(height, form):
    best = minimize_scalar(
        lambda t: 0.5 * t**2 * form - t * height, bounds=(0, 1), method="bounded"
    )
    value, [t] = best_multiple(np.ones(1), height, form)
    assert value == pytest.approx(-best.fun, abs=1e-4)
    assert value >= -best.fun * (1 - 1e-12)
    assert value == t * height - 0.5 * t**2 * form


@pytest.mark.parametrize("form", [0.0, 1e-12, 1e-3])
def test_a_height_that_rounding_makes_negative_bounds_by_zero(form):
    assert best_multiple(np.ones(1), -1e-9, form).value == 0.0
