"""The command that checks a cluster: its table, its document, and its exit code."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from mkldist.cli.house import cluster_command as command
from mkldist.run import doctor as cluster_check
from mkldist.run.cluster import ConnectOptions
from mkldist.run.doctor import Finding

SEEN: list[tuple[ConnectOptions, dict[str, str], float]] = []


@pytest.fixture(params=[False, True], ids=["sound", "faulty"])
def hinders(request, monkeypatch) -> bool:
    def examine(options, places, wait):
        SEEN.append((options, places, wait))
        yield Finding("scheduler", "tcp://127.0.0.1:1 answered")
        yield Finding("versions", "0.0.1 of mkldist", "Install [the] same", request.param)

    SEEN.clear()
    monkeypatch.setattr(cluster_check, "examine_cluster", examine)
    return bool(request.param)


def test_findings_are_a_table_and_decide_the_exit_code(hinders):
    done = CliRunner().invoke(command, ["check", "--scheduler", "tcp://127.0.0.1:1"])
    assert done.exit_code == 2 * hinders
    lines = [" ".join(line.split()) for line in done.output.splitlines()]
    assert "scheduler sound tcp://127.0.0.1:1 answered" in lines
    assert f"versions {'fault' if hinders else 'note'} 0.0.1 of mkldist" in lines
    assert "→ Install [the] same" in lines
    [(options, places, wait)] = SEEN
    assert options == ConnectOptions("tcp://127.0.0.1:1")
    assert places == {"results": "results", "banks": "results/banks"}
    assert wait == 3


def test_the_document_says_whether_the_cluster_is_sound(hinders, tmp_path):
    words = ["check", "mine.yaml", "--banks", "s3://b", "--tls", str(tmp_path), "--json"]
    done = CliRunner().invoke(command, words)
    document = json.loads(done.output)
    assert document["sound"] is not hinders
    assert [one["name"] for one in document["findings"]] == ["scheduler", "versions"]
    [(options, places, wait)] = SEEN
    assert options.tls == tmp_path
    assert places["banks"] == "s3://b"
    assert wait == 60


@pytest.mark.parametrize("words", [[], ["mine.yaml", "--scheduler", "tcp://127.0.0.1:1"]])
def test_a_cluster_is_named_once(words):
    done = CliRunner().invoke(command, ["check", *words])
    assert done.exit_code == 2
    assert "Give the file of a cluster or --scheduler ADDRESS, one of them." in done.output
