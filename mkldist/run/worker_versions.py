"""Versions of packages in a scheduler and its workers, compared with those here."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
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

    Raises
    ------
    mkldist.errors.UnfitClusterError
        Naming the first package that differs.
    """
    for one in _of_scheduler(client):
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


def differences(client: Client) -> Compared:
    """Compare the packages of the scheduler and of all workers with those here."""
    workers = compared_workers(client, sorted(client.nthreads()))
    return replace(workers, unequal=(*_of_scheduler(client), *workers.unequal))


def compared_workers(client: Client, workers: Collection[str]) -> Compared:
    """Compare the packages of workers with those here."""
    pythons = _answers(client, platform.python_version_tuple, workers)
    unequal = [one for where, there in pythons.items() for one in _of_python(where, there)]
    alike = sorted(pythons.keys() - {one.process for one in unequal})
    there = _answers(client, asking(), alike)  # code of another Python cannot run there
    unequal += [one for where in there for one in _compared(where, there[where], versions_here())]
    strange = {one.process for one in unequal}
    return Compared(tuple(unequal), tuple(w for w in alike if w in there and w not in strange))


def _of_scheduler(client: Client) -> list[Difference]:
    """Return what differs in the scheduler."""
    found = [*_of_python(SCHEDULER, client.run_on_scheduler(platform.python_version_tuple))]
    if found:
        return found  # code of another Python cannot run there, not even to ask for more
    return [*_compared(SCHEDULER, client.run_on_scheduler(asking()), versions_here())]


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


def _of_python(process: str, version: tuple[str, str, str]) -> Iterator[Difference]:
    """Yield the Python of a process if it differs."""
    return _compared(process, {PYTHON: _said(version)}, _python())


def _compared(
    process: str, there: Mapping[str, str], here: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield what differs in a process."""
    for package, version in here.items():
        if there[package] != version:
            yield Difference(process, package, there[package], version)
