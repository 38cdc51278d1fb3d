"""Processes that work on a store, and a check that it is sound."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from mkldist.errors import StoreError
from tests.bank import store_scripts as scripts

SCRIPT = Path(scripts.__file__)
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(SCRIPT.parents[2]),
    "PYTHONDONTWRITEBYTECODE": "1",
}


def start(*command):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, command)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def assert_sound(store):
    """Every block is missing or right; one that is written and not marked yet may be read."""
    expected, missing = scripts.expected_bank(), set(store.missing())
    for block in store.blocks:
        try:
            values = store.read(block)
        except StoreError:
            assert block in missing
        else:
            np.testing.assert_array_equal(values, expected[block.kernels, block.entries])
    assert store.verify() == []
