"""Figures of learning curves."""

from __future__ import annotations

import pytest

from mkldist.report.sweep_charts import learning_charts
from tests.analysis.traced import learnt
from tests.report.studies import facts_of


def test_learning_curves_have_a_figure_for_a_data_set_of_several_sizes():
    losses = {50: 0.3, 100: 0.2, 200: 0.1}
    (chart,) = learning_charts(facts_of(learnt("level", losses)))
    assert chart.name == "learning-ring"
    assert chart.data["n_train"].tolist() == [50, 100, 200]
    assert chart.data["mean"].to_numpy() == pytest.approx([*losses.values()])
    assert "training points" in chart.svg()
