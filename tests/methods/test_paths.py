"""Paths of decreasing regularisation: the same certified optima, in few passes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.svm import SVC

import mkldist
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from tests.benchmarks import problems
from tests.methods import instances
from tests.solvers.test_working_set import random_instance
from tests.variants import quick

VALUES = {
    "level": np.geomspace(1, 1000, 13),
    "silp": np.geomspace(1, 1000, 13),
    "group_mkl": np.geomspace(1, 1000, 13),
    "spicymkl": np.geomspace(2, 200, 13),
    "elastmkl": np.geomspace(2, 200, 13),
    "primalmkl": np.geomspace(1, 1000, 13),
}
COLD, WARM = 12, 3  # passes


def along(name: str, grams: np.ndarray, y: np.ndarray, values, **params) -> list:
    return mkldist.solve_path(name, grams, y, C=list(values), **params)


@cache
def solved_alone(name: str, make, value: float):
    """Return the solution of an instance at one value of the path, found without a path."""
    instance = make()
    return mkldist.solve(name, instance.grams, instance.y, tol=1e-8, max_iter=5000, C=value)


def test_every_method_with_a_path_is_tested():
    assert set(VALUES) == {name for name, method in METHODS.items() if method.has_path}


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
def test_a_path_takes_few_passes(name):
    grams, y = problems.grams(None), problems.xu2008(None).y
    path = along(name, grams, y, VALUES[name], tol=0.01)
    passes = [s.counters.passes + s.extra.get("partial_passes", 0) for s in path]
    assert all(solution.converged for solution in path)
    assert passes[0] <= COLD
    assert sum(passes[1:]) <= WARM * len(passes[1:])
    assert max(passes) <= COLD
    alone = mkldist.solve(name, grams, y, tol=0.01, C=float(VALUES[name][-1]))
    assert alone.counters.passes <= COLD
    assert alone.dual_objective <= path[-1].objective
    assert path[-1].dual_objective <= alone.objective


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("acceleration", quick(["working-set", "none"]))
@pytest.mark.parametrize("make", quick([instances.balanced, instances.more_kernels_than_points]))
def test_a_path_has_the_optima_of_its_points(name, acceleration, make):
    instance, values = make(), VALUES[name][[6, 0, 12, 3]]
    settings = {"acceleration": acceleration, "max_iter": 5000}
    path = along(name, instance.grams, instance.y, values, tol=1e-6, **settings)
    for value, solution in zip(values, path, strict=True):
        assert solution.converged
        assert solution.state is None
        alone = solved_alone(name, make, float(value))
        assert solution.objective == pytest.approx(alone.objective, rel=2e-6)
        slack = 1e-9 * abs(alone.objective)
        assert solution.dual_objective <= alone.objective + slack
        assert alone.dual_objective <= solution.objective + slack


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spicymkl", "elastmkl", "primalmkl"])
def test_without_acceleration_too_a_path_goes_on_from_its_last_solution(name):
    instance = instances.more_kernels_than_points()
    values = np.geomspace(VALUES[name][4], VALUES[name][8], 9)
    settings = {"acceleration": "none", "tol": 1e-4}
    path = along(name, instance.grams, instance.y, values, **settings)
    alone = [
        mkldist.solve(name, instance.grams, instance.y, C=float(value), **settings)
        for value in values
    ]
    assert all(solution.converged for solution in [*path, *alone])
    warm, cold = (sum(one.counters.newton_steps for one in found[1:]) for found in (path, alone))
    assert warm < 0.8 * cold


@pytest.mark.parametrize("name", ["silp", "level"])
def test_a_leap_of_the_value_along_a_path_is_no_stall(name):
    x, flat = np.random.default_rng(3).normal(size=(16, 2)), np.ones((16, 16))
    distances = ((x[:, None] - x) ** 2).sum(axis=2)
    grams = np.array([flat + 1e-9 * np.eye(16), np.exp(-1e-6 * distances), np.exp(-distances / 2)])
    y = np.where(np.arange(16) % 3, 1.0, -1.0)
    path = along(name, grams, y, [1.0, 1e5], tol=1e-6)
    assert path[1].objective > 50 * path[0].objective
    assert [solution.stop_reason.value for solution in path] == ["converged", "converged"]
    machine = SVC(C=1e5, kernel="precomputed", tol=1e-10).fit(grams[2], y)
    signed = np.zeros(16)
    signed[machine.support_] = machine.dual_coef_[0]
    optimum = np.abs(signed).sum() - 0.5 * signed @ grams[2] @ signed
    assert path[1].kernel_weights[2] == pytest.approx(1.0)
    assert path[1].dual_objective == pytest.approx(optimum, rel=1e-5)


@pytest.mark.slow
def test_hinge_and_several_classes_have_paths_too():
    grams, y = random_instance(3)
    hinge = along("spicymkl", grams, y, VALUES["spicymkl"], loss="hinge", tol=1e-4)
    assert all(solution.converged for solution in hinge)
    columns = np.stack([y, np.roll(y, 3), np.where(np.arange(len(y)) < 9, 1.0, -1.0)], axis=1)
    several = along("level", grams, columns, [1.0, 10.0, 100.0], tol=1e-4)
    for C, solution in zip([1.0, 10.0, 100.0], several, strict=True):
        alone = mkldist.solve("level", grams, columns, C=C, tol=1e-6)
        assert solution.objective == pytest.approx(alone.objective, rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spicymkl", "primalmkl"])
def test_kernels_screened_along_a_path_have_no_weight(name):
    grams, y = random_instance(4)
    values = VALUES[name][:8]
    path = along(name, grams, y, values, tol=1e-7)
    screened = [int(solution.extra["screened"]) for solution in path]
    assert max(screened) > 0
    for value, solution, count in zip(values, path, screened, strict=True):
        plain = mkldist.solve(name, grams, y, tol=1e-9, acceleration="none", C=float(value))
        assert count <= (plain.kernel_weights < 1e-6).sum()
        assert solution.objective == pytest.approx(plain.objective, rel=2e-7)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("simplemkl", {"C": [1.0]}, r"found simplemkl.*level"),
        ("level", {"C": 1.0}, r"level\.C: found 1\.0; expected a list of numbers"),
        ("level", {}, r"level\.C: found none"),
        ("primalmkl", {"C": [1.0, -1.0]}, r"primalmkl\.C"),
        ("levle", {"C": [1.0]}, r"level"),
    ],
)
def test_what_cannot_be_a_path_is_refused_by_name(name, params, message):
    grams, y = random_instance(5)
    with pytest.raises(SpecError, match=message):
        mkldist.solve_path(name, grams, y, **params)
