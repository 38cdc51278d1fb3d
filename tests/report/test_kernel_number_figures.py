"""Figures of the loss against numbers of kernels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mkldist.analysis import loss_by_bank_size
from mkldist.report.sweep_charts import bank_size_charts, kernel_number_charts
from tests.analysis.studies import N_KERNELS, study
from tests.report.studies import facts_of


def sized():
    """Return facts of a study over four sizes of a bank."""
    tree = study()
    for node in tree.leaves:
        parts = {name: ("split", np.full(node.sizes["split"], 50)) for name in
                 ("n_test", "n_unlabelled")}  # fmt: skip
        node.dataset = node.to_dataset().assign_coords(parts)
    return facts_of(tree)


def test_a_figure_of_active_kernels_draws_each_setting(finished):
    (chart,) = kernel_number_charts(finished)
    rows = finished.summary[finished.summary["active_mean"] > 0]
    pd.testing.assert_series_equal(
        chart.data.set_index(["method", "C"])["mean"].sort_index(),
        rows.set_index(["method", "C"])["test_error_mean"].sort_index(),
        check_names=False,
    )
    (axes,) = chart.draw().axes
    assert sum(len(marks.get_offsets()) for marks in axes.collections) == len(rows)


def test_a_bank_of_several_sizes_has_a_figure_of_candidates():
    facts = sized()
    (chart,) = bank_size_charts(facts)
    assert chart.name == "candidates-ring-gaussians"
    pd.testing.assert_frame_equal(chart.data, loss_by_bank_size(facts.tree))
    (axes,) = chart.draw().axes
    for line in axes.lines:
        assert line.get_xdata().tolist() == list(N_KERNELS)
        assert line.get_ydata() == pytest.approx(0.1)


def test_a_bank_of_one_size_has_none(finished):
    assert bank_size_charts(finished) == []
