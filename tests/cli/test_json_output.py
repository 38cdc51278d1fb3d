"""``--json`` of every command: one document of finite numbers, with the keys of its help."""

import json
import math
import re
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

from mkldist.cli import COMMANDS, command
from mkldist.cli.data import list_command as listing
from mkldist.cli.options import plain
from tests.cli.commands import run as run_there
from tests.cli.commands import run_here

SWEEP = """
name = "tiny"
description = "two methods on two moons"
[[datasets]]
name = "two_moons"
options = { n = 40 }
[splits]
repeats = 2
[[banks]]
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
features = ["all", "each"]
[[methods]]
name = "level"
C = [1, 10]
[[methods]]
name = "uniform"
C = [1, 10]
[outputs]
keep_banks = true
"""
STUDY = SWEEP.replace("tiny", "study").replace("repeats = 2", "repeats = 2\nn_train = [10, 20]")
CLUSTER = """
class: distributed.LocalCluster
workers: 1
options: {n_workers: 1, threads_per_worker: 1, dashboard_address: "127.0.0.1:0"}
"""
WITHOUT = {"init", "export", "fit", "predict", "schema"}
"""Commands that write a file and print no table."""
WORDS = [
    "plan tiny.toml",
    "plan study.toml",
    "sweep tiny.toml",
    "status tiny",
    "report tiny -o page.html --figures figures",
    "compare tiny level uniform",
    "explain tiny",
    "list methods",
    "list kernels",
    "list datasets",
    "list sweeps",
    "show xu2008",
    "clean tiny",
    "doctor",
    "cluster check one.yaml",
    "verify tiny",
    "rerun tiny",
    "scale study -o scaling",
]


def run(folder: Path, words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command here, those that start workers in another process."""
    here = not words.startswith(("sweep", "doctor", "cluster", "rerun"))
    return (run_here if here or "--help" in words else run_there)(folder, *words.split(), code=code)


def document(text: str) -> dict[str, Any]:
    """Return the document that is the whole text; numbers that JSON does not know are refused."""

    def refused(constant: str) -> None:
        raise ValueError(constant)

    found = json.loads(text, parse_constant=refused)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json")
    (folder / "tiny.toml").write_text(SWEEP)
    (folder / "study.toml").write_text(STUDY)
    (folder / "one.yaml").write_text(CLUSTER)
    run(folder, "sweep study.toml --workers 1")
    found = document(run(folder, "sweep tiny.toml --json --workers 1").stdout)
    assert found["computed"] == 8
    assert found["counts"] == {"waiting": 0, "complete": 8, "failed": 0}
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("words", WORDS)
def test_a_command_prints_one_document_with_the_keys_of_its_help(folder, words):
    found = document(run(folder, f"{words} --json").stdout)
    command_words = words.split()[: 1 + words.startswith(("list", "cluster"))]
    text = " ".join(run(folder, f"{' '.join(command_words)} --help").stdout.split())
    named = re.search(r"with the keys ([\w, ]+)\.", text)[1].split(", ")
    assert set(found) == set(named)


@pytest.mark.slow
def test_documents_hold_what_tables_show(folder):
    status = document(run(folder, "status tiny --json").stdout)
    assert status["nodes"]["two_moons/level"] == {"waiting": 0, "complete": 4, "failed": 0}
    assert {row["method"] for row in status["summary"]} == {"level", "uniform"}
    plan = document(run(folder, "plan tiny.toml --json").stdout)
    assert (plan["n_runs"], plan["n_recorded"], plan["n_kernels"]) == (8, 8, 12)
    study = document(run(folder, "plan study.toml --json").stdout)
    assert [(row["dataset"], row["runs"]) for row in study["sizes"]] == [
        ("two_moons-10", 8),
        ("two_moons-20", 8),
    ]
    kept = document(run(folder, "clean tiny --json").stdout)
    assert kept["removed_bytes"] == 0 < kept["bytes"]
    everything = document(run(folder, "clean results --json").stdout)
    own = {bank["id"] for bank in kept["banks"]}
    assert own
    assert own < {bank["id"] for bank in everything["banks"]}  # the study has others
    shown = document(run(folder, "show level --json").stdout)["found"]
    assert [one["kind"] for one in shown] == ["method"]
    assert "\x1b" not in shown[0]["text"]


@pytest.mark.slow
def test_a_mistake_leaves_the_output_empty(folder):
    done = run(folder, "status nothing --json", code=2)
    assert done.stdout == ""
    assert "nothing: found no such folder, sweep file or name" in done.stderr


def test_parameters_are_a_list():
    found = document(CliRunner().invoke(listing, ["kernels", "--json"]).stdout)
    of = {row["name"]: row["parameters"] for row in found["kernels"]}
    assert of["polynomial"] == ["degrees", "offset"]


def test_every_command_that_prints_a_table_has_the_option():
    def options(one: Any) -> set[str]:
        return {word for parameter in one.params for word in parameter.opts}

    for name in COMMANDS.keys() - WITHOUT:
        one = command.get_command(None, name)
        for part in getattr(one, "commands", {name: one}).values():
            assert "--json" in options(part), (name, part.name)


class Interval(NamedTuple):
    low: float
    high: float


@dataclass
class Found:
    name: str
    interval: Interval


class State(StrEnum):
    DONE = "done"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, None),
        (-math.inf, None),
        (np.float64("nan"), None),
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array([[1.0, np.nan]]), [[1.0, None]]),
        (True, True),
        (State.DONE, "done"),
        ({State.DONE: 1, 2: {3}}, {"done": 1, "2": [3]}),
        (Path("a/b"), str(Path("a/b"))),
        (
            Found("x", Interval(0.0, math.inf)),
            {"name": "x", "interval": {"low": 0.0, "high": None}},
        ),
    ],
    ids=repr,
)
def test_values_become_what_json_knows(value, expected):
    found = plain(value)
    assert found == expected
    assert json.loads(json.dumps(found, allow_nan=False)) == expected
    assert type(found) is type(expected)
