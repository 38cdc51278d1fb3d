"""An explanation with numbers that tests know."""

from __future__ import annotations

import math
from typing import Any

from mkldist.analysis.explanation import Explanation, Grouping, Share
from mkldist.analysis.resampling import Interval
from tests.analysis.made_up_pairs import pair


def share(name: str | float, weight: float, decision: float = 0.5, sd: float = 0.02) -> Share:
    """Return a share of three kernels that half of the splits select."""
    return Share(name, 3, weight, sd, decision, sd, 0.5)


def explanation(**changes: Any) -> Explanation:
    """Return an explanation; fields as asked for."""
    stable = Interval(0.8, 0.76, 0.84)
    features = (share("age", 0.6, 0.3), share("a name of a feature that is very long", 0.4, 0.7))
    widths = (share(0.5, 0.05), share(1.0, 0.5), share(2.0, 0.3), share(4.0, 0.0))
    fields: dict[str, Any] = {
        "dataset": "heart",
        "bank": "xu2008",
        "method": "level",
        "task": "classification",
        "setting": {"C": [1.0, 10.0, 1.0]},
        "validated": True,
        "n_splits": 6,
        "n_kernels": 1000,
        "selected": 12.5,
        "always": 4,
        "stability": Interval(0.3, 0.2, 0.38),
        "groupings": (
            Grouping("features", features, stable),
            Grouping("width", widths, stable),
            Grouping("function", (share("gaussian", 0.85), share("linear", 0.15)), stable),
        ),
        "kernels": (share("gaussian(1)[age]", 0.4, math.nan),),
        "no_decision": "",
        "against_uniform": pair(0.2, 0.1, p_holm=0.3),
    }
    return Explanation(**(fields | changes))
