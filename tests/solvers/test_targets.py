"""Labels that methods learn, by their losses."""

from __future__ import annotations

from typing import Literal

from mkldist.core.arrays import Target
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import choices, learns_unlabelled, losses_by_target


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
