"""Objectives along a hyperparameter, against means of the tidy table of runs."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.analysis import objective_path
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
from mkldist.results.rows import to_frame
from mkldist.results.tree import open_results
from tests.results.sweeps import GRIDS, made_up_facts, made_up_plan, made_up_record


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paths")
    plan, store = made_up_plan(), Journal(folder / "records.journal")
    for number, run in enumerate(plan.runs):
        record = made_up_record(run)
        store.append([RunRecord.failed(run, "broken") if number == 0 else record])
    lay_out(folder, plan, made_up_facts(plan, GRIDS))
    return open_results(folder)


def test_objectives_are_those_of_the_setting_of_least_mean_loss(tree):
    runs = to_frame(tree)
    runs = runs[runs["state"] == "complete"]
    table = objective_path(tree).set_index(["method", "C"])
    assert set(table.index.get_level_values("method")) == {"level", "simplemkl"}
    for (method, C), row in table.iterrows():
        own = runs[(runs["method"] == method) & (runs["C"] == C)]
        by_variant = (
            own.groupby(own["variant"].fillna("")) if method == "simplemkl" else [("", own)]
        )
        best = min((some for _, some in by_variant), key=lambda some: some["test_error"].mean())
        assert row["loss"] == pytest.approx(best["test_error"].mean())
        assert row["objective"] == pytest.approx(best["objective"].mean())
        assert row["objective_sd"] == pytest.approx(np.std(best["objective"], ddof=1))
        assert row["lower_bound"] == pytest.approx(best["dual_objective"].mean())
        assert row["n_splits"] == len(best)


def test_methods_without_the_hyperparameter_have_no_row(tree):
    assert objective_path(tree, "lam").empty
