"""What `plan` says of data."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from mkldist.cli import command

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


def test_a_plan_begins_with_an_account_of_the_data(tmp_path: Path):
    rows = [f"{'' if i == 5 else i % 7},{i * i},{'ill' if i % 2 else 'well'}" for i in range(30)]
    (tmp_path / "patients.csv").write_text("\n".join(["age,dose,diagnosis", *rows]) + "\n")
    (tmp_path / "s.toml").write_text(SWEEP)
    done = CliRunner().invoke(command, ["plan", str(tmp_path / "s.toml")])
    assert done.output.splitlines()[:5] == [
        "patients: 30 rows, 2 features, classification",
        "  label:     column 'diagnosis', chosen by its name",
        "  classes:   ill (15 rows) is -1, well (15 rows) is +1",
        "  missing:   1 of 30 rows miss values in 1 column: filled with the mean of each training "
        "part",
        "",
    ]
