"""The README: its commands, its sweep file and its Python, and the table of methods."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.cli import COMMANDS
from mkldist.cli import command as cli
from mkldist.methods.registry import METHODS
from mkldist.planning.spec_checks import resolve_methods
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep
from mkldist.spec.model import SweepSpec
from tests.models.made_up import made_up_views

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
MANUAL = ROOT / "sweeps" / "README.md"
PAGES = {"README": README, "manual": MANUAL, "clusters": ROOT / "cluster" / "README.md"}
SMALL = (
    "banks.xu2008.family=do2009",
    "splits.repeats=2",
    "methods.level.trace=true",
    "methods.spicymkl.max_iter=5",
)


def blocks(language: str, page: Path = README) -> list[str]:
    """Return the code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """Return the calls of mkldist in the shell blocks of a page."""
    lines = [line.split(" #")[0] for block in blocks("bash", page) for line in block.splitlines()]
    calls = [call.strip() for line in lines for call in line.split("&&")]
    return [call for call in calls if call.startswith("mkldist ")]


def check(command: click.Command, words: list[str]) -> None:
    """Parse the words that follow a command, without running it."""
    if isinstance(command, click.Group):
        subcommand = command.get_command(click.Context(command), words[0])
        assert subcommand is not None, words[0]
        check(subcommand, words[1:])
    else:
        command.make_context(command.name, list(words))


def test_it_is_a_first_page_but_for_the_rows_of_methods():
    lines = README.read_text().splitlines()
    assert len([line for line in lines if not line.startswith("| `")]) < 155


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_files_and_sections_that_it_links_to_are_there(page):
    links = re.findall(r"\]\((?!https?://)([^)]+)\)", page.read_text())
    assert links
    for link in links:
        file, _, section = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE) if section else []
        anchors = {
            re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings
        }
        assert not section or section in anchors, link


@pytest.mark.parametrize(
    "call", sorted({call for page in PAGES.values() for call in commands(page)})
)
def test_a_command_is_understood(call):
    check(cli, shlex.split(call)[1:])


def test_the_manual_names_every_command():
    section = MANUAL.read_text().split("## Commands\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `mkldist (\w+)", section, re.MULTILINE)) == set(COMMANDS)


def test_its_sweep_file_is_right():
    (text,) = blocks("toml")
    [grids] = resolve_methods(SweepSpec.model_validate(tomllib.loads(text))).values()
    assert set(grids) == {"level"}


def block_with(words: str) -> str:
    """Return the one block of Python of the manual that contains these words."""
    [block] = [block for block in blocks("python", MANUAL) if words in block]
    return block


def test_its_table_names_every_method():
    section = README.read_text().split("## Methods\n")[1].split("\n## ")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert named == set(METHODS), "give the method a row in the table of README.md"


def test_its_python_and_that_of_the_manual_solve_problems(tmp_path, monkeypatch):
    (_, on_arrays) = blocks("python")
    of_ones_own = block_with("def hellinger")
    on_a_graph, of_a_model = block_with("graph_laplacian"), block_with("my.model")
    with_estimators, on_views = block_with("GridSearchCV"), block_with("expression_test")
    on_a_bank = block_with("an array (n, d), or a DataFrame")
    x = np.random.default_rng(0).normal(size=(40, 2))
    x[:20] += 3
    y = np.repeat([-1.0, 1.0], 20)
    names: dict[str, Any] = {
        "x": x,
        "X": x,
        "X_test": x,
        "y": y,
        "few": np.where(np.arange(40) % 10 == 0, y, 0.0),
        "grams": np.array([np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / w) for w in (1.0, 9.0)]),
    }
    exec(on_arrays, names)
    assert isinstance(names["solution"], mkldist.solvers.base.Solution)
    assert [one.converged for one in names["path"]] == [True] * 3
    exec(with_estimators, names)
    assert names["search"].score(x, y) > 0.9
    monkeypatch.chdir(tmp_path)
    names["best"].to_model().save("my.model")
    exec(of_a_model, names | {"table": x})
    exec(on_a_bank, names)
    assert np.mean(names["values"] * y > 0) > 0.9
    assert len(names["strong"]) == (names["table"].weight > 0).sum()
    genes = np.where(np.arange(40)[:, None] % 5 == 0, np.nan, x)
    names |= {"expression": genes, "expression_test": genes, "K": x @ x.T, "K_test": x @ x.T}
    exec(on_views, names)
    assert np.mean(names["values"] * y > 0) > 0.9
    exec(of_ones_own, names)
    own = mkldist.KernelBank(np.abs(x), [names["hellinger"]])
    assert mkldist.solve("level", own, y, C=10.0).converged
    exec(on_a_graph, names)
    values = names["solution"].decision_function(names["grams"])
    assert np.mean(values * y > 0) > 0.9


def test_the_manual_predicts_new_rows_of_views(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_up_views("expression", "sequences").save("views.model")
    names = {
        "mkldist": mkldist,
        "table": pd.DataFrame({"a": [0.0, 1.0], "row": ["x", "y"]}),
        "new_expression": pd.DataFrame({"row": ["y"], "b": [1.0], "c": [0.0]}),
        "K_new": np.zeros((2, 2, 4)),
    }
    exec(block_with("new_expression"), names)
    assert names["model"].needed_views == ("expression", "sequences")


def test_the_sweep_from_python_of_the_manual_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program = block_with("mkldist.sweep(spec")
    x = np.random.default_rng(0).normal(size=(40, 2))
    names: dict[str, Any] = {"mkldist": mkldist, "X": x, "y": x[:, 0] > 0}
    exec(program, names)
    assert names["tree"]["heart/level"].sizes["split"] == 5
    assert "mine: 20 runs in 5 batches" in capsys.readouterr().out
    assert mkldist.plan("mine").n_recorded == 20


def test_its_python_and_that_of_the_manual_read_results(tmp_path, monkeypatch):
    """The quickstart runs in small, into the folder that the pages name."""
    monkeypatch.chdir(tmp_path)
    file = ROOT / "sweeps" / "quickstart.toml"
    run_sweep(load_sweep(file, SMALL), origin=file, connect_options=ConnectOptions(n_workers=1))
    (reading, _) = blocks("python")
    tracing, coordinates = block_with("level/convergence"), block_with("mkldist.to_frame")
    names: dict[str, Any] = {}
    exec(reading, names)
    names["tree"].close()
    exec(tracing, names)
    assert float(names["trace"].gap.min()) <= 0.01
    with mpl.rc_context({"backend": "agg"}):
        exec(coordinates, names)
    assert names["runs"].query("method == 'level'").test_error.max() <= 1.0
    names["tree"].close()


@pytest.mark.slow
def test_the_manual_reads_the_results_of_a_search(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = ROOT / "sweeps" / "quickstart.toml"
    searched = (
        'search={kind="random",trials=3}',
        "selection.folds=2",
        "methods.level.C={low=1,high=9}",
    )
    run_sweep(load_sweep(file, [*SMALL, *searched]), origin=file)
    names: dict[str, Any] = {"tree": mkldist.open_results("results/quickstart")}
    exec(block_with("plot.scatter"), names)
    assert names["node"].C.dims == ("split", "trial")
    names["tree"].close()
