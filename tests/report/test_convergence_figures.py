"""Figures of the convergence of traced runs."""

from __future__ import annotations

import pytest

from mkldist.report.sweep_charts import convergence_charts
from tests.analysis.traced import traced
from tests.report.studies import facts_of


def test_convergence_is_drawn_against_passes_and_seconds():
    tree = traced({"level": [([1.0, 0.1], [1, 2], [0.5, 1.0])]})
    charts = convergence_charts(facts_of(tree))
    assert [chart.name for chart in charts] == [
        "convergence-passes-ring",
        "convergence-seconds-ring",
    ]
    for chart in charts:
        assert chart.data["gap"].iloc[-1] == pytest.approx(0.1)
        assert "relative duality gap" in chart.svg()
