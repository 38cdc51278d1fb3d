"""Points up to which memory holds the matrices of a solver, by what the solver says it needs."""

from __future__ import annotations

import pytest

from mkldist.core.memory import ProblemSize
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import most_points


@pytest.mark.parametrize("name", ["level", "spicymkl"])
def test_the_most_points_are_those_that_memory_holds(name):
    method = METHODS[name]
    most = most_points(method, method.params(), 10, 2**30)
    needed = [method.memory(ProblemSize(n, 10, n), method.params()).needed
              for n in (most, most + 1)]  # fmt: skip
    assert needed[0] <= 2**30 < needed[1]
    assert most_points(method, method.params(), 10, 1) == 0
