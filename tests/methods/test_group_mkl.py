"""MKL over groups: the norms of its problem, its limits, and where its groups come from."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import mkldist
from mkldist.bank.requests import Combine, Quadratic
from mkldist.errors import GramError, SpecError
from mkldist.methods.registry import METHODS
from tests.methods import instances, plain_bank
from tests.methods.instances import factors
from tests.methods.references.recorded import optimum_of
from tests.methods.references.simplex_svm import CASES, group_norm_value, groups_of

TOL = 1e-8


VIEWS = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}


@pytest.fixture(scope="module")
def points():
    X = np.random.default_rng(0).normal(size=(60, 6))
    return X, np.sign(X[:, 0] * X[:, 1] + X[:, 2])


@pytest.fixture(scope="module")
def bank(points):
    gaussians = {"function": "gaussian", "widths": [0.5, 1, 2], "features": ["a", "b", "c"]}
    return mkldist.KernelBank(points[0], [gaussians], groups=VIEWS, normalisation="trace")


def primal_optimum(grams, y, C, groups, p):
    """Minimise over vectors w_m of all kernels the norms as the method's docstring states them."""
    w = [cp.Variable(root.shape[0]) for root in factors(grams)]
    b, s = cp.Variable(), [np.sqrt((groups == g).sum()) for g in set(groups)]
    f = sum(root.T @ part for root, part in zip(factors(grams), w, strict=True)) + b
    lengths = cp.hstack(
        [
            s_g * cp.norm(cp.hstack([w[m] for m in np.flatnonzero(groups == g)]))
            for g, s_g in zip(set(groups), s, strict=True)
        ]
    )
    r = 2 * p / (p + 1)
    norm = cp.norm1(lengths) if p == 1 else cp.pnorm(lengths, r)
    problem = cp.Problem(cp.Minimize(C * cp.sum(cp.pos(1 - cp.multiply(y, f))) + 0.5 * norm**2))
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_the_optimum_is_that_of_the_group_norms_over_functions(p):
    instance = instances.not_normalised()
    groups, y = np.array([0, 1, 0, 1]), instance.y
    found = mkldist.solve("group_mkl", instance.grams, y, C=1.0, p=p, tol=TOL, groups=groups)
    assert found.objective == pytest.approx(primal_optimum(instance.grams, y, 1.0, groups, p), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES if c.method == "group_mkl"], ids=str)
@pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)
def test_the_returned_functions_attain_the_optimum_in_group_norms(case, make):
    instance = make()
    params = case.params(instance)
    groups = groups_of(len(instance.grams))
    found = mkldist.solve("group_mkl", instance.grams, instance.y, groups=groups, tol=TOL, **params)
    value = group_norm_value(instance, instance.y, params, found)
    assert value == pytest.approx(optimum_of(str(case), make), rel=1e-6)
    assert value <= found.objective * (1 + 1e-12)


@pytest.mark.slow
def test_groups_of_one_kernel_are_the_problems_of_level_and_lp_mkl():
    instance = instances.balanced()
    for p, method, more in ((1.0, "level", {}), (2.0, "lp_mkl", {"p": 2.0})):
        other = mkldist.solve(method, instance.grams, instance.y, C=10.0, tol=TOL, **more)
        found = mkldist.solve("group_mkl", instance.grams, instance.y, C=10.0, tol=TOL, p=p)
        assert found.objective == pytest.approx(other.objective, rel=2 * TOL)
        np.testing.assert_allclose(found.kernel_weights, other.kernel_weights, atol=1e-3)


def test_one_group_is_the_mean_kernel():
    instance = instances.balanced()
    found = mkldist.solve("group_mkl", instance.grams, instance.y, C=10.0, groups=[0] * 7, tol=TOL)
    mean = mkldist.solve("uniform", instance.grams, instance.y, C=10.0, tol=TOL)
    assert found.objective == pytest.approx(mean.objective, rel=2 * TOL)
    np.testing.assert_allclose(found.kernel_weights, 1 / 7)


