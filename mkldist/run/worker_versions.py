"""Versions of packages in a scheduler and its workers, compared with those here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mkldist.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client

PACKAGES = ("mkldist", "numpy", "scipy", "numba", "distributed")
"""Packages of which one version is needed: ids, numbers, and what Dask sends depend on them."""


def check_versions(client: Client) -> None:
    """Refuse a scheduler or workers whose packages differ from those of this process.

    Workers that join later are not compared.

    Parameters
    ----------
    client : Client
        Connected to the scheduler.

    Raises
    ------
    mkldist.errors.ClusterError
        Naming the first process that differs, and its package.
    """
    asked = _asking(PACKAGES)
    here = asked()
    found = {"scheduler": client.run_on_scheduler(asked)}
    found |= {f"worker {name}": there for name, there in client.run(asked).items()}
    for where, there in found.items():
        _compare(where, there, here)


def _compare(where: str, there: Mapping[str, str], here: Mapping[str, str]) -> None:
    for package, version in here.items():
        if there[package] != version:
            raise ClusterError(
                where,
                f"{there[package]} of {package}",
                f"{version} as in this process",
                "Install the same versions for the scheduler and every worker, and restart them",
            )


def _asking(packages: tuple[str, ...]) -> Callable[[], dict[str, str]]:
    """Return a function that tells the versions of packages wherever it runs.

    Dask sends a nested function by its code, so that it runs where mkldist is missing too.
    """

    def versions() -> dict[str, str]:
        from importlib import metadata, util

        found = {}
        for package in packages:
            try:
                found[package] = f"version {metadata.version(package)}"
            except metadata.PackageNotFoundError:
                there = util.find_spec(package) is not None
                found[package] = "an unknown version" if there else "no installation"
        return found

    return versions
