"""Bounds on a working set against sums over all kernels, written out."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.core.counters import Counters
from mkldist.methods.machine_bounds import NO_CUTS, MachineCuts, WeightedMachine, WrapperBounds
from mkldist.methods.reduced_gradient import RestrictedBound
from mkldist.methods.simplemkl import SimpleMKLParams
from mkldist.solvers.svm import DualRounding, SvmSolution
from mkldist.solvers.working_set import FIRST_KERNELS, WorkingSet
from tests.methods import plain_bank

M, N, TOL = 90, 12, 0.01
RNG = np.random.default_rng(0)
Y = np.where(np.arange(N) % 3 == 0, 1.0, -1.0)
HALVES = RNG.normal(size=(M, N, 3))
GRAMS = HALVES @ HALVES.transpose(0, 2, 1)
RIDGES = RNG.uniform(0.0, 0.5, size=M)
RIDGED = GRAMS + RIDGES[:, None, None] * np.eye(N)


def forms(alpha: np.ndarray) -> np.ndarray:
    return np.einsum("i,mij,j->m", alpha * Y, RIDGED, alpha * Y)


def machine(seed: int) -> SvmSolution:
    """Any dual point, with rounding that can be seen."""
    rng = np.random.default_rng(seed)
    alpha = 0.01 * rng.uniform(size=N) * (rng.random(N) < 0.3)
    rounding = DualRounding(of_form=1e-3, of_sums=1e-4)
    return SvmSolution(alpha, alpha * Y, 0.0, 1.0, 0.0, 0, 0, rounding)


def begun(everything: bool = False) -> tuple[RestrictedBound, WorkingSet, WrapperBounds]:
    problem, kernels = plain_bank.problem(GRAMS, Y), WorkingSet(M, everything=everything)
    bounds = WrapperBounds(problem, SimpleMKLParams(C=1.0), Counters())
    restricted = RestrictedBound(Y, TOL, kernels, RIDGES, bounds)
    plain_bank.run(restricted.first_kernels(), GRAMS)
    return restricted, kernels, bounds


def improved(restricted: RestrictedBound, kernels: WorkingSet, svm: SvmSolution) -> np.ndarray:
    q = plain_bank.run(kernels.quadratic(svm.signed), GRAMS)
    largest = restricted.largest_forms(svm, q)
    restricted.improve(svm, largest, NO_CUTS)
    return largest


def test_the_first_kernels_have_the_largest_forms_where_classes_weigh_the_same():
    _, kernels, _ = begun()
    alpha = np.where(Y > 0, 1.0 / (Y > 0).sum(), 1.0 / (Y < 0).sum())
    order = np.argsort(-forms(alpha))
    assert kernels.kernels.tolist() == order[:FIRST_KERNELS].tolist()


def test_a_pass_bounds_the_optimum_over_all_kernels_and_takes_those_of_larger_forms():
    restricted, kernels, bounds = begun()
    svm = machine(4)  # whose largest form is that of a kernel outside
    q = improved(restricted, kernels, svm)
    exact = forms(svm.alpha) + svm.rounding.of_form
    np.testing.assert_allclose(q, exact[kernels.kernels])
    assert restricted.lower == pytest.approx(svm.height - 0.5 * q.max())
    bounds.improve_upper(WeightedMachine(np.zeros(M), svm), 1.0)
    first = set(kernels.kernels.tolist())
    of_newcomers = plain_bank.run(restricted.visit_all(svm, MachineCuts(len(kernels))), GRAMS)
    joined = kernels.kernels[len(first) :]
    larger = {m for m in range(M) if exact[m] > q.max()} - first
    assert larger
    assert set(joined.tolist()) <= larger
    np.testing.assert_allclose(of_newcomers, exact[joined])
    assert bounds.lower == pytest.approx(max(0.0, svm.height - 0.5 * exact.max()))
    assert restricted.lower == bounds.lower  # of the larger set, no more is known


def test_cuts_take_the_kernels_that_join():
    restricted, kernels, bounds = begun()
    cuts, points = MachineCuts(len(kernels)), [machine(seed) for seed in (4, 5)]
    for svm in points:
        cuts.add(svm, improved(restricted, kernels, svm))
    bounds.improve_upper(WeightedMachine(np.zeros(M), points[-1]), 1.0)
    plain_bank.run(restricted.visit_all(points[-1], cuts), GRAMS)
    assert len(kernels) > FIRST_KERNELS
    for row, svm in zip(cuts.planes.payoff, points, strict=True):
        exact = svm.height - 0.5 * (forms(svm.alpha) + svm.rounding.of_form)
        np.testing.assert_allclose(row, exact[kernels.kernels])


def test_nothing_joins_within_the_tolerance():
    restricted, kernels, bounds = begun()
    svm = machine(3)
    improved(restricted, kernels, svm)
    exact = svm.height - 0.5 * (forms(svm.alpha) + svm.rounding.of_form).max()
    bounds.improve_upper(WeightedMachine(np.zeros(M), svm), exact + 0.5 * TOL * abs(exact))
    assert not len(plain_bank.run(restricted.visit_all(svm, MachineCuts(len(kernels))), GRAMS))
    assert len(kernels) == FIRST_KERNELS


def test_a_pass_is_due_once_the_gap_of_the_working_set_is_a_share_of_that_of_the_last():
    restricted, kernels, bounds = begun()
    svm = machine(1)
    improved(restricted, kernels, svm)
    bounds.improve_upper(WeightedMachine(np.zeros(M), svm), 10.0)
    assert restricted.is_due  # the first is due at once
    plain_bank.run(restricted.visit_all(svm, MachineCuts(len(kernels))), GRAMS)
    assert not restricted.is_due


def test_of_all_kernels_every_bound_holds_and_no_pass_is_due():
    restricted, kernels, bounds = begun(everything=True)
    svm = machine(1)
    q = improved(restricted, kernels, svm)
    np.testing.assert_allclose(q, forms(svm.alpha) + svm.rounding.of_form)
    assert bounds.lower == restricted.lower == pytest.approx(svm.height - 0.5 * q.max())
    assert not restricted.is_due
