"""Solutions, methods and the arrays that solvers share."""

import math
import pickle
from typing import Literal

import numpy as np
import pytest

from mkldist.core.arrays import Target
from mkldist.core.memory import ProblemSize
from mkldist.methods.registry import METHODS, methods_for
from mkldist.solvers.base import (
    ArrayCache,
    Part,
    Problem,
    ProblemFacts,
    Solution,
    choices,
    learns_unlabelled,
    losses_by_target,
    most_points,
    one_of,
    proximity_of,
    reason_to_stop,
)
from mkldist.solvers.progress import StopReason
from mkldist.solvers.solver_params import SolverParams


@pytest.mark.parametrize(
    ("gap", "spent", "stalled", "reason"),
    [
        (0.1, 0.0, False, StopReason.CONVERGED),
        (0.1, 9.0, True, StopReason.CONVERGED),
        (0.2, 2.0, True, StopReason.TIME_LIMIT),
        (0.2, 0.0, True, StopReason.STALLED),
        (0.2, 0.0, False, None),
        (math.inf, 0.0, False, None),
    ],
)
def test_a_solver_stops_at_its_tolerance_then_its_time_then_where_it_stalls(
    gap, spent, stalled, reason
):
    problem = Problem(np.array([1.0, -1.0]), n_kernels=1)
    problem.clock.pause()
    problem.clock.charge(spent)
    params = SolverParams(tol=0.1, time_limit=2.0)
    assert reason_to_stop(problem, params, gap, stalled=stalled) is reason


def solution(**words):
    found = {
        "kernel_weights": np.array([0.0, 2.0, 0.5]),
        "coefficients": np.array([1.0, -1.0]),
        "bias": 0.25,
        "dual_variables": np.array([1.0, 1.0]),
        "objective": 10.0,
        "dual_objective": 9.5,
        "stop_reason": StopReason.CONVERGED,
    }
    return Solution(**found | words)


GRAMS = np.arange(18.0).reshape(3, 3, 2)


def test_a_solution_has_its_gap_and_its_kernels():
    found = solution()
    assert found.gap == pytest.approx(0.05)
    assert found.converged
    assert not solution(stop_reason=StopReason.MAX_ITER).converged
    assert found.active().tolist() == [1, 2]


def test_the_decision_function_is_the_weighted_sum_over_kernels():
    """``K[m, i, 0] - K[m, i, 1] = -1`` for all m and i, so that f = -(2 + 0.5) + 0.25."""
    np.testing.assert_allclose(solution().decision_function(GRAMS), [-2.25] * 3)


def test_every_kernel_may_have_coefficients_of_its_own():
    own = solution(kernel_coefficients=np.array([[1.0, 0.0], [0.0, 2.0]]))
    expected = 2.0 * GRAMS[1, :, 0] + 0.5 * 2.0 * GRAMS[2, :, 1] + 0.25
    np.testing.assert_allclose(own.decision_function(GRAMS), expected)


def test_columns_of_coefficients_are_functions_of_their_own():
    columns = solution(coefficients=np.array([[1.0, 0.0], [0.0, 1.0]]), bias=np.array([0.0, 1.0]))
    combined = 2.0 * GRAMS[1] + 0.5 * GRAMS[2]
    np.testing.assert_allclose(columns.decision_function(GRAMS), combined + np.array([0.0, 1.0]))


def test_a_path_begins_at_the_strongest_regularisation():
    level, primal = METHODS["level"], METHODS["primalmkl"]
    Cs = [level.params(C=C) for C in (10.0, 1.0, 100.0)]
    assert [p.C for p in level.along_path(Cs)] == [1.0, 10.0, 100.0]
    points = [primal.params(C=C) for C in (10.0, 1.0, 100.0)]
    assert [p.C for p in primal.along_path(points)] == [1.0, 10.0, 100.0]
    uniform = METHODS["uniform"]
    points = [uniform.params(C=C) for C in (10.0, 1.0)]
    assert uniform.along_path(points) == points


def test_a_method_takes_the_usual_passes_unless_it_says_otherwise():
    assert METHODS["level"].typical_passes(9) == METHODS["silp"].typical_passes(1000)
    assert METHODS["alignf"].typical_passes(1) < METHODS["alignf"].typical_passes(1000)


