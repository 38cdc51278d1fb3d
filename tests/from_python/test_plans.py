"""Plans from Python: numbers that add up, and the text of the command."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from rich.console import Console

import mkldist
from mkldist.bank import factored_kernels
from mkldist.cli import command
from mkldist.run.forecast import Rates, store_rates

X = np.random.default_rng(0).normal(size=(40, 2))
Y = X[:, 0] > 0
SPEC = {
    "name": "p",
    "splits": {"kind": "kfold", "folds": 4},
    "banks": [{"family": "do2009"}, {"name": "one", "kernels": [{"function": "linear"}]}],
    "methods": [{"name": "level", "C": [1.0, 10.0]}, {"name": "majority"}],
}


def test_a_plan_counts_the_work_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = mkldist.plan(SPEC, {"d": (X, Y)}, workers=3)
    assert not list(tmp_path.iterdir())
    assert plan.n_runs == 4 * 2 * (2 + 1)
    assert (plan.n_banks, plan.n_batches, plan.n_solvers) == (8, 8, plan.n_runs)
    assert (plan.n_recorded, plan.n_failed, plan.n_workers) == (0, 0, 3)
    assert plan.banks.columns[:2].tolist() == ["dataset", "bank"]
    assert plan.banks["runs"].sum() == plan.n_runs
    assert plan.banks["disk"].sum() == plan.disk_bytes
    assert (plan.banks["kernels"] * plan.banks["banks"]).sum() == plan.n_kernels
    assert plan.memory_per_worker > 0 < plan.passes


@pytest.mark.parametrize(
    ("n_classes", "changes", "said"),
    [
        (2, {}, None),
        (2, {"selection": {"folds": 2}}, "a run has one on each inner fold and on the whole"),
        (3, {}, "a run has one for each class"),
        (3, {"selection": {"folds": 2}}, "one for each class, on each inner fold and on the whole"),
    ],
)
def test_solvers_are_told_where_runs_have_several_and_why(n_classes, changes, said):
    plan = mkldist.plan(SPEC | changes, {"d": (X, np.arange(40) % n_classes)})
    found = [line for line in str(plan).splitlines() if line.startswith("solvers:")]
    assert len(found) == (said is not None)
    if said is not None:
        assert f"{plan.n_solvers}: " in found[0]
        assert said in found[0]
        assert ("class" in found[0], "fold" in found[0]) == (n_classes > 2, bool(changes))


def test_names_in_brackets_are_no_markup_of_a_console_of_ones_own():
    y = np.where(Y, "[red]ill", "[/red] :smile:")
    names = ["age [years]", "[bold]b"]
    plan = mkldist.plan(SPEC, {"d": (pd.DataFrame(X, columns=names), y)})
    console = Console(width=100, file=io.StringIO())
    console.print(plan)
    said = console.file.getvalue()
    assert "[red]ill (" in said
    assert "[/red] :smile: (" in said
    assert said.rstrip("\n") == str(plan)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Store rates of a machine, which otherwise are measured for each plan, and may differ."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path))
    store_rates(Rates(2e-9, 1e-9, 1e-10, 3e-4, 2e-5, 0.01, 3e-10, 0.005, 0.002, 0.0005, 5e8))


@pytest.mark.slow
@pytest.mark.usefixtures("stored")
def test_a_plan_prints_as_the_command_does():
    done = CliRunner().invoke(command, ["plan", "quickstart", "--workers", "2"])
    text = str(mkldist.plan("quickstart", workers=2))
    assert [line.rstrip() for line in done.output.splitlines()] == [
        line.rstrip() for line in text.splitlines()
    ]
    assert repr(mkldist.plan("quickstart", workers=2)) == text


def test_a_plan_of_one_says_so_in_the_singular():
    words = {
        "banks": [SPEC["banks"][1]],
        "methods": [{"name": "majority"}],
        "splits": {"repeats": 1},
    }
    text = str(mkldist.plan({**SPEC, **words}, {"d": (X, Y)}))
    assert "1 Gram matrix in 1 bank\n" in text
    assert "1 run in 1 batch\n" in text


@pytest.mark.usefixtures("stored")
def test_a_plan_tells_the_shards_of_a_bank_and_the_bytes_that_move():
    banks = [{"name": "both", "family": "do2009", "backend": "sharded"}, SPEC["banks"][1]]
    plan = mkldist.plan({**SPEC, "banks": banks}, {"d": (X, Y)}, workers=3)
    n_kernels, n_points = plan.banks["kernels"][0], plan.banks["points"][0]
    [line] = [text for text in str(plan).splitlines() if text.startswith("shards:")]
    assert line.startswith("shards:    1 of up to ")
    assert line.endswith(" for both of d")
    moved = 8 * (n_kernels + n_points)
    assert f"{moved} B move for a vector of a pass" in str(plan)
    assert plan.banks["disk"][0] == 0 < plan.banks["disk"][1]


def test_a_plan_says_how_much_of_factors_memory_holds():
    widths = [0.1 * i for i in range(1, 101)]
    kernels = [{"function": "gaussian", "widths": widths}]
    banks = [{"name": "thin", "kernels": kernels, "backend": "factors"}]
    spec = {**SPEC, "banks": banks, "methods": [{"name": "level"}]}
    assert " in memory), " not in str(mkldist.plan(spec, {"d": (X, Y)}))
    many = np.random.default_rng(0).normal(size=(20_000, 2))
    text = str(mkldist.plan({**spec, "memory": "1GiB"}, {"d": (many, many[:, 0] > 0)}))
    [line] = [line for line in text.splitlines() if line.startswith("factors:")]
    assert " of a bank in each task at first (512.00 MiB in memory), built by" in line


@pytest.mark.slow
def test_a_plan_says_whether_matrices_or_factors_take_the_disk():
    factors = {"name": "thin", "family": "do2009", "backend": "factors"}
    methods = [{"name": "level"}]
    for banks, words in (
        ([factors], "factors"),
        ([factors, SPEC["banks"][1]], "Gram matrices and factors"),
    ):
        text = str(mkldist.plan({**SPEC, "banks": banks, "methods": methods}, {"d": (X, Y)}))
        [line] = [line for line in text.splitlines() if line.startswith("disk:")]
        assert f" of {words}, " in f"{line}, "


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "said"),
    [
        (3, "a solution takes one such pass: no factor can grow"),
        (5, "a solution takes 1 to 3 such passes, about 2: factors may grow from 3 to 5 columns"),
    ],
)
def test_a_plan_says_how_many_rounds_solutions_on_factors_take(rank, said, monkeypatch):
    monkeypatch.setattr(factored_kernels, "FIRST_RANK", 3)
    thin = {"family": "do2009", "backend": "factors", "rank": rank}
    words = {**SPEC, "banks": [thin], "methods": [{"name": "level"}]}
    assert said in str(mkldist.plan(words, {"d": (X, Y)}))


@pytest.mark.slow
def test_a_plan_counts_what_is_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mkldist.sweep(SPEC, {"d": (X, Y)}, progress=False)
    assert mkldist.plan(SPEC, {"d": (X, Y)}).n_recorded == 24
    more = mkldist.plan(SPEC, {"d": (X, Y)}, changes={"methods.level.C": [1, 2]})
    assert (more.n_recorded, more.recorded.others) == (16, 8)
    assert "recorded:  16 of 24 runs in results/p, and 8 that are not in this plan" in str(more)


@pytest.mark.parametrize("folders", [str, Path, lambda one: [one]])
def test_data_are_looked_up_in_one_folder_or_several(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "there"
    there.mkdir()
    rows = "".join(f"{i},{i * i % 7},{'pn'[i % 2]}\n" for i in range(20))
    (there / "d.csv").write_text(f"a,b,label\n{rows}")
    spec = SPEC | {"datasets": [{"name": "d", "file": "d.csv"}]}
    assert mkldist.plan(spec, data_dirs=folders(there)).n_runs


def test_workers_are_a_number():
    for workers in (0, True, "two"):
        with pytest.raises(ValueError, match="workers: found"):
            mkldist.plan(SPEC, {"d": (X, Y)}, workers=workers)
