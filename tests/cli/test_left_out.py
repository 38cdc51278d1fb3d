"""Commands on results that lack recorded runs: one line to standard error."""

from __future__ import annotations

from pathlib import Path

import pytest

from mkldist.cli.left_out import tell_left_out
from mkldist.results.records import RecordStore
from mkldist.results.tree import prepare
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


@pytest.mark.parametrize("later", [0, 3])
def test_runs_that_the_results_lack_are_told_once_a_folder(tmp_path: Path, capsys, later):
    plan, store = made_up_plan(), RecordStore(tmp_path / "records")
    prepare(tmp_path / "results.zarr", plan, made_up_facts(plan), store)
    for run in plan.runs[:later]:
        store.write(made_up_record(run))
    tell_left_out(tmp_path, tmp_path)
    said = f"{tmp_path}: 3 runs were recorded after the results were last written.\n"
    assert capsys.readouterr() == ("", said if later else "")
