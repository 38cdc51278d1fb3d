"""The README: its commands, its sweep file and its Python, its links, and the table of methods."""

import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import mkldist
from mkldist.cli import command as cli
from mkldist.methods.registry import METHODS
from mkldist.planning.checks import resolve_methods
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep, shipped_sweeps
from mkldist.spec.model import SweepSpec

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = {
    "README": README,
    "sweeps": ROOT / "sweeps" / "README.md",
    "contributing": ROOT / "CONTRIBUTING.md",
    "clusters": ROOT / "cluster" / "README.md",
}
SMALL = (
    "banks.xu2008.family=do2009",
    "splits.repeats=2",
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


def test_its_sweep_file_is_right():
    (text,) = blocks("toml")
    [grids] = resolve_methods(SweepSpec.model_validate(tomllib.loads(text))).values()
    assert set(grids) == {"level"}


def test_the_page_of_sweeps_names_all():
    named = re.findall(r"`(\w+\*?)`", PAGES["sweeps"].read_text())
    for name in shipped_sweeps():
        assert any(fnmatch(name, one) for one in named), name


def test_its_table_names_every_method():
    section = README.read_text().split("## Methods\n")[1].split("\n## ")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert named == set(METHODS), "give the method a row in the table of README.md"


def test_its_python_solves_problems():
    (_, on_arrays) = blocks("python")
    x = np.random.default_rng(0).normal(size=(40, 2))
    x[:20] += 3
    y = np.repeat([-1.0, 1.0], 20)
    names: dict[str, Any] = {
        "X": x,
        "X_test": x,
        "y": y,
        "grams": np.array([np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / w) for w in (1.0, 9.0)]),
    }
    exec(on_arrays, names)
    assert isinstance(names["solution"], mkldist.solvers.base.Solution)
    assert [one.converged for one in names["path"]] == [True] * 3


def test_its_python_reads_results(tmp_path, monkeypatch):
    """The quickstart runs in small, into the folder that the page names."""
    monkeypatch.chdir(tmp_path)
    file = ROOT / "sweeps" / "quickstart.toml"
    run_sweep(load_sweep(file, SMALL), origin=file, connect_options=ConnectOptions(n_workers=1))
    (reading, _) = blocks("python")
    names: dict[str, Any] = {}
    exec(reading, names)
    names["tree"].close()
