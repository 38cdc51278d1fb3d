"""Versions of packages in a scheduler and its workers, compared with those of the coordinator.

Ids, numbers, and what Dask sends depend on them, so that no task begins where one differs.  A
worker that joins late may have others.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from mkldist.errors import UnfitClusterError
from mkldist.run.this_worker import this_worker

if TYPE_CHECKING:
    from distributed import Client

Task = TypeVar("Task")
Receipt = TypeVar("Receipt")
Answer = TypeVar("Answer")

PYTHON = "Python"
SCHEDULER = "scheduler"

PACKAGES = ("mkldist", "numpy", "scipy", "numba", "distributed")
"""Packages of which all processes of a sweep need one version."""
ADVICE = "Install the same versions for the scheduler and every worker, and restart them"


def asking(packages: tuple[str, ...] = PACKAGES) -> Callable[[], dict[str, str]]:
    """Return a function that tells the versions of packages wherever it runs.

    Dask sends a nested function by its code, so that it runs where mkldist is missing too.
    """

    def versions() -> dict[str, str]:
        from contextlib import suppress
        from importlib import metadata, util

        found = {}
        for package in packages:
            found[package] = "no installation"
            with suppress(ImportError):
                if util.find_spec(package) is not None:
                    found[package] = "an unknown version"
                    found[package] = f"version {metadata.version(package)}"
        return found

    return versions


@cache
def versions_here() -> Mapping[str, str]:
    """Return the version of each package in this process."""
    return asking()()


def unfit_worker(worker: str, package: str, there: str, here: str) -> UnfitClusterError:
    """Return the error for a process of the cluster whose package is not that of the coordinator.

    Parameters
    ----------
    worker : str
        The process.
    package : str
        The package.
    there, here : str
        Its version there and in the coordinator, such as ``"version 1.2"``.
    """
    return UnfitClusterError(worker, f"{there} of {package}", f"{here} as in this process", ADVICE)


def do_where_equal(
    wanted: Mapping[str, str], function: Callable[[Task], Receipt], task: Task
) -> Receipt:
    """Return ``function(task)``, if this process has the versions of the coordinator.

    Raises
    ------
    mkldist.errors.UnfitClusterError
        Naming this worker and the package that differs.
    """
    check_equal(wanted)
    return function(task)


def check_equal(wanted: Mapping[str, str]) -> None:
    """Raise UnfitClusterError if a package has another version in this process."""
    there = versions_here()
    for package, version in wanted.items():
        if there[package] != version:
            worker = this_worker()
            name = "worker" if worker is None else f"worker {worker.address}"
            raise unfit_worker(name, package, there[package], version)


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
