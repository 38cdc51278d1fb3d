"""Software and machines that made the runs of results.

A sweep may go on on another machine, or with another version.  So each run's own record is asked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mkldist.analysis.pairing import Results
from mkldist.results.schema import RUN_ID, STATE
from mkldist.results.state import RunState


@dataclass(eq=False)
class Origin:
    """Software and machine of some runs.

    Parameters
    ----------
    description : str
        Versions, Python and machine.
    commits : Counter of str
        Number of runs by commit; the empty string for a package that has none.
    sweeps : set of str
        Names of the sweeps.
    """

    description: str
    commits: Counter[str] = field(default_factory=Counter)
    sweeps: set[str] = field(default_factory=set)


def origins(results: Iterable[tuple[str, Results]]) -> list[Origin]:
    """Return the software and the machines that made complete runs, those of most runs first.

    Runs without a record, as in an archive, count as made by what made the tree.

    Parameters
    ----------
    results : iterable of (str, Results)
        Results by the name of their sweep.
    """
    found: dict[str, Origin] = {}
    for name, one in results:
        of_tree = json.loads(str(one.tree.attrs["provenance"]))
        if not of_tree.get("versions"):
            of_tree["versions"] = {"mkldist": one.tree.attrs["mkldist_version"]}
        for run in _complete_runs(one):
            record = one.store.read(run)
            known = record is not None and record.provenance.get("versions")
            facts = record.provenance if record is not None and known else of_tree
            origin = found.setdefault(words := _description(facts), Origin(words))
            origin.commits[facts.get("commit", "")] += 1
            origin.sweeps.add(name)
    return sorted(found.values(), key=lambda one: (-one.commits.total(), one.description))


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
