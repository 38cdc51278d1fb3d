"""Solutions against the numbers that ``golden.json`` keeps of earlier versions.

Perturbations of the kernels by rounding move these numbers as `ways` says; what another processor
or another library of linear algebra does is of that size.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.fit.golden import FILE, PROBLEMS, numbers
from tests.fit.ways import LOOSE, LOOSE_BOUNDS, assert_near

KEPT = json.loads(FILE.read_text("utf-8"))
RTOL = 1e-9


def test_every_problem_is_kept() -> None:
    assert list(KEPT) == list(PROBLEMS)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_solutions_are_those_of_before(name: str) -> None:
    method, find = PROBLEMS[name]
    found, expected = numbers(find()), KEPT[name]
    assert_near(found["bounds"], expected["bounds"], max(RTOL, LOOSE_BOUNDS.get(method, 0.0)))
    rtol, largest = max(RTOL, LOOSE.get(method, 0.0)), expected["largest_value"]
    for key in ("bias", "values"):
        assert_near(found[key], expected[key], rtol, largest)
    for key in ("active_kernels", "positive"):
        np.testing.assert_array_equal(found[key], expected[key])
