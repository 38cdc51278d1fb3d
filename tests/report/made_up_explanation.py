"""An explanation with numbers that tests know."""

from __future__ import annotations

import math
from typing import Any

from mkldist.analysis.explanation import Explanation, Share
from mkldist.analysis.statistics import Interval
from mkldist.core.metrics import METRICS
from tests.analysis.made_up_pairs import pair

NAN = math.nan
NOTHING = Interval(NAN, NAN, NAN)


def around(mean: float, half: float = 0.02) -> Interval:
    """Return a mean and its interval."""
    return Interval(mean, mean - half, mean + half)


def share(level: str, name: str | float, weight: float, decision: float, rank: int = 1) -> Share:
    """Return a share of three kernels that half of the splits select."""
    return Share(
        level, name, 3, rank, around(decision), around(weight), around(0.05), around(0.5), 0.1, 0.04
    )


def explanation(**changes: Any) -> Explanation:
    """Return an explanation; fields as asked for."""
    stable = Interval(0.8, 0.76, 0.84)
    fields: dict[str, Any] = {
        "dataset": "heart",
        "bank": "xu2008",
        "method": "level",
        "task": "classification",
        "metric": METRICS["error"],
        "setting": {"C": [1.0, 10.0, 1.0]},
        "validated": True,
        "n_splits": 6,
        "n_kernels": 1000,
        "selected": 12.5,
        "always": 4,
        "stability": {"kernel": Interval(0.3, 0.2, 0.38), "feature": stable},
        "shares": (
            share("view", "clinic", 0.2, 0.6),
            share("view", "rna", 0.8, 0.4, rank=2),
            share("feature", "a name of a feature that is very long", 0.4, 0.7),
            share("feature", "age", 0.6, 0.3, rank=2),
            share("kernel", "gaussian(1)[age]", 0.4, 0.3),
        ),
        "no_decision": "",
        "normalised": True,
        "n_permutations": 0,
        "seconds": 1.5,
        "against_uniform": pair(0.2, 0.1, p_holm=0.3),
    }
    return Explanation(**(fields | changes))