def test_whole_groups_are_selected_and_counted(points, bank):
    found = mkldist.solve("group_mkl", bank, points[1], C=1.0, tol=1e-6, trace=True)
    weights = found.kernel_weights.reshape(3, 3)  # by view
    assert (weights == weights[:, :1]).all()
    assert (
        0
        < (weights[:, 0] > 0).sum()
        == found.extra["active_groups"]
        < found.extra["kernel_groups"]
        == 3
    )
    assert weights.sum() == pytest.approx(1.0)
    last = {name: column[-1] for name, column in found.trace.items()}
    assert last["active_kernels"] == 3 * found.extra["active_groups"]
    assert last["largest_kernels"].shape == (5,)
    assert last["largest_weights"][0] == pytest.approx(weights.max(), rel=0.1)


def test_kernels_on_the_same_features_form_a_group_unless_others_are_given(points, bank):
    X, y = points
    assert bank.groups.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert bank[[8, 0, 7]].groups.tolist()[0] == bank[[8, 0, 7]].groups.tolist()[2]
    own = mkldist.solve("group_mkl", bank, y, tol=TOL)
    named = mkldist.solve("group_mkl", bank, y, tol=TOL, groups=[*"aaabbbccc"])
    assert named.objective == own.objective
    apart = mkldist.solve("group_mkl", bank, y, tol=TOL, groups=[None] * 9)
    assert apart.objective == pytest.approx(
        mkldist.solve("level", bank, y, tol=TOL).objective, rel=2 * TOL
    )
    assert apart.objective < own.objective
    assert own.decision_function(bank.on(X)).shape == y.shape


def test_a_path_starts_each_solution_from_the_last(points, bank):
    path = mkldist.solve_path("group_mkl", bank, points[1], C=[1.0, 4.0, 16.0], tol=TOL)
    for C, found in zip((1.0, 4.0, 16.0), path, strict=True):
        alone = mkldist.solve("group_mkl", bank, points[1], C=C, tol=TOL)
        assert found.objective == pytest.approx(alone.objective, rel=2 * TOL)


def test_no_group_is_visited_by_itself_but_for_those_at_work():
    # 60 groups of 3: the working set starts from 20, and passes certify the others.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 60))
    y = np.sign(X[:, 0] + 0.5 * X[:, 7])
    grams = np.array([np.exp(-s * np.subtract.outer(x, x) ** 2) for x in X.T for s in (0.1, 1, 5)])
    groups, seen = np.repeat(np.arange(60), 3), []
    params = METHODS["group_mkl"].params(C=1.0, tol=1e-4)
    steps = METHODS["group_mkl"].solve(plain_bank.problem(grams, y, groups=groups), params)
    found = plain_bank.run(steps, grams, lambda request, _: seen.append(request))
    assert found.converged
    passes = [r for r in seen if isinstance(r, Quadratic) and r.kernels is None]
    assert 2 <= len(passes) < 0.5 * found.counters.outer_iterations
    named = [r.kernels for r in seen if isinstance(r, Combine)]
    assert all(kernels is not None and len(kernels) < len(grams) for kernels in named)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a"] * 3, "groups: found 3 for 4 kernels; expected 4 names or numbers, one a kernel"),
        ("abcd", "groups: found 'abcd'; expected 4 names or numbers, one a kernel"),
        (4, "groups: found 4; expected 4 names or numbers, one a kernel"),
        ([0, 1.5, 0, 0], r"groups\[1\]: found 1.5; expected a name, a number or None"),
        ([0, 1, ["a"], 0], r"groups\[2\]: found \['a'\]; expected a name, a number or None"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(groups, message):
    instance = instances.not_normalised()
    with pytest.raises(GramError, match=message):
        mkldist.solve("group_mkl", instance.grams, instance.y, groups=groups)


def test_methods_without_groups_name_those_that_take_them():
    instance = instances.not_normalised()
    message = "groups for level, which takes each kernel by itself; expected none, .*: group_mkl"
    with pytest.raises(SpecError, match=message):
        mkldist.solve("level", instance.grams, instance.y, groups=[0, 0, 1, 1])
