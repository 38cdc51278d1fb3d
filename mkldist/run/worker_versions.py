"""Versions of packages in a scheduler and its workers, compared with those here."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mkldist.worker.versions import asking, unfit_worker, versions_here

if TYPE_CHECKING:
    from distributed import Client

PYTHON = "Python"
SCHEDULER = "scheduler"


@dataclass(frozen=True)
class Difference:
    """A package whose version in a process of the cluster is not the one here.

    Parameters
    ----------
    process : str
        ``"scheduler"``, or the address of a worker.
    package : str
        Name of the package, or ``"Python"``.
    there, here : str
        What there is, such as ``"version 1.26.4"`` or ``"no installation"``.
    """

    process: str
    package: str
    there: str
    here: str


def check_versions(client: Client) -> None:
    """Refuse a scheduler or workers whose packages differ from those of this process.

    Workers that join later are compared when they get a task, see :mod:`mkldist.worker.versions`.

    Parameters
    ----------
    client : Client
        Connected to the scheduler.

    Raises
    ------
    mkldist.errors.UnfitClusterError
        Naming the first process that differs, and its package.
    """
    for one in differences(client):
        process = one.process if one.process == SCHEDULER else f"worker {one.process}"
        raise unfit_worker(process, one.package, one.there, one.here)


def differences(client: Client) -> list[Difference]:
    """Return the packages of the scheduler and of all workers that differ from those here.

    Parameters
    ----------
    client : Client
        Connected to the scheduler.
    """
    pythons = _pythons(client)
    found = [one for where, there in pythons.items() for one in _compared(where, there, _python())]
    # Code of another Python cannot run there, not even to ask.
    strange = {one.process for one in found}
    asked, there = asking(), dict[str, Mapping[str, str]]()
    if SCHEDULER not in strange:
        there[SCHEDULER] = client.run_on_scheduler(asked)
    workers = [where for where in pythons if where not in {SCHEDULER, *strange}]
    there |= client.run(asked, workers=workers) if workers else {}
    here = versions_here()
    return found + [one for where in there for one in _compared(where, there[where], here)]


def all_versions_here() -> dict[str, str]:
    """Return the versions that all processes need: of Python and of packages, by name."""
    return {**_python(), **versions_here()}


def _python() -> dict[str, str]:
    return {PYTHON: f"version {'.'.join(platform.python_version_tuple()[:2])}"}


def _pythons(client: Client) -> dict[str, dict[str, str]]:
    """Return the version of Python of the scheduler and of each worker, as Dask tells it."""
    told: Any = client.get_versions()
    hosts = {SCHEDULER: told["scheduler"], **told["workers"]}
    return {
        where: {PYTHON: f"version {'.'.join(one['host']['python'].split('.')[:2])}"}
        for where, one in hosts.items()
    }


def _compared(
    process: str, there: Mapping[str, str], here: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield what differs in a process."""
    for package, version in here.items():
        if there[package] != version:
            yield Difference(process, package, there[package], version)
