"""Commands on results that leave out recorded runs: one line to standard error."""

from __future__ import annotations

from pathlib import Path

import pytest

from mkldist.cli.options import tell_left_out
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


@pytest.mark.parametrize("others", [0, 3])
def test_runs_outside_the_plan_are_told_once_a_folder(tmp_path: Path, capsys, others):
    plan, store = made_up_plan(), Journal(tmp_path / "records.journal")
    lay_out(tmp_path, plan, made_up_facts(plan))
    for run in [*plan.runs[:2], *made_up_plan(datasets=["wdbc"]).runs[:others]]:
        store.append([made_up_record(run)])
    tell_left_out(tmp_path, tmp_path)
    out, said = capsys.readouterr()
    assert (out, said.count("3 more runs are recorded")) == ("", int(others > 0))
