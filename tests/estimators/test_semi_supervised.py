"""SemiSupervisedMKLClassifier: few labels of any type, and a graph."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVC

from mkldist import SemiSupervisedMKLClassifier
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import learns_unlabelled

ABLE = [name for name, method in METHODS.items() if learns_unlabelled(method)]


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(160, noise=0.08, random_state=0)
    return X, y, np.where(np.arange(160) < 8, y, -1)


def test_rows_without_labels_help(moons):
    X, y, few = moons
    model = SemiSupervisedMKLClassifier().fit(X, few)
    supervised = SVC().fit(X[few >= 0], y[few >= 0])
    assert model.score(X, y) > supervised.score(X, y) + 0.05
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("method", ABLE)
def test_every_semi_supervised_method_learns(method, moons):
    X, y, few = moons
    model = SemiSupervisedMKLClassifier(method).fit(X, few)
    assert model.score(X, y) > 0.75
    assert len(model.kernel_weights_) == 7


def test_several_classes_of_text_keep_the_labels_given():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    few = names.copy()
    few[np.arange(150) % 10 != 0] = -1
    model = SemiSupervisedMKLClassifier().fit(X, few)
    assert model.decision_function(X).shape == (150, 3)
    assert (model.transduction_[::10] == names[::10]).all()
    assert (model.transduction_ == names).mean() > 0.85
    assert set(model.predict(X)) <= set(names)


def test_the_graph_is_that_of_a_sweep_file(moons):
    X, _, few = moons
    near = SemiSupervisedMKLClassifier(graph={"neighbours": 3, "weights": "heat"}).fit(X, few)
    other = SemiSupervisedMKLClassifier().fit(X, few)
    assert near.objective_ != pytest.approx(other.objective_, rel=1e-3)
    rls = [SemiSupervisedMKLClassifier("rls", gamma_i=g).fit(X, few) for g in (0.0, 1.0)]
    assert rls[0].objective_ == rls[1].objective_


@pytest.mark.parametrize("unlabelled", [["a", "b", -1], np.array(["a", "b", "-1"], dtype=object)])
def test_the_text_of_minus_one_is_no_class(unlabelled):
    with pytest.raises(ValueError, match=r"y\[2\]: found the text '-1' .* dtype=object"):
        SemiSupervisedMKLClassifier().fit(np.eye(3), unlabelled)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"graph": {"neighbors": 3}}, "graph.*neighbours"),
        ({"graph": 6}, r"graph: found 6; expected a dict, such as"),
        ({"method": "level"}, "'level', which learns two classes; expected a method that learns"),
    ],
)
def test_mistakes_are_told(settings, message, moons):
    X, _, few = moons
    with pytest.raises(ValueError, match=message):
        SemiSupervisedMKLClassifier(**settings).fit(X, few)


@pytest.mark.parametrize("labels", [-1, 0])
def test_labels_of_two_classes_are_needed(labels, moons):
    with pytest.raises(ValueError, match="expected two classes or more"):
        SemiSupervisedMKLClassifier().fit(moons[0], np.full(160, labels))


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.r_[np.ones(100, int), -np.ones(60, int)],
         "found one class, 1, and 60 unlabelled rows; expected two classes or more, and -1 for "
         "unlabelled rows alone. Write the classes as other labels, such as 0 and 1"),
        (np.r_[np.ones(159, int), -1], "found one class, 1, and 1 unlabelled row;"),
        (np.full(160, -1), "found no labels, and 160 unlabelled rows; expected two classes"),
        (np.full(160, "a"), "found one class, 'a', and 0 unlabelled rows; expected two classes"),
    ],
)  # fmt: skip
def test_labels_of_one_class_are_met_by_the_meaning_of_minus_one(labels, said, moons):
    with pytest.raises(ValueError, match=said):
        SemiSupervisedMKLClassifier().fit(moons[0], labels)
