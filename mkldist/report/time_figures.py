"""Figures of time: growth with the sizes of a scaling study."""

from __future__ import annotations

from mkldist.report.charts import Chart
from mkldist.report.facts import Facts
from mkldist.report.loss_figures import MOST
from mkldist.report.scaling_figures import charts_of


def scaling_charts(facts: Facts) -> list[Chart]:
    """Return time against each size that grows in a sweep, and the parts of that time."""
    return [
        chart
        for growth in facts.growths
        if not growth.fits.empty
        for chart in charts_of(growth, facts.looks, MOST)
    ]
