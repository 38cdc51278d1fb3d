"""Versions of packages where a task runs: a worker that joins late may have others.

Ids, numbers, and what Dask sends depend on them, so that no task begins where one differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from mkldist.errors import UnfitClusterError
from mkldist.worker.this_worker import this_worker

Task = TypeVar("Task")
Receipt = TypeVar("Receipt")

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
