"""Weights of points, which multiply C: against a conic solver, scikit-learn and repeated points."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC

import mkldist
from mkldist.errors import GramError, SpecError
from mkldist.methods.registry import METHODS
from mkldist.methods.single_kernel import stratified_folds
from tests.methods import instances
from tests.methods.instances import solid_factors

ABLE = [name for name, method in METHODS.items() if method.weighs_points]
ON_SIMPLEX = ("level", "silp", "simplemkl", "hessianmkl", "group_mkl")
FIXED = ("uniform", "align", "alignf")  # kernel weights, whatever the weights of points
CHOSEN = ("best_single", "svm")  # one kernel, by cross-validation
ON_GRAPHS = ("lapmkl", "lapsvm", "laprls", "rls", "glks")
BLOCK_NORMS = {"spicymkl": "block1", "elastmkl": "elastic-net"}
TIGHT = {"C": 5.0, "tol": 1e-7}


@pytest.fixture(scope="module")
def instance():
    return instances.balanced()


@pytest.fixture(scope="module")
def weights(instance):
    return np.random.default_rng(3).uniform(0.1, 4.0, len(instance.y))


def conic_optimum(grams, y, C, q_bound):
    """Return max 1'a - t over ``0 <= a <= C``, ``y'a = 0``; `q_bound` bounds t by the q_m."""
    a, t = cp.Variable(len(y)), cp.Variable()
    q = [cp.sum_squares(root @ cp.multiply(y, a)) for root in solid_factors(grams)]
    constraints = [a >= 0, a <= C, y @ a == 0, *q_bound(q, t)]
    problem = cp.Problem(cp.Maximize(cp.sum(a) - 0.5 * t), constraints)
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9)


def test_the_methods_that_take_weights():
    listed = {*ON_SIMPLEX, "lp_mkl", *FIXED, *CHOSEN, "majority"}
    listed |= {"primalmkl", *ON_GRAPHS, *BLOCK_NORMS}
    assert set(ABLE) == listed, "name the method among those of its problem, above"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in ON_SIMPLEX]
    + [(name, {"acceleration": "none"}) for name in ("level", "silp")],
)
def test_bounds_enclose_the_conic_optimum(name, options, instance, weights):
    solution = mkldist.solve(name, instance.grams, instance.y, weights=weights, **TIGHT, **options)
    optimum = conic_optimum(
        instance.grams, instance.y, 5.0 * weights, lambda q, t: [one <= t for one in q]
    )
    assert solution.converged
    assert solution.objective == pytest.approx(optimum, rel=1e-6)
    assert solution.dual_objective == pytest.approx(optimum, rel=1e-6)
    assert (solution.dual_variables <= 5.0 * weights * (1 + 1e-12)).all()


def test_the_norm_method_meets_the_conic_optimum(instance, weights):
    solution = mkldist.solve("lp_mkl", instance.grams, instance.y, weights=weights, p=2.0, **TIGHT)
    optimum = conic_optimum(
        instance.grams,
        instance.y,
        5.0 * weights,
        lambda q, t: [cp.norm(cp.hstack(q), 2) <= t],  # the dual norm of p = 2
    )
    assert solution.objective == pytest.approx(optimum, rel=1e-6)
    assert solution.dual_objective <= optimum * (1 + 1e-7)


@pytest.mark.parametrize("name", FIXED)
def test_fixed_weights_give_the_machine_of_scikit_learn(name, instance, weights):
    solution = mkldist.solve(name, instance.grams, instance.y, weights=weights, **TIGHT)
    combined = np.einsum("m,mij->ij", solution.kernel_weights, instance.grams)
    svc = SVC(C=5.0, kernel="precomputed", tol=1e-8).fit(combined, instance.y, weights)
    np.testing.assert_allclose(
        solution.decision_function(instance.grams), svc.decision_function(combined), atol=1e-4
    )


@pytest.mark.parametrize("name", CHOSEN)
def test_the_kernel_is_chosen_by_weighted_errors_of_weighted_machines(name, instance, weights):
    y, options = instance.y, {"tol": 1e-7, "folds": 3}
    options |= {"C": 5.0} if name == "best_single" else {"C_min": 5.0, "C_num": 1}
    solution = mkldist.solve(name, instance.grams, y, weights=weights, **options)
    folds, errors = stratified_folds(y, 3), []
    for K in instance.grams:
        wrong = 0.0
        for held_out in folds:
            rest = ~held_out
            machine = SVC(C=5.0, kernel="precomputed", tol=1e-8)
            machine.fit(K[np.ix_(rest, rest)], y[rest], weights[rest])
            miss = machine.predict(K[np.ix_(held_out, rest)]) != y[held_out]
            wrong += weights[held_out][miss].sum()
        errors.append(wrong / weights.sum())
    chosen = int(np.flatnonzero(solution.kernel_weights)[0])
    assert solution.extra["cv_error"] == pytest.approx(min(errors))
    assert errors[chosen] == pytest.approx(min(errors))
    machine = SVC(C=5.0, kernel="precomputed", tol=1e-8).fit(instance.grams[chosen], y, weights)
    np.testing.assert_allclose(
        solution.decision_function(instance.grams),
        machine.decision_function(instance.grams[chosen]),
        atol=1e-4,
    )


def test_the_heavier_class_is_the_majority_and_of_equal_ones_that_of_more_points(instance):
    y = np.array([1.0, -1.0, -1.0, -1.0])
    grams = np.eye(4)[None]
    for weights, bias, value in (
        ([4.0, 1.0, 1.0, 1.0], 1.0, 6.0),
        ([2.0, 1.0, 1.0, 1.0], -1.0, 4.0),
        ([3.0, 1.0, 1.0, 1.0], -1.0, 6.0),
    ):
        found = mkldist.solve("majority", grams, y, weights=weights)
        assert found.bias == bias
        assert found.objective == found.dual_objective == value
        assert found.dual_variables.sum() == pytest.approx(value)
        assert (found.dual_variables <= weights).all()
        assert found.dual_variables @ y == pytest.approx(0.0)


@pytest.mark.parametrize("name", [*ON_SIMPLEX, "lp_mkl", "uniform", "majority"])
def test_a_whole_weight_is_a_point_repeated(name, instance):
    counts = np.random.default_rng(5).integers(1, 4, len(instance.y))
    rows = np.repeat(np.arange(len(counts)), counts)
    repeated = instance.grams[:, rows][:, :, rows]
    plain = mkldist.solve(name, repeated, instance.y[rows], **TIGHT)
    weighted = mkldist.solve(name, instance.grams, instance.y, weights=counts, **TIGHT)
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-6)


LOSSES = ("squared-hinge", "squared", "epsilon-squared", "one-class")
STEPS = (
    {"acceleration": "none"},
    {"inner": "pcg"},
    {"inner": "newton", "norm": 2.0},
    {"coupled": False},
    {"coupled": False, "machine": "one-step"},
)


@pytest.mark.parametrize("options", [*({"loss": loss} for loss in LOSSES), *STEPS], ids=str)
def test_so_it_is_for_squared_losses_of_every_kind_and_step(options, instance):
    loss = options.get("loss", "squared-hinge")
    y = np.ones(len(instance.y)) if loss == "one-class" else instance.y
    y = y * np.random.default_rng(2).uniform(1, 2, len(y)) if loss[-7:] == "squared" else y
    counts = np.random.default_rng(5).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(counts)), counts)
    settings = {"C": 1 / 0.3, "tol": 1e-7, **options}
    plain = mkldist.solve("primalmkl", instance.grams[:, rows][:, :, rows], y[rows], **settings)
    weighted = mkldist.solve("primalmkl", instance.grams, y, weights=counts, **settings)
    assert plain.converged
    assert weighted.converged
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-6)
    assert weighted.dual_objective == pytest.approx(plain.objective, rel=1e-6)
    np.testing.assert_allclose(weighted.kernel_weights, plain.kernel_weights, atol=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "epsilon"])
@pytest.mark.parametrize("name", BLOCK_NORMS)
def test_so_it_is_for_losses_with_block_norms(name, loss, instance):
    y = instance.y * np.random.default_rng(2).uniform(1, 2, len(instance.y))
    y = np.sign(y) if loss in ("logistic", "hinge") else y
    counts = np.random.default_rng(5).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(counts)), counts)
    settings = {"loss": loss, "C": 1.0, "tol": 1e-7, "regularizer": BLOCK_NORMS[name]}
    plain = mkldist.solve(name, instance.grams[:, rows][:, :, rows], y[rows], **settings)
    for acceleration in ("working-set", "none"):
        found = mkldist.solve(
            name, instance.grams, y, weights=counts, acceleration=acceleration, **settings
        )
        assert found.converged
        assert found.objective == pytest.approx(plain.objective, rel=1e-6)
        assert found.dual_objective == pytest.approx(plain.objective, rel=1e-6)


def test_weighted_logistic_regression_is_that_of_scikit_learn(weights, instance):
    X = np.random.default_rng(1).normal(size=(len(weights), 4))
    plain = LogisticRegression(C=1.0, tol=1e-12, max_iter=1000).fit(X, instance.y, weights)
    options = {"loss": "logistic", "regularizer": "elastic-net", "mix": 1.0, "C": 1.0}
    for name in BLOCK_NORMS:
        found = mkldist.solve(
            name, (X @ X.T)[None], instance.y, weights=weights, tol=1e-12, **options
        )
        np.testing.assert_allclose(found.coefficients @ X, plain.coef_[0], atol=1e-5)
        assert found.bias == pytest.approx(plain.intercept_[0], abs=1e-5)


def test_weighted_ridge_regression_is_that_of_scikit_learn(weights):
    X = np.random.default_rng(1).normal(size=(len(weights), 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 3.0 + np.random.default_rng(2).normal(size=len(X))
    ridge = Ridge(alpha=0.7, tol=1e-12).fit(X, y, sample_weight=weights)
    options = {"loss": "squared", "C": 1 / 0.7, "tol": 1e-10}
    found = mkldist.solve("primalmkl", (X @ X.T)[None], y, weights=weights, **options)
    np.testing.assert_allclose(found.coefficients @ X, ridge.coef_, atol=1e-6)
    assert found.bias == pytest.approx(ridge.intercept_, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in ON_GRAPHS]
    + [("lapmkl", {"form": "shared"}), ("lapmkl", {"coupled": False}), ("lapsvm", {"inner": "pcg"})]
    + [("rls", {"bias": False}), ("glks", {"bias": False}), ("glks", {"acceleration": "none"})],
    ids=str,
)
def test_a_labelled_point_on_a_graph_may_count_several_times(name, options, instance):
    """Its repetitions have its decision value, and no edges."""
    n = len(instance.y)
    y = np.where(np.arange(n) % 3 == 0, instance.y, 0.0)
    counts = np.where(y != 0.0, np.random.default_rng(5).integers(1, 4, n), 1)
    rows = np.concatenate([np.arange(n), np.repeat(np.arange(n), counts - 1)])
    L = np.zeros((len(rows), len(rows)))
    L[:n, :n] = np.diag(np.full(n, 1.0)) - 1.0 / n
    found = []
    for points, graph, weights in ((rows, L, None), (np.arange(n), L[:n, :n], counts)):
        settings = {"gamma_a": 0.1, "tol": 1e-6, "weights": weights, **options}
        settings |= {} if name == "rls" else {"gamma_i": 0.01, "laplacian": graph}
        grams = instance.grams[:, points][:, :, points]
        found.append(mkldist.solve(name, grams, y[points], **settings))
    plain, weighted = found
    assert weighted.converged
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-5)
    if not options.get("form"):
        assert weighted.dual_objective == pytest.approx(plain.objective, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["level", "silp"])
def test_a_path_carries_cuts_within_each_points_bound(name, instance, weights):
    path = mkldist.solve_path(
        name, instance.grams, instance.y, weights=weights, C=[50.0, 1.0, 5.0], tol=1e-7
    )
    for C, solution in zip((50.0, 1.0, 5.0), path, strict=True):
        alone = mkldist.solve(name, instance.grams, instance.y, weights=weights, C=C, tol=1e-7)
        assert solution.objective == pytest.approx(alone.objective, rel=1e-6)


@pytest.mark.parametrize("name", ["level", "simplemkl", "hessianmkl", "uniform"])
def test_classes_that_share_kernel_weights_share_the_points_weights(name, instance, weights):
    """Two columns of opposite labels are twice the problem of one."""
    columns = np.stack([instance.y, -instance.y], axis=1)
    one = mkldist.solve(name, instance.grams, instance.y, weights=weights, **TIGHT)
    both = mkldist.solve(name, instance.grams, columns, weights=weights, **TIGHT)
    assert both.objective == pytest.approx(2.0 * one.objective, rel=1e-6)


@pytest.mark.parametrize("name", sorted(set(METHODS) - set(ABLE)))
def test_other_methods_refuse_weights_and_name_those_that_take_them(name, instance):
    n = len(instance.y)
    options = {"laplacian": n * np.eye(n) - 1} if METHODS[name].needs_laplacian else {}
    with pytest.raises(SpecError, match=f"weights for {name}, which gives every point the same"):
        mkldist.solve(name, instance.grams, instance.y, weights=np.ones(n), **options)


@pytest.mark.parametrize(
    ("value", "message"),
    [(0.0, r"weights\[3\]: found 0"), (-1.0, r"weights\[3\]"), (np.nan, "found nan"),
     (1e200, "from 1e-100 to 1e\\+100")],
)  # fmt: skip
def test_weights_that_are_not_positive_or_overflow_are_refused(value, message, instance):
    weights = np.ones(len(instance.y))
    weights[3] = value
    with pytest.raises(GramError, match=message):
        mkldist.solve("level", instance.grams, instance.y, weights=weights)


@pytest.mark.filterwarnings("ignore::mkldist.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", ["level", "group_mkl"])
def test_bounds_hold_where_one_weight_hides_the_others(name, instance):
    weights = np.full(len(instance.y), 1e-12)
    weights[0] = 1e12
    solution = mkldist.solve(name, instance.grams, instance.y, weights=weights)
    one_side = weights[instance.y != instance.y[0]].sum()
    assert 0.0 <= solution.dual_objective <= 2.0 * one_side


def test_another_number_of_weights_is_refused(instance):
    with pytest.raises(GramError, match=r"weights: found shape \(3,\); expected \(60,\)"):
        mkldist.solve("level", instance.grams, instance.y, weights=[1, 2, 3])
