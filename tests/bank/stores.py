"""Small Gram stores, damage to them, processes that work on them, and checks."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from mkldist.bank.bank import TileLayout
from mkldist.bank.store import BankShape, BankStore, Block
from mkldist.errors import StoreError
from tests.bank import store_scripts as scripts


def stored(root: Path, grams: np.ndarray, dtype: str, name: str = "bank") -> BankStore:
    """Return a complete store of (M, n, n) Gram matrices."""
    layout = TileLayout.for_points(grams.shape[1])
    store = BankStore.create(root, name, BankShape(len(grams), layout, dtype))
    packed = layout.pack(grams)
    for block in store.shape.blocks:
        store.write(block.index, packed[block.kernels, block.entries])
    return store


def read(store: BankStore, block: Block) -> np.ndarray:
    """Return the values of a block of Gram matrices."""
    values = np.empty(block.shape, store.dtype)
    store.read(block.index, values)
    return values


def damage(store: BankStore, block: Block) -> None:
    """Flip one bit in the file of a block."""
    files = sorted(Path(store.location).glob("c/*/*/*"), key=_position)
    content = bytearray(files[block.index].read_bytes())
    content[3] ^= 16
    files[block.index].write_bytes(bytes(content))


def _position(path: Path) -> tuple[int, int]:
    return int(path.parent.parent.name), int(path.parent.name)


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
    for block in store.shape.blocks:
        try:
            values = read(store, block)
        except StoreError:
            assert block.index in missing
        else:
            np.testing.assert_array_equal(values, expected[block.kernels, block.entries])
    assert store.verify() == []
