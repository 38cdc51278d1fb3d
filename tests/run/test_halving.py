"""The trials that go on to the next rung."""

from __future__ import annotations

import math

import pytest

from mkldist.run.rounds import survivors


@pytest.mark.parametrize(
    ("losses", "factor", "kept"),
    [
        ([0.3, 0.1, 0.2], 3, [1]),
        ([0.3, 0.1, 0.2, 0.1], 3, [1, 3]),
        ([0.2, 0.2, 0.2], 2, [0, 1]),
        ([math.inf, 0.9, math.inf], 1, [1]),
        ([math.inf, math.inf], 2, []),
    ],
)
def test_the_best_go_on(losses, factor, kept):
    assert survivors(dict(enumerate(losses)), factor) == kept
