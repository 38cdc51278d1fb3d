"""The keys of `search`, and the mistakes that can be made with them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from mkldist.spec.model import Distribution, SearchSpec, is_distribution


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"low": 2.0, "high": 1.0}, "expected low < high"),
        ({"low": 0.0, "high": 1.0, "scale": "log"}, "expected low above 0"),
        ({"low": 0.0}, "high"),
        ({"low": 0.0, "high": 1.0, "step": 0.1}, "step"),
    ],
)
def test_a_distribution_that_is_none_is_refused(keys, said):
    with pytest.raises(ValidationError, match=said):
        Distribution(**keys)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"kind": "random", "batch": 4}, 'found batch with kind = "random"; expected kind = "ad'),
        ({"kind": "adaptive", "factor": 2}, 'expected kind = "halving", or no factor'),
        ({"kind": "halving", "trials": 1}, "expected at least 2"),
        ({"kind": "halving", "resource": "training-size", "first": 2.0}, "a share below 1"),
        ({"kind": "tpe"}, "'random', 'adaptive' or 'halving'"),
    ],
)
def test_a_key_without_effect_or_sense_is_refused(keys, said):
    with pytest.raises(ValidationError, match=said):
        SearchSpec(**{"trials": 9} | keys)


@pytest.mark.parametrize(
    ("value", "meant"),
    [({"low": 1}, True), ({"start": 1, "stop": 2, "num": 2}, False), ([1, 2], False), (1, False)],
)
def test_a_table_with_a_bound_is_meant_as_a_distribution(value, meant):
    assert is_distribution(value) == meant


def test_rungs_lie_along_a_dimension_of_their_own():
    assert SearchSpec(kind="random", trials=3).rung_dim is None
    assert SearchSpec(kind="halving", trials=3).rung_dim == "tol"
    sizes = SearchSpec(kind="halving", trials=3, resource="training-size")
    assert sizes.rung_dim == "training_fraction"
