"""Software and machines that made runs: `origins` and `together`."""

import json
from dataclasses import replace

import pytest

from mkldist.analysis.origins import origins, together
from tests.analysis.two_sweeps import made

FACTS = {"commit": "0a1b", "processor": "Example 9000", "processors": 2, "python": "3.12.1",
         "platform": "Linux-6", "machine": "x86_64",
         "versions": {"numpy": "2.0", "mkldist": "0.1.0"}}  # fmt: skip
LARGE = FACTS | {"processors": 16}
WORDS = "mkldist 0.1.0, numpy 2.0; Python 3.12.1; {} processors, Linux x86_64, Example 9000"


def with_provenance(ours, of_tree, *of_runs):
    """Return results whose tree has one provenance, and whose first runs have others."""
    tree = ours.tree.copy()
    tree.attrs["provenance"] = json.dumps(of_tree, sort_keys=True)
    for run, provenance in zip(sorted(ours.store.ids()), of_runs, strict=False):
        ours.store.write(replace(ours.store.read(run), provenance=provenance))
    return replace(ours, tree=tree)


@pytest.fixture
def ours(tmp_path):
    """Return results of complete runs, which have no provenance."""
    return made(tmp_path, {("heart", "level"): [0.1, 0.3, 0.2]}, split_names=("s0", "s1", "s2"))


def told(*results):
    return [
        (one.description, one.commits, list(sweeps))
        for one, sweeps in together(
            {f"sweep {number}": origins(one) for number, one in enumerate(results)}
        )
    ]


def test_runs_are_counted_by_machine_and_commit_those_of_most_first(ours):
    n = len(ours.store.ids())
    found = told(with_provenance(ours, FACTS, LARGE, LARGE | {"commit": "2c3d"}))
    assert found == [
        (WORDS.format(2), {"0a1b": n - 2}, ["sweep 0"]),
        (WORDS.format(16), {"0a1b": 1, "2c3d": 1}, ["sweep 0"]),
    ]


def test_a_run_without_a_record_is_of_what_made_the_tree(ours):
    runs = sorted(ours.store.ids())
    one = with_provenance(ours, LARGE, *[FACTS] * len(runs))
    one.store.remove(runs[0])
    assert told(one) == [
        (WORDS.format(2), {"0a1b": len(runs) - 1}, ["sweep 0"]),
        (WORDS.format(16), {"0a1b": 1}, ["sweep 0"]),
    ]


def test_runs_that_failed_count_for_nobody(tmp_path):
    errors = {("heart", "level"): [0.1, float("nan")]}
    one = with_provenance(made(tmp_path, errors, split_names=("s0", "s1")), FACTS)
    complete = sum(int((node["state"] == "complete").sum()) for node in one.nodes())
    [(_, commits, _)] = told(one)
    assert sum(commits.values()) == complete < len(one.store.ids())


def test_sweeps_on_one_machine_are_told_together(tmp_path):
    errors = {("heart", "level"): [0.1, 0.3]}
    both = [
        with_provenance(made(tmp_path / name, errors, split_names=("s0", "s1")), FACTS)
        for name in ("a", "b")
    ]
    [(words, _, sweeps)] = told(*both)
    assert words == WORDS.format(2)
    assert sweeps == ["sweep 0", "sweep 1"]


def test_a_tree_of_an_early_version_tells_the_version_alone(ours):
    [(words, commits, _)] = told(with_provenance(ours, {}))
    version = ours.tree.attrs["mkldist_version"]
    assert words == f"mkldist {version}; Python unknown; ? processors, unknown"
    assert list(commits) == [""]
