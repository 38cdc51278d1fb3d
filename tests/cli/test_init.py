"""The command that writes a first sweep: what it asks, writes, prints and refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mkldist.cli import init
from mkldist.cli.init import command
from mkldist.errors import MkldistError
from mkldist.spec.load import load_sweep


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """Return the folder of the command, with a table in a folder beside it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "work").mkdir()
    rows = "\n".join(f"{i},{i * 7 % 11},{'ill' if i % 2 else 'well'}" for i in range(40))
    (tmp_path / "data" / "my heart.csv").write_text(f"no,pulse,state\n{rows}\n")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def run_init(*words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(command, words, input=typed, catch_exceptions=False)


def test_it_writes_a_sweep_and_prints_its_plan(here):
    done = run_init("../data/my heart.csv", "--label", "state")
    assert done.exit_code == 0
    assert done.output.startswith("wrote my_heart.toml; its plan:\n")
    assert "my_heart: 50 runs in 5 batches" in done.output
    assert "left out:  'no' (names the rows)" in done.output
    assert done.output.endswith("mkldist sweep my_heart.toml runs it\n")
    (dataset,) = load_sweep(Path("my_heart.toml")).datasets
    assert (dataset.file, dataset.label, dataset.id) == ("../data/my heart.csv", "state", "no")
    assert [path.name for path in here.iterdir()] == ["my_heart.toml"]


def test_the_file_may_lie_elsewhere_and_is_not_replaced_unasked(here):
    words = ("../data/my heart.csv", "--label", "state", "--to", "../data/first.toml")
    assert "50 runs" in run_init(*words).output
    assert load_sweep(Path("../data/first.toml")).datasets[0].file == "my heart.csv"
    with pytest.raises(MkldistError, match="Give --overwrite"):
        run_init(*words)
    assert "50 runs" in run_init(*words, "--overwrite").output


def test_without_anybody_to_ask_the_label_is_demanded(here):
    with pytest.raises(MkldistError, match="Give --label, one of 'state', 'pulse'"):
        run_init("../data/my heart.csv")
    assert not list(here.iterdir())


def test_the_label_is_asked_for(monkeypatch):
    class Terminal:
        stdin = type("", (), {"isatty": staticmethod(lambda: True)})

    monkeypatch.setattr(init, "sys", Terminal)
    done = run_init("../data/my heart.csv", typed="stat\nstate\n")
    assert "  state: 2 values (well, ill)\n" in done.output
    assert "'stat' is not one of 'state', 'pulse'" in done.output
    assert "50 runs" in done.output


def test_arrays_need_no_columns(here):
    x = np.random.default_rng(0).normal(size=(30, 2))
    np.savez("points.npz", x=x, y=np.arange(30) % 2)
    done = run_init("points.npz")
    assert "points: 30 rows, 2 features" in done.output
    assert "50 runs" in done.output


def test_a_missing_file_is_named():
    with pytest.raises(MkldistError, match=r"hearts\.csv: found no such file"):
        run_init("hearts.csv")
