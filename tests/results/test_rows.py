"""One row per run."""

from __future__ import annotations

import pytest

import mkldist
from mkldist.errors import SpecError
from mkldist.results.layout import lay_out
from mkldist.results.rows import to_frame
from mkldist.results.tree import open_results
from tests.results.sweeps import made_up_facts, made_up_plan


def test_only_the_asked_columns_are_read(tmp_path):
    plan = made_up_plan()
    lay_out(tmp_path, plan, made_up_facts(plan))
    rows = to_frame(open_results(tmp_path), ("state", "gap"))
    assert list(rows.columns) == [
        "dataset", "bank", "method", "split", "n_kernels", "C", "variant", "state", "gap",
    ]  # fmt: skip
    assert len(rows) == len(plan.runs)


def test_places_without_a_run_have_no_row(tmp_path):
    grids = {"level": {"C": [0.1, 1.0, 100.0]}}
    plan = made_up_plan({"level": {"C": [0.1, 1.0]}}, n_splits=2)
    lay_out(tmp_path, plan, made_up_facts(plan, grids))
    rows = to_frame(open_results(tmp_path))
    assert set(rows.run_id) == {run.id for run in plan.runs}
    assert set(rows.C) == {0.1, 1.0}


@pytest.mark.parametrize("function", [mkldist.to_frame, mkldist.selected])
@pytest.mark.parametrize("tree", [5, None, "results/mine"])
def test_what_is_no_tree_is_refused(function, tree):
    with pytest.raises(
        SpecError, match=r"^tree: found .*; expected results.*mkldist\.open_results"
    ):
        function(tree)
