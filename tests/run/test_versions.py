"""Versions of packages: what is installed, and tasks that begin only where it is the same."""

from __future__ import annotations

from importlib import metadata

import pytest

from mkldist.errors import UnfitClusterError
from mkldist.run.probe import PACKAGES, asking, do_where_equal, versions_here


def test_versions_are_those_of_the_installed_packages():
    assert versions_here() == {name: f"version {metadata.version(name)}" for name in PACKAGES}
    assert asking(("a_package_that_nobody_has",))() == {
        "a_package_that_nobody_has": "no installation"
    }


def test_a_package_without_its_modules_or_its_metadata_is_told(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "of_metadata_alone-1.0.dist-info").mkdir()
    metadata_file = tmp_path / "of_metadata_alone-1.0.dist-info" / "METADATA"
    metadata_file.write_text("Metadata-Version: 2.1\nName: of_metadata_alone\nVersion: 1.0\n")
    (tmp_path / "of_modules_alone.py").touch()
    assert asking(("of_metadata_alone", "of_modules_alone"))() == {
        "of_metadata_alone": "no installation",
        "of_modules_alone": "an unknown version",
    }


def test_a_task_begins_only_where_all_versions_are_equal():
    assert do_where_equal(versions_here(), len, "task") == 4
    begun: list[str] = []
    with pytest.raises(UnfitClusterError, match=r"of numpy; expected version 0 as in this process"):
        do_where_equal({**versions_here(), "numpy": "version 0"}, begun.append, "task")
    assert not begun