def test_an_array_is_made_once_and_nobody_changes_it():
    kept, made = ArrayCache(1000), []

    def make():
        made.append(None)
        return np.arange(3.0)

    first = kept.get("a", make)
    assert kept.get("a", make) is first
    assert len(made) == 1
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0


def test_another_process_begins_without_arrays():
    kept = ArrayCache(80)
    kept.get("a", lambda: np.zeros(10))
    other = pickle.loads(pickle.dumps(kept))
    assert other.known("a") is None
    other.get("a", lambda: np.ones(10))
    assert other.known("a").all()
    assert not kept.known("a").any()
    other.get("b", lambda: np.ones(10))
    assert other.known("a") is None


def test_those_used_last_stay_within_the_limit():
    kept = ArrayCache(2 * 80)
    for name in ("a", "b", "a", "c"):  # c makes b leave, for a was used after it
        kept.get(name, lambda: np.zeros(10))
    remade = []
    for name in ("a", "c", "b"):
        kept.get(name, lambda name=name: remade.append(name) or np.zeros(10))
    assert remade == ["b"]


def test_an_array_beyond_the_limit_is_made_and_not_kept():
    kept, made = ArrayCache(8), []
    for _ in range(2):
        assert kept.get("a", lambda: made.append(None) or np.ones(5)).sum() == 5.0
    assert len(made) == 2


def test_an_array_beyond_the_limit_displaces_no_other():
    kept, made = ArrayCache(80), []
    for size in (10, 11, 10):
        kept.get(size, lambda size=size: made.append(size) or np.zeros(size))
    assert made == [10, 11]


def test_solvers_on_other_kernels_share_arrays_and_their_limit():
    kept = ArrayCache(2 * 80)
    first, second = kept.on("first"), kept.on("second")
    assert (kept.kernels_id, first.kernels_id, second.kernels_id) == ("", "first", "second")
    made = first.get("a", lambda: np.zeros(10))
    assert second.get("a", lambda: np.ones(10)) is made
    for name in ("b", "c"):
        second.get(name, lambda: np.zeros(10))
    assert first.get("a", lambda: np.ones(10)).all()  # was forgotten


def solution_of_proximity(objective, bound, **extra):
    empty = np.zeros(1)
    return Solution(empty, empty, 0.0, empty, objective, bound, StopReason.CONVERGED, extra=extra)


def test_the_gap_of_several_solutions_is_that_of_their_sums():
    assert proximity_of([solution_of_proximity(2.0, 1.0), solution_of_proximity(8.0, 7.0)]) == {
        "gap": pytest.approx(0.2)
    }


def test_where_no_gap_is_known_it_is_the_largest_stationarity():
    some = [
        solution_of_proximity(2.0, 1.0, stationarity=0.1),
        solution_of_proximity(2.0, 1.0, stationarity=0.3),
    ]
    assert proximity_of(some) == {"stationarity": 0.3}


@pytest.mark.parametrize("name", ["level", "spicymkl"])
def test_the_most_points_are_those_that_memory_holds(name):
    method = METHODS[name]
    most = most_points(method, method.params(), 10, 2**30)
    needed = [method.memory(ProblemSize(n, 10, n), method.params()).needed
              for n in (most, most + 1)]  # fmt: skip
    assert needed[0] <= 2**30 < needed[1]
    assert most_points(method, method.params(), 10, 1) == 0


def test_a_loss_decides_what_a_method_learns():
    found = losses_by_target(METHODS["primalmkl"].params)
    assert found == {
        Target.CLASSES: ["squared-hinge"],
        Target.VALUES: ["squared", "epsilon-squared"],
        Target.ONE_CLASS: ["one-class"],
    }
    assert losses_by_target(METHODS["level"].params) == {Target.CLASSES: []}


def test_methods_on_graphs_and_their_baseline_learn_from_unlabelled_points():
    able = {name for name, method in METHODS.items() if learns_unlabelled(method)}
    on_graphs = {name for name, method in METHODS.items() if method.needs_laplacian}
    assert able == on_graphs | {"rls"}


