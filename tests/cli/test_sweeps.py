"""What `plan` says of data."""

import re
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from mkldist.cli import command
from mkldist.cli.sweeps import status_command
from mkldist.errors import InputError
from mkldist.results.folder import claimed
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

SWEEP = """
name = "s"
[[datasets]]
name = "patients"
file = "patients.csv"
impute = "mean"
[[banks]]
family = "do2009"
[[methods]]
name = "level"
"""


def test_a_plan_begins_with_an_account_of_the_data(tmp_path):
    rows = [f"{'' if i == 5 else i % 7},{i * i},{'ill' if i % 2 else 'well'}" for i in range(30)]
    (tmp_path / "patients.csv").write_text("\n".join(["age,dose,diagnosis", *rows]) + "\n")
    (tmp_path / "s.toml").write_text(SWEEP)
    done = CliRunner().invoke(command, ["plan", str(tmp_path / "s.toml")])
    assert done.output.splitlines()[:6] == [
        "patients: 30 rows, 2 features, classification",
        "  label:     column 'diagnosis', chosen by its name",
        "  classes:   ill (15 rows) is -1, well (15 rows) is +1",
        "  positive:  well: sensitivity, F1 and average precision are of it",
        "  missing:   1 of 30 rows miss values in 1 column: filled with the mean of each training "
        "part",
        "",
    ]


def said_of(folder: Path) -> str:
    return CliRunner().invoke(status_command, [str(folder)], catch_exceptions=False).output


def test_a_folder_without_a_layout_is_told(tmp_path):
    store = Journal(tmp_path / "records.journal")
    with claimed(tmp_path, "made-up"):
        assert "; there is no tree.layout yet\n" in said_of(tmp_path)
    assert "stopped; there is no tree.layout yet; the same mkldist sweep" in said_of(tmp_path)
    for run in made_up_plan().runs[:3]:
        store.append([made_up_record(run)])
    said = said_of(tmp_path)
    assert "there is no tree.layout, though 3 runs are recorded; the same mkldist sweep" in said
    assert "every run has an outcome" not in said


def test_a_pipe_gets_a_line_for_each_change_until_the_sweep_ends(tmp_path, monkeypatch):
    plan, store = made_up_plan(), Journal(tmp_path / "records.journal")
    runs, looks = iter(plan.runs), []
    with ExitStack() as claims:
        claims.enter_context(claimed(tmp_path, "made-up"))
        lay_out(tmp_path, plan, made_up_facts(plan))

        def sleep(seconds):
            looks.append(seconds)
            if len(looks) == 5:
                claims.close()
            elif len(looks) % 2:
                store.append([made_up_record(next(runs))])

        monkeypatch.setattr(time, "sleep", sleep)
        words = [str(tmp_path), "--watch", "--every", "0.5"]
        said = CliRunner().invoke(status_command, words, catch_exceptions=False).output
    assert looks == [0.5] * 5
    lines = [line for line in said.splitlines() if " made-up: " in line]
    assert [re.search(r"(\d+) of \d+ runs complete", line)[1] for line in lines] == ["0", "1", "2"]
    assert "stopped with" in said  # the whole status comes last


def test_ctrl_c_ends_the_look_alone(tmp_path, monkeypatch):
    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    with claimed(tmp_path, "made-up"):
        done = CliRunner().invoke(
            status_command, [str(tmp_path), "--watch"], catch_exceptions=False
        )
        assert (done.exit_code, "at work" in done.output) == (0, True)
        with pytest.raises(InputError):
            CliRunner().invoke(
                status_command, [str(tmp_path), "--watch", "--json"], catch_exceptions=False
            )
