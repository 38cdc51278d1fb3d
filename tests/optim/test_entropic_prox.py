"""Proximal points of the entropy against scalar searches and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import xlogy

from mkldist.optim.entropic_prox import entropic_prox, two_sided_entropic_prox

CENTRES = np.array([-40.0, -1.3, -0.2, -1e-9, 0.0, 1e-12, 0.3, 0.5, 0.999, 1.0, 1.7, 1e3])


def negative_entropy(t):
    return xlogy(t, t) + xlogy(1 - t, 1 - t)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 50.0, 1e5])
def test_one_sided_points_minimise_and_move_as_said(gamma):
    found = entropic_prox(CENTRES, gamma)
    for p, t in zip(CENTRES, found.points, strict=True):
        search = minimize_scalar(
            lambda t, p=p: negative_entropy(t) + 0.5 * gamma * (t - p) ** 2,
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-12},
        )
        value = negative_entropy(t) + 0.5 * gamma * (t - p) ** 2
        assert value <= search.fun + 1e-12 * abs(search.fun)
    assert found.value == pytest.approx(negative_entropy(found.points).sum(), abs=1e-12)
    moved = (
        entropic_prox(CENTRES + 1e-6, gamma).points - entropic_prox(CENTRES - 1e-6, gamma).points
    )
    np.testing.assert_allclose(found.slopes, moved / 2e-6, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("gamma", [1e-2, 1.0, 50.0])
@pytest.mark.parametrize("width", [0.0, 0.4, 8.0])
def test_two_sided_points_minimise_and_move_as_said(gamma, width):
    def value(ab, p):
        a, b = ab
        return float(
            negative_entropy(a)
            + negative_entropy(b)
            + width * (a + b)
            + 0.5 * gamma * (a - b - p) ** 2
        )

    centres = np.array([-3.0, -1.0, -0.2, 0.0, 0.1, 0.7, 1.5])
    total = 0.0
    for p in centres:
        found = two_sided_entropic_prox(np.array([p]), gamma, width)
        search = minimize(value, (0.5, 0.5), args=(p,), bounds=[(1e-14, 1 - 1e-14)] * 2, tol=1e-15)
        quadratic = 0.5 * gamma * (found.points[0] - p) ** 2
        assert found.value + quadratic == pytest.approx(search.fun, rel=1e-7, abs=1e-7)
        assert found.points[0] == pytest.approx(search.x[0] - search.x[1], abs=1e-4)
        total += found.value
    found = two_sided_entropic_prox(centres, gamma, width)
    assert found.value == pytest.approx(total)
    up = two_sided_entropic_prox(centres + 1e-6, gamma, width).points
    down = two_sided_entropic_prox(centres - 1e-6, gamma, width).points
    np.testing.assert_allclose(found.slopes, (up - down) / 2e-6, rtol=1e-4, atol=1e-8)


def test_digits_survive_where_the_linear_term_is_steep():
    # a - b is known: gamma (p - t) = width + logit(t) up to what b adds, exp(-2 width).
    gamma, width, t = 1e11, 3e5, np.array([1e-3, 0.2, 0.7])
    centres = t + (width + np.log(t / (1 - t))) / gamma
    found = two_sided_entropic_prox(centres, gamma, width)
    np.testing.assert_allclose(found.points, t, rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.5, 1e5])
def test_gaps_are_distances_of_the_centres(gamma):
    one, two = entropic_prox(CENTRES, gamma), two_sided_entropic_prox(CENTRES, gamma, 0.4)
    for found in (one, two):
        np.testing.assert_allclose(found.gaps, CENTRES - found.points, rtol=1e-9, atol=1e-13)


def test_gaps_keep_their_digits_where_points_are_as_near_as_floats_tell():
    centres, gamma, width = np.array([1e-9, 7e-4, 0.3, 0.5, 0.999]), 1e28, 60.0
    logits = np.log(centres) - np.log1p(-centres)
    one, two = entropic_prox(centres, gamma), two_sided_entropic_prox(-centres, gamma, width)
    np.testing.assert_allclose(gamma * one.gaps, logits, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gamma * two.gaps, -(logits + width), rtol=1e-12)
