"""A file of data that changes between two calls: what plan, sweep and status say."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from mkldist.cli.plan import command as plan
from mkldist.cli.status import command as status
from mkldist.cli.sweep import command as sweep
from mkldist.run.saved_inputs import FilesBefore
from mkldist.spec.load import load_sweep

SWEEP = """
name = "small"
[[datasets]]
name = "t"
file = "t.csv"
[splits]
train_fraction = 0.5
[[banks]]
kernels = [{ function = "linear" }]
[[methods]]
name = "uniform"
C = 1
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the table of a sweep in the folder of the commands."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i * 7 % 11},{'ab'[i % 2]}\n" for i in range(20))
    (tmp_path / "t.csv").write_text(f"x,label\n{rows}")
    (tmp_path / "small.toml").write_text(SWEEP)
    return tmp_path / "t.csv"


def said(command, *words: str) -> str:
    return CliRunner().invoke(command, words, catch_exceptions=False).output


def test_a_changed_file_is_named_with_what_becomes_of_the_runs(table: Path) -> None:
    said(sweep, "small.toml")
    assert "recorded:  1 of 1 run in" in said(plan, "small.toml")
    assert "t.csv" not in said(status, "small")
    before = table.read_text()
    table.write_text(before.replace("7,", "8,", 1))
    changed = f"{table} changed since this sweep read it on "
    told = said(plan, "small.toml")
    assert f"changed:   {changed}" in told
    assert "their records are kept, and count again if the old file comes back" in told
    assert f"{table} was written after this sweep read it on " in said(status, "small")
    told = said(sweep, "small.toml")
    assert changed in told
    assert "another sweep of the name" not in told
    assert "was written" not in said(status, "small")
    assert "changed:" not in said(plan, "small.toml")
    table.write_text(before)
    assert "changed:" not in said(plan, "small.toml")  # the old runs count again


def test_data_from_python_have_no_files(table: Path) -> None:
    spec = load_sweep(Path("small.toml"))
    assert FilesBefore.of(spec, (), table.parent, ["t"]).stamps == {}
    assert list(FilesBefore.of(spec, (), table.parent).stamps["t"]) == [str(table)]
