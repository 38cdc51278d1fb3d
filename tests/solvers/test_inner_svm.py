"""Inner machines: several classes are several machines, and warm starts save work."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.core.counters import Counters
from mkldist.solvers.svm import InnerSvm, solve_svm, sum_over_classes, train
from tests.methods import instances

C = 10.0


def labels() -> np.ndarray:
    """Labels of two classes, one column each, that share no relation."""
    y = instances.balanced().y
    return np.column_stack([y, np.roll(y, 7)])


def test_machines_of_classes_are_those_of_each_class_side_by_side():
    K, y, counters = instances.balanced().grams.mean(axis=0), labels(), Counters()
    joint = train(K, y, C, 1e-10, counters)
    alone = [solve_svm(K, np.ascontiguousarray(column), C, tol=1e-10) for column in y.T]
    assert joint.objective == pytest.approx(sum(svm.objective for svm in alone), rel=1e-9)
    assert joint.dual_objective <= joint.objective
    for c, svm in enumerate(alone):
        np.testing.assert_array_equal(joint.alpha[:, c], svm.alpha)
        assert joint.bias[c] == svm.bias
    assert counters.svm_solves == 2
    assert counters.svm_iterations == sum(svm.iterations for svm in alone)


def test_a_machine_starts_from_the_last_or_from_a_given_one():
    instance, counters = instances.unbalanced(), Counters()
    K = instance.grams.mean(axis=0)
    svm_at = InnerSvm(instance.y, 20.0, 1e-6, counters)
    first = svm_at(K)
    assert svm_at(K).iterations < 0.5 * first.iterations
    fresh = InnerSvm(instance.y, 20.0, 1e-6, counters)
    fresh.begin_at(first.alpha)
    assert fresh(K).iterations < 0.5 * first.iterations
    assert counters.svm_solves == 3


def test_machines_are_solved_to_a_share_of_the_tolerance_and_exactly_once_sharpened():
    instance = instances.unbalanced()
    K = instance.grams.mean(axis=0)
    svm_at = InnerSvm(instance.y, 20.0, 0.1, Counters())
    assert 1e-12 < svm_at(K).gap <= 0.05 * 0.1
    svm_at.sharpen()
    assert svm_at(K).gap < 1e-12


def test_forms_are_added_up_over_classes():
    q = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert sum_over_classes(q).tolist() == [3.0, 7.0]
    assert sum_over_classes(q[0]).tolist() == [1.0, 2.0]
