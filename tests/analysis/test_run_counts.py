"""Runs by state, in made-up results."""

from __future__ import annotations

from dataclasses import replace

from mkldist.analysis.summary import results_table, run_counts
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
from mkldist.results.tree import open_results
from mkldist.spec.model import SelectionSpec
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


def test_all_runs_are_counted_by_state_also_where_a_table_shows_the_selected(tmp_path):
    made = made_up_plan(n_splits=3)
    plan = replace(made, spec=made.spec.model_copy(update={"selection": SelectionSpec()}))
    store = Journal(tmp_path / "records.journal")
    for run in plan.runs[:4]:
        record = made_up_record(run)
        store.append([replace(record, scores=record.scores | {"validation_error": 0.1})])
    store.append([RunRecord.failed(plan.runs[4], "no memory")])
    lay_out(tmp_path, plan, made_up_facts(plan))
    tree = open_results(tmp_path)
    assert run_counts(tree) == (4, 1, len(plan.runs) - 5)
    table = results_table(tree)
    assert table.counts == run_counts(tree)
    assert len(table.summary) < len(plan.runs)
