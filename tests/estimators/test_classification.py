"""Classes that decision values predict, and their precedence in ties."""

import numpy as np
import pytest

from mkldist import MKLClassifier, SemiSupervisedMKLClassifier


@pytest.fixture(params=[MKLClassifier, SemiSupervisedMKLClassifier])
def classifier(request):
    return request.param()


def test_the_second_of_two_classes_has_positive_values_alone(classifier):
    numbers = classifier._learn_classes(np.array(["no", "yes", "no"]))
    assert numbers.tolist() == [0, 1, 0]
    predicted = classifier._classes_of(np.array([[-2.0], [0.0], [1e-300]]))
    assert predicted.tolist() == ["no", "no", "yes"]
    assert classifier._function_names is None


def test_ties_of_several_classes_go_to_the_most_frequent_one(classifier):
    classifier._learn_classes(np.array([7, 5, 7, 9, 9, 9]))
    values = [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 2.0, 2.0], [3.0, 2.0, 2.0]]
    assert classifier._classes_of(np.array(values)).tolist() == [9, 7, 9, 5]
    assert classifier._function_names == [5, 7, 9]


def test_decision_values_have_a_column_for_each_of_three_classes_and_none_for_two():
    X = np.random.default_rng(0).normal(size=(24, 2))
    two, three = X[:, 0] > 0.0, (X[:, :1] > [-0.4, 0.4]).sum(axis=1)
    for y, shape in ((two, (24,)), (three, (24, 3))):
        model = MKLClassifier(C=10.0).fit(X, y)
        values = model.decision_function(X)
        assert values.shape == shape
        best = values > 0.0 if values.ndim == 1 else values.argmax(axis=1)
        np.testing.assert_array_equal(model.predict(X), model.classes_[best.astype(int)])
