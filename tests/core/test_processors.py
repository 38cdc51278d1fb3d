"""Processors of this process, against Dask's count, and quotas of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from dask.system import cpu_count

from mkldist.core.processors import n_processors, quotas


def test_the_count_is_that_of_dask():
    assert n_processors() == cpu_count()


@pytest.mark.parametrize(
    ("files", "granted"),
    [
        ({"cpu,cpuacct/cpu.cfs_quota_us": "150000", "cpu,cpuacct/cpu.cfs_period_us": "100000"},
         [1.5]),
        ({"cpu,cpuacct/cpu.cfs_quota_us": "-1", "cpu,cpuacct/cpu.cfs_period_us": "100000"}, []),
        ({"slice/job/cpu.max": "400000 100000\n"}, [4.0]),
        ({"slice/job/cpu.max": "max 100000\n"}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_quotas_of_both_versions_are_read(tmp_path: Path, files: dict[str, str], granted):
    group, groups = tmp_path / "cgroup", tmp_path / "groups"
    group.write_text("0::/slice/job\n")
    for name, content in files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(content)
    assert list(quotas(group, groups)) == granted


def test_a_quota_bounds_the_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "cgroup").write_text("0::/\n")
    (tmp_path / "cpu.max").write_text("50000 100000")
    monkeypatch.setattr("mkldist.core.processors.GROUP", tmp_path / "cgroup")
    monkeypatch.setattr("mkldist.core.processors.GROUPS", tmp_path)
    assert n_processors.__wrapped__() == 1
