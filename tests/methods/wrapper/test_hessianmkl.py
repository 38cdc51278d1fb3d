"""HessianMKL: few iterations, few products, and kernels without curvature."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel

from mkldist.bank.requests import Matvec, Quadratic
from mkldist.methods.registry import METHODS
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.references.simplex_svm import simplex_optimum

every_instance = pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)


def solve(name, grams, y, watch=None, **params):
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    return plain_bank.run(steps, grams, watch)


@every_instance
def test_a_few_newton_steps_suffice(make):
    instance = make()
    solution = solve("hessianmkl", instance.grams, instance.y, C=instance.C, tol=1e-8)
    assert solution.converged
    assert solution.counters.outer_iterations <= 12


def test_newton_needs_fewer_machines_than_gradients_and_cuts():
    instance = instances.more_kernels_than_points()
    machines = {
        name: solve(name, instance.grams, instance.y, C=instance.C, tol=1e-8).counters.svm_solves
        for name in ("hessianmkl", "simplemkl", "silp", "level")
    }
    assert 3 * machines["hessianmkl"] < min(machines["simplemkl"], machines["level"])
    assert machines["level"] < machines["silp"]


def test_as_printed_every_step_takes_all_kernels_and_is_newtons():
    instance, seen = instances.more_kernels_than_points(), []
    settings = {"C": instance.C, "tol": 1e-6, "acceleration": "none"}
    solution = solve(
        "hessianmkl", instance.grams, instance.y, lambda r, _: seen.append(r), **settings
    )
    products = [r for r in seen if isinstance(r, Matvec)]
    assert solution.converged
    assert len(products) == solution.counters.outer_iterations - 1  # all but the last, which stops
    assert all(len(r.kernels) == len(instance.grams) for r in products)


def test_an_iteration_takes_one_pass_and_its_products_visit_few_kernels():
    instance = instances.more_kernels_than_points()
    seen = []
    solution = solve(
        "hessianmkl",
        instance.grams,
        instance.y,
        lambda request, _: seen.append(request),
        C=instance.C,
        tol=1e-8,
    )
    products = [r for r in seen if isinstance(r, Matvec)]
    assert solution.counters.outer_iterations == sum(isinstance(r, Quadratic) for r in seen)
    assert min(len(r.kernels) for r in products) <= len(instance.grams) / 4
    assert len(products[-1].kernels) < len(instance.grams) / 3


@pytest.mark.parametrize("C", [1e-4, 1.0, 100.0, 1e4])
def test_kernels_of_rank_one_whose_machines_are_not_unique(C):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(50) < 25, 1.0, -1.0)
    x = rng.normal(size=(50, 12))
    x[:, 0] += 0.8 * y
    grams = np.array([linear_kernel(x[:, [j]]) for j in range(12)])
    grams /= np.trace(grams, axis1=1, axis2=2)[:, None, None]
    instance = instances.Instance("rank one", grams, y, C)
    solution = solve("hessianmkl", grams, y, C=C, tol=1e-8)
    assert solution.stop_reason is StopReason.CONVERGED
    expected = simplex_optimum(instance, y, {"C": C})
    assert solution.objective == pytest.approx(expected, rel=1e-6)


def test_points_of_both_classes_leave_no_margin():
    rng = np.random.default_rng(1)
    y = np.where(np.arange(40) < 20, 1.0, -1.0)
    x = rng.normal(size=(20, 3))
    x = np.vstack([x, x])
    grams = np.array([np.exp(-((x[:, None, j] - x[None, :, j]) ** 2) / 2) for j in range(3)])
    solution = solve("hessianmkl", grams, y, C=10.0, tol=1e-8)
    assert solution.converged
    assert solution.objective == pytest.approx(400.0)  # f = 0: every hinge is 1
