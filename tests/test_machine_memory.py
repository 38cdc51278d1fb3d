import resource
from pathlib import Path

import pytest

from mkldist.core import memory
from mkldist.core.memory import available_memory, physical_memory


def test_the_memory_of_this_machine_is_that_which_the_system_names():
    lines = Path("/proc/meminfo").read_text().splitlines()
    told = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines if "kB" in line}
    assert abs(physical_memory() - told["MemTotal"]) < resource.getpagesize()
    assert told["MemFree"] / 2 < available_memory() < physical_memory()


@pytest.mark.parametrize(
    ("group", "limits"),
    [
        ("5:cpu:/a\n0::/a/b\n", {"a/memory.max": "4096\n", "a/b/memory.max": "max\n"}),
        ("9:memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "4096\n"}),
        ("9:memory:/unseen\n", {"memory/memory.limit_in_bytes": "4096\n"}),
        ("0::/\n", {"memory.max": "4096\n", "../memory.max": "1\n"}),
    ],
    ids=["of a parent", "version 1", "container of version 1", "container"],
)
def test_the_memory_of_a_control_group_is_its_limit(tmp_path, monkeypatch, group, limits):
    top = tmp_path / "top"
    for name, limit in limits.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(limit)
    (tmp_path / "cgroup").write_text(group)
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "CONTROLLERS", top)
    assert physical_memory() == available_memory() == 4096
