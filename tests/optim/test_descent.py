"""Line searches and limited-memory BFGS directions."""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq

from mkldist.optim.descent import LimitedMemory, root_of_slope

SLOPES = {
    "line": lambda t: 3.0 * t - 2.0,
    "exponential": lambda t: np.exp(4.0 * t) - 9.0,
    "kink": lambda t: -1.0 if t < 0.37 else 50.0 * (t - 0.37) + 1e-9,
    "flat": lambda t: (t - 0.5) ** 5,
}


@pytest.mark.parametrize("name", ["line", "exponential", "flat"])
@pytest.mark.parametrize("options", [{}, {"first": 1.0}, {"known_end": True}])
def test_a_small_share_gives_the_root(name, options):
    slope_at, share = SLOPES[name], 1e-12
    end = {"end_slope": slope_at(1.0)} if options.get("known_end") else {}
    first = {"first": options["first"]} if "first" in options else {}
    step = root_of_slope(slope_at, slope_at(0.0), 1.0, share=share, **end, **first)
    assert abs(slope_at(step)) <= share * abs(slope_at(0.0))
    if name != "flat":
        assert step == pytest.approx(brentq(slope_at, 0.0, 1.0), abs=1e-9)


def test_a_kink_is_bracketed():
    slope_at = SLOPES["kink"]
    assert root_of_slope(slope_at, -1.0, 1.0) == pytest.approx(0.37, abs=1e-2)


def test_a_slope_that_stays_negative_goes_to_the_end():
    tried = []

    def slope_at(t: float) -> float:
        tried.append(t)
        return -1.0 / (1.0 + t)

    assert root_of_slope(slope_at, -1.0, 50.0) == 50.0
    assert len(tried) < 10


def test_the_search_stops_at_the_share_asked_for():
    tried = []

    def slope_at(t: float) -> float:
        tried.append(t)
        return np.exp(t) - 20.0

    step = root_of_slope(slope_at, slope_at(0.0), 10.0, share=0.5)
    assert 0.0 < step <= 10.0
    assert abs(np.exp(step) - 20.0) <= 0.5 * 19.0
    assert abs(slope_at(tried[-2])) > 0.5 * 19.0


def dense_bfgs(pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the inverse Hessian of Nocedal & Wright, Eqs. (7.19) and (7.20), as a matrix."""
    s, c = pairs[-1]
    H = (s @ c) / (c @ c) * np.eye(len(s))
    for s, c in pairs:
        rho = 1.0 / (s @ c)
        V = np.eye(len(s)) - rho * np.outer(c, s)
        H = V.T @ H @ V + rho * np.outer(s, s)
    return H


def quadratic(size: int, seed: int) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    return root @ root.T + np.eye(size), rng


@pytest.mark.parametrize("memory", [2, 20])
def test_direction_is_that_of_the_dense_formula(memory):
    A, rng = quadratic(6, 0)
    points = rng.normal(size=(5, 6))
    known = LimitedMemory(memory)
    for x in points:
        known.observe(x, A @ x)
    pairs = [(y - x, A @ (y - x)) for x, y in itertools.pairwise(points)][-memory:]
    gradient = rng.normal(size=6)
    found = known.direction(gradient, np.ones(6, dtype=bool))
    np.testing.assert_allclose(found, -dense_bfgs(pairs) @ gradient, rtol=1e-9)


def test_fixed_coordinates_stay_and_take_no_part():
    A, rng = quadratic(6, 1)
    free = np.array([True, False, True, True, False, True])
    points, known = rng.normal(size=(4, 6)), LimitedMemory()
    inner = LimitedMemory()
    # The free block of a diagonal Hessian is that of a problem in the free coordinates alone.
    curvature = np.diagonal(A)
    for x in points:
        known.observe(x, curvature * x)
        inner.observe(x[free], (curvature * x)[free])
    gradient = rng.normal(size=6)
    found = known.direction(gradient, free)
    assert not found[~free].any()
    np.testing.assert_allclose(
        found[free], inner.direction(gradient[free], np.ones(4, dtype=bool)), rtol=1e-9
    )


def test_without_curvature_no_direction_is_known():
    known, free = LimitedMemory(), np.ones(3, dtype=bool)
    gradient = np.array([1.0, -2.0, 0.5])
    assert known.direction(gradient, free) is None
    known.observe(np.zeros(3), gradient)
    known.observe(np.ones(3), gradient)  # the gradient has not changed
    assert known.direction(gradient, free) is None
    known.observe(np.zeros(3), gradient - 1.0)
    assert known.direction(gradient, free) @ gradient < 0
    known.forget()
    assert known.direction(gradient, free) is None
