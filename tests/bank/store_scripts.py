"""Programs that tests of the store run in separate processes, to kill them or fill their disk.

Run as ``python store_scripts.py COMMAND ROOT ...``.  The bank is the same everywhere: its values
are a function of their position, so that any reader can tell right from wrong.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from mkldist.bank import byte_store
from mkldist.bank import store as bank_store
from mkldist.bank.bank import TileLayout
from mkldist.bank.build import build_blocks
from mkldist.bank.store import BankShape, BankStore
from mkldist.core import durable
from mkldist.errors import MkldistError

N_KERNELS, LAYOUT, BANK = 41, TileLayout(30, 4), "f00d"


class PositionSource:
    """Every entry is its own position in the bank."""

    n_kernels, n_points = N_KERNELS, LAYOUT.n_points

    def fill(self, kernels, tiles, layout, out):
        out[...] = expected_bank()[kernels].reshape(-1, layout.n_tiles, *out.shape[2:])[:, tiles]

    def name(self, kernel):
        return str(kernel)


def expected_bank():
    """Return the whole bank, (M, T·b²)."""
    size = N_KERNELS * LAYOUT.n_entries
    return np.arange(1.0, size + 1).reshape(N_KERNELS, LAYOUT.n_entries)


def small_blocks():
    """Make chunks of a few kilobytes, so that the bank has many."""
    bank_store.CHUNK_BYTES, bank_store.KERNELS_PER_CHUNK = 8192, 4


def create(root):
    shape = BankShape(N_KERNELS, LAYOUT, "float64")
    return BankStore.create(root, BANK, shape, {"by": os.getpid()})


def build(root):
    """Create the store and build what is missing."""
    store = create(root)
    return build_blocks(PositionSource(), store, store.missing())


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def build_until(root, step, count):
    """Build, and be killed at the `count`-th time that writing a file comes to `step`."""
    left = int(count)

    def reached(*args, **kwargs):
        nonlocal left
        left -= 1
        if left == 0:
            if step == "half":
                with Path(args[0]).open("wb") as file:
                    file.write(bytes(next(iter(args[1])))[:100])
            die()
        return original(*args, **kwargs)

    owner, name = {
        "half": (durable, "_write"),
        "rename": (Path, "replace"),
    }[step]
    original = getattr(owner, name)
    setattr(owner, name, reached)
    build(root)


def race(root, start):
    """Build every block when the clock says `start`, whoever else does."""
    time.sleep(max(0.0, float(start) - time.time()))
    store = create(root)
    for block in store.shape.blocks:
        store.write(block.index, expected_bank()[block.kernels, block.entries])


def watch(root, start):
    """Read until the bank is complete; every block that is returned must be right."""
    time.sleep(max(0.0, float(start) - time.time()))
    expected, reads = expected_bank(), 0
    while True:
        try:
            store = BankStore.open(root, BANK)
            present = store.stored()
        except MkldistError:
            continue
        for block in (store.shape.blocks[index] for index in present):
            values = np.empty(block.shape)
            store.read(block.index, values)
            np.testing.assert_array_equal(values, expected[block.kernels, block.entries])
            reads += 1
        if len(present) == len(store.shape.blocks):
            return


def starve(root):
    """Build on a file system that fills up, get more space, go on; then make it read-only."""

    def mount(*options):
        subprocess.run(["mount", *options, root], check=True)

    mount("-t", "tmpfs", "-o", "size=160k", "tmpfs")
    for attempt in ("full", "grown"):
        try:
            receipt = build(root)
        except MkldistError as error:
            print(attempt, type(error).__name__, error)  # noqa: T201
        else:
            print(attempt, "built", receipt.blocks)  # noqa: T201
        store = BankStore.open(root, BANK)
        print(attempt, "missing", len(store.missing()), "bad", len(store.verify()))  # noqa: T201
        leftovers = list((Path(root) / byte_store.TEMPORARY).iterdir())
        print(attempt, "leftovers", len(leftovers))  # noqa: T201
        mount("-o", "remount,size=8m", "tmpfs")
    mount("-o", "remount,ro", "tmpfs")
    try:
        store.write(store.shape.blocks[0].index, np.zeros(store.shape.blocks[0].shape))
    except MkldistError as error:
        print("read-only", type(error).__name__, error)  # noqa: T201
    print("read-only bad", len(store.verify()))  # noqa: T201


if __name__ == "__main__":
    small_blocks()
    commands = {f.__name__: f for f in (build, build_until, race, watch, starve)}
    commands[sys.argv[1]](*sys.argv[2:])
