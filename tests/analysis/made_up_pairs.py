"""Comparisons of two methods with the numbers that a test asks for."""

from __future__ import annotations

import math
from typing import Any

from mkldist.analysis.comparison import Difference, PairComparison
from mkldist.analysis.statistics import Posterior


def pair(
    first: float = 0.1,
    second: float = 0.2,
    *,
    dataset: str = "heart",
    loss: str = "test_error",
    methods: tuple[str, str] = ("level", "uniform"),
    **changes: Any,
) -> PairComparison:
    """Return a comparison of two mean losses; other fields as asked for."""
    difference = first - second
    losses = Difference(first, second, difference, difference - 0.05, difference + 0.05)
    nothing = Difference(*(math.nan,) * 5)
    fields: dict[str, Any] = {
        "first_setting": {"C": 1.0},
        "second_setting": {"C": 10.0},
        "validated": (True, True),
        "n_splits": 5,
        "left_out": (0, 0),
        "losses": losses,
        "p_value": 0.01,
        "p_holm": 0.02,
        "rope": 0.01,
        "posterior": Posterior(0.97, 0.02, 0.01),
        "measures": dict.fromkeys(("active_kernels", "seconds", "gap"), nothing),
        "points": None,
        "equal_settings": None,
    }
    return PairComparison(dataset, *methods, loss, **(fields | changes))
