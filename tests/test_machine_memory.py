from __future__ import annotations

import resource
from pathlib import Path

from mkldist.core.memory import available_memory, physical_memory


def test_the_memory_of_this_machine_is_that_which_the_system_names():
    lines = Path("/proc/meminfo").read_text().splitlines()
    told = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines if "kB" in line}
    assert abs(physical_memory() - told["MemTotal"]) < resource.getpagesize()
    assert told["MemFree"] / 2 < available_memory() < physical_memory()
