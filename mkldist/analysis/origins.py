"""Software and machines that made the runs of results.

A sweep may go on on another machine, or with another version.  So each run's own record is asked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mkldist.analysis.pairing import Results
from mkldist.results.schema import RUN_ID, STATE
from mkldist.results.state import RunState


@dataclass(frozen=True)
class Origin:
    """Software and machine of some runs.

    Parameters
    ----------
    description : str
        Versions, Python and machine.
    commits : dict of str to int
        Number of runs by commit; the empty string for a package that has none.
    """

    description: str
    commits: dict[str, int]


class Together(NamedTuple):
    """Runs of several sweeps of one software on one machine, and names of the sweeps."""

    origin: Origin
    sweeps: tuple[str, ...]


def origins(results: Results) -> list[Origin]:
    """Return the software and the machines that made complete runs, in the order of the runs.

    Runs without a record, as in an archive, count as made by what made the tree.
    """
    of_tree = json.loads(str(results.tree.attrs["provenance"]))
    if not of_tree.get("versions"):
        of_tree["versions"] = {"mkldist": results.tree.attrs["mkldist_version"]}
    found: dict[str, Counter[str]] = {}
    for run in _complete_runs(results):
        record = results.store.read(run)
        known = record is not None and record.provenance.get("versions")
        facts = record.provenance if record is not None and known else of_tree
        found.setdefault(_description(facts), Counter())[facts.get("commit", "")] += 1
    return [Origin(description, dict(commits)) for description, commits in found.items()]


def together(by_sweep: Mapping[str, Sequence[Origin]]) -> list[Together]:
    """Return each software and machine of several sweeps once, those of most runs first."""
    commits: dict[str, Counter[str]] = {}
    sweeps: dict[str, list[str]] = {}
    for sweep, own in by_sweep.items():
        for one in own:
            commits.setdefault(one.description, Counter()).update(one.commits)
            sweeps.setdefault(one.description, []).append(sweep)
    by_runs = sorted(commits, key=lambda words: (-commits[words].total(), words))
    return [
        Together(Origin(words, dict(commits[words])), tuple(sweeps[words])) for words in by_runs
    ]


def _complete_runs(results: Results) -> list[str]:
    """Return the ids of complete runs."""
    ids: list[str] = []
    for node in results.nodes():
        states = node[STATE.name]
        names = node[RUN_ID.name].transpose(*states.dims).to_numpy()
        ids += names[states.to_numpy() == RunState.COMPLETE.value].tolist()
    return ids


def _description(facts: dict[str, Any]) -> str:
    """Return versions, Python and machine in words."""
    versions = ", ".join(f"{name} {text}" for name, text in sorted(facts["versions"].items()))
    system = str(facts.get("platform", "unknown")).partition("-")[0]
    machine = (
        f"{facts.get('processors', '?')} processors, {system} {facts.get('machine', '')}".rstrip()
    )
    if facts.get("processor"):
        machine += f", {facts['processor']}"
    return f"{versions}; Python {facts.get('python', 'unknown')}; {machine}"
