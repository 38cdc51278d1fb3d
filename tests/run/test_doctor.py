"""What is found on this machine, and what is advised where something lacks."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import numba
import pytest

from mkldist.bank.cache import SUFFIX
from mkldist.core.threads import n_processors
from mkldist.run import doctor
from mkldist.run.doctor import Finding, examine


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Return the node cache, and write 2 pieces in place of 64."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(doctor, "PIECES", 2)
    return tmp_path / "cache"


def findings(folder) -> dict[str, Finding]:
    return {finding.name: finding for finding in examine(folder)}


def test_a_sound_machine_is_described_and_nothing_stays(tmp_path, cache):
    folder = tmp_path / "results"
    folder.mkdir()
    cache.mkdir()
    (cache / f"one{SUFFIX}").write_bytes(bytes(2**29))
    found = findings(folder)
    assert not [one for one in found.values() if one.hinders]
    for package in ("numpy", "zarr", "distributed"):
        assert f"{package} {metadata.version(package)}" in found["packages"].words
    assert found["processors"].words.startswith(str(n_processors()))
    assert "threads" in found["BLAS"].words
    assert str(folder) in found["disk"].words
    assert "MiB/s written and flushed" in found["disk speed"].words
    assert found["locks"].words == "work"
    assert found["node cache"].words == f"0.5 GiB of 32.0 GiB in {cache}"
    assert list(folder.iterdir()) == []


def test_missing_packages_hinder_and_missing_extras_do_not(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ("numpy", "no-such-package"))
    monkeypatch.setattr(
        doctor,
        "EXTRAS",
        {"figures": (("json", "no_such_module"), "pictures"), "parquet": (("json",), "tables")},
    )
    found = findings(tmp_path)
    assert found["packages"].hinders
    assert "no-such-package" in found["packages"].advice
    assert not found["extras"].hinders
    told = "installed: parquet (tables); not installed: figures (pictures)"
    assert found["extras"].words == told
    assert found["extras"].advice == "If needed: pip install 'mkldist[figures]'"


def test_every_extra_of_the_package_is_told():
    named = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    extras = named["project"]["optional-dependencies"].keys() - {"all", "test", "test-clusters"}
    assert doctor.EXTRAS.keys() == extras


def test_a_disk_that_refuses_hinders(tmp_path, monkeypatch):
    def refused(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(doctor, "write_file", refused)
    found = findings(tmp_path)
    assert found["disk"].hinders
    assert "No space left" in found["disk"].words
    assert "locks" not in found


def test_little_memory_slow_disks_and_uncompiled_code_are_met_with_advice(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "available_memory", lambda: 2**30)
    monkeypatch.setattr(doctor, "SLOW", float("inf"))
    found = findings(tmp_path)
    assert found["memory"].words.startswith("1.0 GiB of ")
    assert "--memory" in found["memory"].advice
    assert "outputs.banks" in found["disk speed"].advice


@pytest.mark.slow
def test_the_folder_of_compiled_code_is_numbas(tmp_path):
    """NUMBA_CACHE_DIR is read when numba is imported, so a process of its own looks."""
    script = """
import json
from mkldist.run.doctor import _compiled_code
before = _compiled_code()
import numpy as np
import mkldist.core.compiled
from mkldist.solvers.svm import slack_rounding
mkldist.core.compiled.SECONDS_IN_PYTHON = 0.0
slack_rounding(np.ones(2), np.ones(2), np.ones(2))
after = _compiled_code()
print(json.dumps([before.words, before.advice, after.words, after.advice]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    before, advised, after, nothing = json.loads(done.stdout)
    assert before == f"0 functions in {tmp_path}"
    assert "The first sweep compiles" in advised
    assert after.endswith(f" functions in {tmp_path}")
    assert int(after.split()[0]) >= 1
    assert nothing == ""


def test_numbas_switch_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert "NUMBA_DISABLE_JIT" in findings(tmp_path)["compiled code"].words
