"""Versions of packages in a scheduler and its workers, compared with those here."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from mkldist.worker.versions import asking, unfit_worker, versions_here

if TYPE_CHECKING:
    from distributed import Client

Answer = TypeVar("Answer")

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

    def __str__(self) -> str:
        return f"{self.there} of {self.package}; {self.here} here"


def check_scheduler(client: Client) -> None:
    """Refuse a scheduler whose packages differ from those of this process.

    Parameters
    ----------
    client : Client
        Connected to the scheduler.

    Raises
    ------
    mkldist.errors.UnfitClusterError
        Naming the first package that differs.
    """
    for one in differences(client, ()).unequal:
        raise unfit_worker(one.process, one.package, one.there, one.here)


@dataclass(frozen=True)
class Compared:
    """What some processes of a cluster have.

    Parameters
    ----------
    unequal : tuple of Difference
        What differs.
    equal : tuple of str
        Addresses of workers in which nothing does.  Those that did not answer are in neither.
    """

    unequal: tuple[Difference, ...]
    equal: tuple[str, ...]


def differences(client: Client, workers: Collection[str] | None = None) -> Compared:
    """Compare the packages of the scheduler and of workers with those here.

    Parameters
    ----------
    client : Client
        Connected to the scheduler.
    workers : collection of str, optional
        Addresses of the workers; by default all.
    """
    asked = sorted(client.nthreads() if workers is None else workers)
    # Code of another Python cannot run there, not even to ask for more.
    pythons = {SCHEDULER: client.run_on_scheduler(platform.python_version_tuple)}
    pythons |= _answers(client, platform.python_version_tuple, asked)
    wrong = [
        one
        for where, there in pythons.items()
        for one in _compared(where, {PYTHON: _said(there)}, _python())
    ]
    strange = {one.process for one in wrong}
    there: dict[str, Mapping[str, str]] = {}
    if SCHEDULER not in strange:
        there[SCHEDULER] = client.run_on_scheduler(asking())
    there |= _answers(client, asking(), sorted(pythons.keys() - {SCHEDULER, *strange}))
    wrong += [one for where in there for one in _compared(where, there[where], versions_here())]
    strange = {one.process for one in wrong}
    return Compared(tuple(wrong), tuple(w for w in asked if w in there and w not in strange))


def all_versions_here() -> dict[str, str]:
    """Return the versions that all processes need: of Python and of packages, by name."""
    return {**_python(), **versions_here()}


def _python() -> dict[str, str]:
    return {PYTHON: _said(platform.python_version_tuple())}


def _said(version: tuple[str, str, str]) -> str:
    return f"version {'.'.join(version[:2])}"


def _answers(
    client: Client, function: Callable[[], Answer], workers: Collection[str]
) -> dict[str, Answer]:
    """Return what a function returns in each of some workers, without those that do not answer."""
    if not workers:
        return {}
    told = client.run(function, workers=list(workers), on_error="return")
    return {where: said for where, said in told.items() if not isinstance(said, BaseException)}


def _compared(
    process: str, there: Mapping[str, str], here: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield what differs in a process."""
    for package, version in here.items():
        if there[package] != version:
            yield Difference(process, package, there[package], version)
