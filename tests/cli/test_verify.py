"""The command that checks a sweep's files: its lines, its JSON and its exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mkldist.cli.house import verify_command as command
from tests.run import damage


def verify(*words: str) -> Result:
    return CliRunner().invoke(command, words, catch_exceptions=False)


@pytest.fixture
def output(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    output = tmp_path / "results" / "small"
    output.parent.mkdir()
    damage.sweep(output)
    return output


def test_lines_json_and_exit_codes(output):
    sound = verify("small")
    assert sound.exit_code == 0
    kinds = [line.split()[0] for line in sound.output.splitlines()]
    assert kinds == ["manifest", "records", "layout", "snapshots", "banks"]
    assert "records    6 records, sound" in sound.output
    layout = output / "tree.layout"
    damage.flip(layout, np.random.default_rng(0))
    found = verify(str(output))
    assert found.exit_code == 2
    assert f"  {layout}" in found.output.splitlines()
    assert f"mkldist verify {output} --repair" in found.output
    asked = verify("small", "--json")
    assert asked.exit_code == 2
    document = json.loads(asked.output)
    assert document.keys() == {"path", "sound", "checked", "repaired", "damaged"}
    assert (document["sound"], len(document["damaged"])) == (False, 1)
    assert [one["kind"] for one in document["checked"]] == kinds
    repaired = verify("small", "--repair")
    assert repaired.exit_code == 0
    assert repaired.output.splitlines()[-1] == "results/small is sound now"
    assert json.loads(verify("small", "--json", "--repair").output)["sound"]


def test_a_layout_that_is_gone_is_made_anew(output):
    expected = damage.values_of(output)
    (output / "tree.layout").unlink()
    found = verify("small")
    assert found.exit_code == 2
    assert "tree.layout: not there, though 6 runs are recorded" in found.output
    assert "mkldist verify results/small --repair" in found.output
    repaired = verify("small", "--repair")
    assert (repaired.exit_code, verify("small").exit_code) == (0, 0)
    assert damage.values_of(output).keys() == expected.keys()
    for path, data in damage.values_of(output).items():
        assert data.equals(expected[path])
