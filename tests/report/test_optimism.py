"""The optimism of selected settings on the page."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from mkldist.analysis.selection import selection_bias
from mkldist.report.optimism import bias_of_selection, optimism_charts, optimism_table
from mkldist.report.page import made_page
from tests.analysis import test_nested_validation
from tests.report.studies import facts_of

HEADINGS = ("method", "rule", "settings", "inner folds", "test part",
            "optimism (95 %)", "least test loss", "kernels")  # fmt: skip


def facts(task: str = "classification", **attributes: str):
    tree = test_nested_validation.tree(task, **attributes)
    tree.attrs.update(spec='{"name": "made-up"}', provenance="{}")
    return facts_of(tree)


def test_the_table_has_both_rules_with_their_interval():
    found = facts()
    table = optimism_table(bias_of_selection(found))
    assert table.headings == HEADINGS
    best, sparsest = [[cell.text for cell in row] for row in table.rows]
    (row, _) = selection_bias(found.tree).to_dict("records")
    ends = f"{100 * row['low']:.2f}, {100 * row['high']:.2f}"
    assert best == ["level", "least loss", "4", "16.67 %", "19.00 %", f"2.33 [{ends}]",
                    "19.00 %", "6.3"]  # fmt: skip
    assert sparsest[1] == "sparsest within 1 s.e."
    assert table.marks == [row["low"] > 0, False]


def test_losses_of_real_values_keep_their_units():
    (row,) = optimism_table(bias_of_selection(facts("regression"))).rows
    assert [cell.text for cell in row][3:5] == ["0.1667", "0.1900"]


def test_the_figure_draws_the_losses_of_the_table():
    found = facts()
    (chart,) = optimism_charts(bias_of_selection(found), found)
    row = chart.data.iloc[0]
    assert row["test"] - row["validation"] == pytest.approx(row["optimism"])
    axes = chart.draw().axes[0]
    drawn = np.unique([value for line in axes.lines for value in line.get_xdata()])
    assert drawn == pytest.approx(np.unique(row[["validation", "test", "least_test"]].tolist()))
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["level"]


@pytest.mark.parametrize("kind", ["no selection", "halving"])
def test_sweeps_that_select_in_no_split_have_no_such_section(kind):
    if kind == "halving":
        found = facts(rungs="tol")
    else:
        bare = facts().tree["d/level"].to_dataset().drop_vars("validation_error")
        found = facts_of(xr.DataTree.from_dict({"/d/level": bare}))
    optimism = bias_of_selection(found)
    assert optimism_table(optimism).rows == []
    assert optimism_charts(optimism, found) == []


def test_the_section_stands_before_the_paths(finished, monkeypatch):
    found = bias_of_selection(facts())
    monkeypatch.setattr("mkldist.report.page.bias_of_selection", lambda _: found)
    sections = {section.name: section for section in made_page(finished).sections}
    names = [*sections]
    assert names.index("optimism") == names.index("paths") - 1
    assert [table.name for table in sections["optimism"].tables] == ["optimism"]
    assert [chart.name for chart in sections["optimism"].charts] == ["optimism-d"]
