"""What workers find done: the compiler ready where they will compile, and imports that stay."""

from __future__ import annotations

import subprocess
import sys

import pytest

READY = """
import gc, sys
import numpy as np
import mkldist.worker.before_fork
print("numba.np.arraymath" in sys.modules)
print(gc.get_freeze_count() > 50_000)
import numba
from mkldist.kernels.gram_tiles import add_features
columns, bases = np.ones((2, 3)), np.zeros((6, 3))

@numba.njit
def call(columns, features, bases):
    add_features(columns, features, 1, 0, 0, 3, bases)

call(columns, np.array([0, 1], dtype=np.int32), bases)
print(bases[0].tolist())
"""


@pytest.mark.slow
def test_the_compiler_is_made_ready_where_no_machine_code_is_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    printed = [
        subprocess.run(
            [sys.executable, "-c", READY], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert printed == [[ready, "True", "[2.0, 2.0, 2.0]"] for ready in ("True", "False")]