def test_choices_are_the_texts_of_an_annotation():
    assert choices(Literal["a", "b"]) == ["a", "b"]
    assert choices(Literal["a", 1] | list[float] | None) == ["a"]
    assert choices(float) == []


# Problems that methods refuse, with words for places that ask; and methods that take them.


ON_GRAPHS = ["lapmkl", "lapsvm", "mklsvm", "lsvm", "glks", "laprls"]
OF_VALUES = ["spicymkl", "elastmkl", "primalmkl"]


@pytest.mark.parametrize("name", sorted(METHODS))
def test_facts_that_are_left_out_refuse_nothing(name):
    for target in (None, *Target):
        assert METHODS[name].refuses(ProblemFacts(), target) is None


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_laplacian_is_for_methods_on_graphs_alone(name):
    given, missing = (METHODS[name].refuses(ProblemFacts(laplacian=has)) for has in (True, False))
    if name in ON_GRAPHS:
        assert given is None
        assert (missing.part, missing.reason) == (Part.LAPLACIAN, "needs a graph")
        assert missing.expected == "a graph Laplacian of the points"
    else:
        assert missing is None
        assert (given.part, given.reason) == (Part.LAPLACIAN, "uses no graph")
        assert (given.expected, given.others) == ("none", "a method on graphs")


def test_methods_that_take_a_problem_are_those_that_refuse_nothing_of_it():
    values = ProblemFacts(targets=(Target.VALUES,))
    assert methods_for(ProblemFacts()) == list(METHODS)
    assert methods_for(ProblemFacts(laplacian=True)) == ON_GRAPHS
    assert methods_for(values) == OF_VALUES
    assert methods_for(ProblemFacts(laplacian=True, targets=(Target.VALUES,))) == []
    shared = methods_for(ProblemFacts(shared_weights=True))
    assert {"level", "lsvm"} <= set(shared)
    assert "gmkl" not in shared
    alone = methods_for(ProblemFacts(shared_weights=True, laplacian=False))
    assert alone == [name for name in shared if name not in ON_GRAPHS]


def test_classes_that_share_weights_are_refused_with_the_methods_that_take_them():
    refusal = METHODS["gmkl"].refuses(ProblemFacts(shared_weights=True))
    assert refusal.part is Part.CLASSES
    assert refusal.reason == "finds kernel weights for one class at a time"
    assert refusal.others == "a method whose classes can share kernel weights"


@pytest.mark.parametrize("name", sorted(METHODS))
def test_groups_are_for_methods_over_groups_alone(name):
    refusal = METHODS[name].refuses(ProblemFacts(grouped=True))
    if METHODS[name].takes_groups:
        assert refusal is None
    else:
        assert (refusal.part, refusal.reason) == (Part.GROUPS, "takes each kernel by itself")
    assert methods_for(ProblemFacts(grouped=True)) == ["group_mkl"]


@pytest.mark.parametrize("name", sorted(METHODS))
def test_factors_are_for_methods_that_bound_the_optimum_with_the_kernels(name):
    refusal = METHODS[name].refuses(ProblemFacts(factors=True))
    if METHODS[name].exact_bound is not None:
        assert refusal is None
    else:
        assert (refusal.part, refusal.reason) == (Part.FACTORS, "needs whole Gram matrices")
    assert (name in methods_for(ProblemFacts(factors=True))) == (refusal is None)


def test_labels_are_refused_by_what_a_loss_learns():
    method = METHODS["primalmkl"]
    targets = (Target.VALUES, Target.ONE_CLASS)
    for loss, learns in (("squared", None), ("one-class", None), ("squared-hinge", "two classes")):
        refusal = method.refuses(ProblemFacts(targets=targets), method.params(loss=loss).target)
        assert (refusal and refusal.reason) == (learns and f"learns {learns}")
    assert refusal.part is Part.LABELS
    assert refusal.expected == "both classes, as -1 and +1"
    assert refusal.others == "a method that learns real values or one class"


def test_a_choice_of_words():
    assert one_of(["a"]) == "a"
    assert one_of(["a", "b"]) == "a or b"
    assert one_of([]) == "none is registered"
