"""Problems that methods refuse, with words for places that ask; and methods that take them."""

from __future__ import annotations

import pytest

from mkldist.core.arrays import Target
from mkldist.methods.registry import METHODS, methods_for
from mkldist.solvers.base import Part, ProblemFacts, one_of

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


ON_FACTORS = {
    "align", "alignf", "best_single", "easymkl", "elastmkl", "group_mkl", "hessianmkl", "level",
    "lp_mkl", "primalmkl", "silp", "simplemkl", "spicymkl", "svm", "uniform",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(METHODS))
def test_factors_are_for_methods_that_bound_the_optimum_with_the_kernels(name):
    refusal = METHODS[name].refuses(ProblemFacts(factors=True))
    if METHODS[name].exact_bound is not None:
        assert refusal is None
    else:
        assert (refusal.part, refusal.reason) == (Part.FACTORS, "needs whole Gram matrices")
    assert set(methods_for(ProblemFacts(factors=True))) == ON_FACTORS


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
