"""Making the factors of a bank and storing their pieces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mkldist.errors import StoreError
from mkldist.gram.build import BuildReceipt
from mkldist.gram.build_time import Stopwatch
from mkldist.gram.factor_bank import factorised
from mkldist.gram.loading import retried
from mkldist.gram.shapes import FactorBlock
from mkldist.gram.sources import BankSource
from mkldist.gram.store import FactorStore
from mkldist.optim.pivoted_cholesky import PIECE, Piece


@dataclass(eq=False)
class StoredPieces:
    """Pieces of the factor of one kernel in a store, which counts those that it takes.

    Parameters
    ----------
    store : FactorStore
        The store.
    kernel : int
        The kernel.
    n_blocks, n_bytes : int
        Pieces written, and their bytes.
    """

    store: FactorStore
    kernel: int
    n_blocks: int = 0
    n_bytes: int = 0
    _watch: Stopwatch = field(default_factory=Stopwatch)

    def get(self, index: int) -> Piece | None:
        """Return a piece, None if it is missing or damaged.

        Raises
        ------
        mkldist.errors.UnreadableError
            If the medium did not answer for some seconds.
        """
        block = self.store.block(self.kernel, index)
        try:
            return retried(lambda: self.store.read(block))
        except StoreError:
            return None
        finally:
            self._watch = Stopwatch()

    def put(self, index: int, piece: Piece) -> None:
        """Store a piece, and the time since the last one was read or stored.

        Raises
        ------
        mkldist.errors.OutputError
            If the store cannot be written.
        """
        self.store.write(self.store.block(self.kernel, index), piece, self._watch.spent())
        self.n_blocks += 1
        self.n_bytes += self.store.shape.chunk_bytes
        self._watch = Stopwatch()


def build_factors(
    source: BankSource, store: FactorStore, seed: int, blocks: Iterable[FactorBlock]
) -> BuildReceipt:
    """Make and store the missing ones among the given pieces, and those that precede them.

    Raises
    ------
    mkldist.errors.GramError
        If a kernel has values that are not finite.
    mkldist.errors.OutputError
        If the store cannot be written.
    """
    n_blocks = n_bytes = 0
    for block in blocks:
        pieces = StoredPieces(store, block.kernel)
        rank = (block.piece + 1) * PIECE
        factorised(source, block.kernel, rank=rank, seed=seed, kept=pieces, dtype=store.shape.dtype)
        n_blocks, n_bytes = n_blocks + pieces.n_blocks, n_bytes + pieces.n_bytes
    return BuildReceipt(n_blocks, n_bytes)
