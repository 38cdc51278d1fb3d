"""Every function of the registry keeps its contract, the `definition`."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.kernel_functions import registry
from mkldist.kernel_functions.definition import KernelFunction, Parameter
from mkldist.kernel_functions.registry import FUNCTIONS
from tests.kernel_functions.points import points_of, settings_of, values

EACH = pytest.mark.parametrize(
    ("function", "settings"),
    [
        pytest.param(function, settings, id=function.head(*settings))
        for function in FUNCTIONS.values()
        for settings in settings_of(function)
    ],
)


@EACH
def test_gram_matrices_are_symmetric_and_positive_semi_definite(function, settings):
    for seed in range(5):
        points = points_of(function, 24, seed)
        gram = values(function, points, points, *settings, symmetric=True)
        np.testing.assert_array_equal(gram, gram.T)
        assert np.linalg.eigvalsh(gram).min() >= -1e-10 * np.trace(gram)


@EACH
def test_values_between_two_sets_are_a_part_of_the_gram_matrix(function, settings):
    points = points_of(function, 15)
    gram = values(function, points, points, *settings, symmetric=True)
    crossed = values(function, points[:9], points[4:], *settings)
    np.testing.assert_allclose(crossed, gram[:9, 4:], rtol=1e-12, atol=1e-14)


@EACH
def test_the_diagonal_is_that_of_the_gram_matrix(function, settings):
    points = points_of(function, 15)
    gram = values(function, points, points, *settings, symmetric=True)
    if function.diagonal is None:
        np.testing.assert_array_equal(np.diag(gram), 1.0)
    else:
        found = function.diagonal(points, *settings)
        np.testing.assert_allclose(found, np.diag(gram), rtol=1e-13)


def test_codes_are_those_of_banks_that_exist():
    assert {name: function.code for name, function in FUNCTIONS.items()} == {
        "gaussian": 0,
        "polynomial": 1,
        "linear": 2,
        "laplacian-rbf": 3,
        "matern": 4,
        "periodic": 5,
        "chi-squared": 6,
        "intersection": 7,
        "jaccard": 8,
        "tanimoto": 9,
        "categorical": 10,
        "spectrum": 11,
        "additive": 12,
    }
    assert {code: f.name for code, f in registry.BY_CODE.items()} == {
        function.code: name for name, function in FUNCTIONS.items()
    }


def test_a_key_of_sweep_files_means_one_parameter():
    for function in FUNCTIONS.values():
        assert len(function.parameters) <= 2
        for parameter in function.parameters:
            assert registry.PARAMETERS[parameter.key] is parameter


def test_names_leave_out_a_default_but_never_the_first_parameter():
    place = Parameter("place", "Places.", "count", default=1.0)
    function = KernelFunction("some", 199, "", lambda *_: None, parameters=(place, place))
    assert function.head(1.0, 1.0) == "some(1)"
    assert function.head(2.0, 3.0) == "some(2, place=3)"
    assert FUNCTIONS["linear"].head(1.0, 0.0) == "linear"
