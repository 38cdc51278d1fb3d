"""The commit of a checkout, against what git made."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from mkldist.results.record import source_commit

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def package(tmp_path):
    """Return a package in a folder that is no checkout yet."""
    folder = tmp_path / "project" / "package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    source_commit.cache_clear()
    return folder


def git(package, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@b")
    done = subprocess.run(["git", *who, *arguments], cwd=package.parent, capture_output=True,
                          text=True, check=True)  # fmt: skip
    return done.stdout.strip()


def committed(package) -> str:
    git(package, "init")
    git(package, "add", ".")
    git(package, "commit", "-m", "Begin")
    return git(package, "rev-parse", "HEAD")


def test_a_checkout_has_its_commit_whatever_its_tags(package):
    commit = committed(package)
    git(package, "tag", "-a", "v1", "-m", "One")
    assert source_commit(package) == commit
    assert len(commit) == 40


def test_a_changed_checkout_says_so(package):
    commit = committed(package)
    (package / "__init__.py").write_text("changed = True")
    assert source_commit(package) == f"{commit}-dirty"


def test_a_package_installed_inside_of_another_checkout_has_no_commit(package):
    assert source_commit(package) == ""
    committed(package)
    inside = package.parent / "venv" / "package"
    inside.mkdir(parents=True)
    assert source_commit(inside) == ""


def test_without_git_there_is_no_commit(package, monkeypatch):
    committed(package)
    monkeypatch.setenv("PATH", "")
    assert source_commit(package) == ""
