"""Segments between combined kernels: slopes by finite differences, and where a search ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mkldist.methods.weight_newton import Iterate, Segment
from mkldist.solvers.svm import SvmSolution, solve_svm
from tests.methods import instances

PRICE = 3.0
INSTANCE = instances.balanced()


def combined(d: np.ndarray) -> np.ndarray:
    return np.einsum("m,mij->ij", d, INSTANCE.grams)


def machine(K: np.ndarray) -> SvmSolution:
    return solve_svm(K, INSTANCE.y, 10.0, tol=1e-12)


def objective(d: np.ndarray) -> float:
    return machine(combined(d)).objective + PRICE * d.sum()


def segment(first: float = 0.1, size: float = 1.0) -> tuple[Segment, np.ndarray, np.ndarray]:
    """Return a segment that descends at its start, and its ends."""
    d, d_end = first * np.ones(7), size * np.random.default_rng(0).dirichlet(np.ones(7))
    start = Iterate.solved(d, combined(d), machine)
    return Segment(machine, start, d_end, combined(d_end), PRICE), d, d_end


@pytest.mark.parametrize("step", [0.0, 0.3, 1.0])
def test_a_trial_is_the_machine_on_the_weights_at_the_step(step):
    line, d, d_end = segment()
    trial = line.at(step)
    np.testing.assert_allclose(trial.d, d + step * (d_end - d), rtol=1e-12)
    np.testing.assert_allclose(trial.K, combined(trial.d), atol=1e-14)
    assert trial.svm.objective == pytest.approx(machine(trial.K).objective, rel=1e-10)
    assert line.objective(trial) == pytest.approx(objective(trial.d), rel=1e-10)


@pytest.mark.parametrize("step", [0.2, 0.7])
def test_slopes_are_those_of_finite_differences(step):
    line, d, d_end = segment()
    width = 1e-5
    after, before = (objective(d + s * (d_end - d)) for s in (step + width, step - width))
    assert line.slope_at(line.at(step)) == pytest.approx((after - before) / (2 * width), rel=1e-4)


@pytest.mark.parametrize(("first", "size", "full"), [(0.1, 1.0, True), (2.0, 60.0, False)])
def test_a_search_ends_near_the_minimum_of_the_line(first, size, full):
    line, d, d_end = segment(first, size)
    assert line.slope < 0
    found = line.search()
    assert (found.step == 1.0) == full
    assert full or abs(line.slope_at(found)) <= 0.5 * abs(line.slope)
    least = minimize_scalar(
        lambda s: objective(d + s * (d_end - d)), bounds=(0, 1), method="bounded"
    ).fun
    start = objective(d)
    assert start - line.objective(found) >= 0.5 * (start - least)


@pytest.mark.parametrize(("first", "size"), [(0.1, 1.0), (2.0, 60.0)])
def test_golden_section_ends_within_a_tenth_of_the_minimum_by_two_machines_a_step(first, size):
    line, d, d_end = segment(first, size)
    solved, end = [], combined(d_end)
    counting = Segment(
        lambda K: solved.append(K) or machine(K), line.at(0.0), d_end, end, PRICE, machine(end)
    )
    found = counting.golden_section()
    least = minimize_scalar(
        lambda s: objective(d + s * (d_end - d)), bounds=(0, 1), method="bounded"
    )
    assert abs(found.step - least.x) <= 0.1
    assert line.objective(found) <= min(objective(d), objective(d_end))
    narrowed = 0.5 * (5**0.5 - 1)  # the least that a step takes off
    assert len(solved) % 2 == 0
    assert len(solved) <= 2 * np.ceil(np.log(0.1) / np.log(narrowed))


def test_golden_section_stays_at_a_start_that_is_best():
    d = np.full(7, 1.0 / 7.0)
    start = Iterate.solved(d, combined(d), machine)
    dear = Segment(machine, start, 2.0 * d, combined(2.0 * d), multiplier=1e3)
    assert dear.slope > 0.0
    assert dear.golden_section().step == 0.0


@pytest.mark.parametrize("known", [True, False])
def test_the_machine_at_the_end_is_solved_once_at_most(known):
    line, _, d_end = segment()
    end, solved = combined(d_end), []
    counting = Segment(
        lambda K: solved.append(K) or machine(K),
        line.at(0.0),
        d_end,
        end,
        PRICE,
        machine(end) if known else None,
    )
    found = [counting.search(), counting.at(1.0)]
    assert [trial.step for trial in found] == [1.0, 1.0]
    assert len(solved) == (0 if known else 1)
