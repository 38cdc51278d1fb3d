"""Exports at the top of the package, which load nothing before their first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mkldist
from mkldist.results.tree import open_results

HEAVY = ("numpy", "xarray", "zarr", "pandas", "distributed", "sklearn", "numba", "rich")


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_package_imports_nothing_heavy():
    assert not modules_after("import mkldist").intersection(HEAVY)


def test_looking_at_records_does_not_import_xarray():
    loaded = modules_after("from mkldist.results.records import RecordStore")
    assert not loaded.intersection({"xarray", "zarr", "pandas", "distributed", "sklearn", "rich"})


def test_workers_import_only_what_tasks_need():
    loaded = modules_after("import mkldist.worker.tasks")
    assert not loaded.intersection({"scipy.stats", "sklearn", "pandas", "xarray", "zarr", "rich"})


def test_exports_are_found_by_name():
    assert mkldist.open_results is open_results
    assert "open_results" in dir(mkldist)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        mkldist.nothing_of_this_name  # noqa: B018, the access is what is tested
