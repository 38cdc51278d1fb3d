"""Small Gram stores, and damage to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mkldist.bank.bank import TileLayout
from mkldist.bank.store import Block, GramStore


def stored(root: Path, grams: np.ndarray, dtype: str, name: str = "bank") -> GramStore:
    """Return a complete store of (M, n, n) Gram matrices."""
    layout = TileLayout.for_points(grams.shape[1])
    store = GramStore.create(root, name, len(grams), layout, dtype)
    packed = layout.pack(grams)
    for block in store.blocks:
        store.write(block, packed[block.kernels, block.entries])
    return store


def damage(store: GramStore, block: Block) -> None:
    """Flip one bit in the file of a block."""
    files = sorted(Path(store.location).glob("c/*/*/*"), key=_position)
    content = bytearray(files[block.index].read_bytes())
    content[3] ^= 16
    files[block.index].write_bytes(bytes(content))


def _position(path: Path) -> tuple[int, int]:
    return int(path.parent.parent.name), int(path.parent.name)
