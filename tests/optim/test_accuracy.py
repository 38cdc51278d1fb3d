"""Relative gaps, and the rounding of quadratic forms against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

from mkldist.bank.bank import MemoryBank
from mkldist.bank.passes import answer
from mkldist.bank.products import ENTRIES
from mkldist.bank.requests import Quadratic
from mkldist.optim.accuracy import ADDED_AT_ONCE, form_rounding, relative_gap
from tests.variants import quick


@pytest.mark.parametrize(
    ("primal", "dual", "gap"),
    [
        (4.0, 3.0, 0.25),
        (3.0, 4.0, 1 / 3),  # bounds that cross
        (-2.0, -3.0, 0.5),
        (0.0, 0.0, 0.0),
        (1.0, -math.inf, math.inf),  # no lower bound yet
        (math.inf, math.inf, math.inf),  # overflow bounds nothing
        (math.nan, 1.0, math.inf),
    ],
)
def test_gap_is_relative_to_the_primal_value(primal, dual, gap):
    assert relative_gap(primal, dual) == pytest.approx(gap)


def test_no_tolerance_accepts_the_gap_before_the_first_predictor():
    assert not relative_gap(math.inf, 1.0) <= 1e9


def test_a_primal_value_of_zero_leaves_any_other_bound_far_away():
    assert relative_gap(0.0, -1e-9) > 1e200


def exact_form(K: np.ndarray, v: np.ndarray) -> Fraction:
    exact = np.vectorize(lambda number: Fraction(float(number)), otypes=[object])
    return exact(v) @ (exact(K) @ exact(v))


def vectors(K: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    n = len(K)
    return {
        "near the null space": np.linalg.eigh(K)[1][:, 0],
        "of both signs": 1e3 * rng.choice([-1.0, 1.0], n),
        "positive": rng.random(n),
        "equal": np.full(n, 0.1),
        "zero": np.zeros(n),
    }


@pytest.mark.parametrize("n", quick([2, 12, 60, 150], 3))
@pytest.mark.parametrize("width", [0.3, 1.0, 3.0, 30.0, 1e3])
def test_forms_of_gaussian_kernels_differ_from_exact_ones_by_less(n, width):
    x = np.random.default_rng(n).normal(size=(n, 3))
    K = np.exp(-((x[:, None] - x) ** 2).sum(2) / (2 * width**2))
    bank = MemoryBank.from_grams(K[None])
    for name, v in vectors(K).items():
        exact, most = exact_form(K, v), None
        of_pass, of_one = answer(bank, [Quadratic(v), Quadratic(v, np.zeros(1, dtype=np.intp))])
        for form in (float(v @ (K @ v)), float(of_pass[0]), float(of_one[0])):
            most = form_rounding(form, float(np.diagonal(K) @ v**2), n)
            assert abs(Fraction(form) - exact) <= Fraction(most), name
    assert most == 0.0  # of the zero vector


@pytest.mark.parametrize("n", [300, 1000, 2000])
@pytest.mark.parametrize("value", [0.1, 0.3, 1.0 / 3.0])
def test_forms_of_equal_terms_differ_from_exact_ones_by_less(n, value):
    bank, v = MemoryBank.from_grams(np.ones((1, n, n))), np.full(n, value)
    first, exact = np.zeros(1, dtype=np.intp), (n * Fraction(value)) ** 2
    for found in answer(bank, [Quadratic(v), Quadratic(v, first), Quadratic(v[:, None], first)]):
        form = float(found.item())
        most = form_rounding(form, float(v @ v), n)
        assert abs(Fraction(form) - exact) <= Fraction(most)


def test_the_bound_counts_all_additions_of_a_pass():
    assert ADDED_AT_ONCE <= ENTRIES


def test_forms_of_several_kernels_have_their_own_rounding():
    forms, energies = np.array([1.0, 0.0]), np.array([2.0, 1e12])
    found = form_rounding(forms, energies, 9)
    assert found.tolist() == [form_rounding(1.0, 2.0, 9), form_rounding(0.0, 1e12, 9)]
    assert found[1] > 1e11 * found[0]
