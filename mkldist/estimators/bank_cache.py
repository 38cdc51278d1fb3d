"""Banks that estimators of this process share: a grid search makes the bank of a split once.

A bank is found again by the content of its points and by its kernels, of functions of the user by
their code.  The cache holds the banks
used last, up to a number of bytes, and nothing of it outlives the process.  Each process of a
parallel search has its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mkldist.estimators.rows import Rows
from mkldist.gram.recomputed import RecomputedBank
from mkldist.identity import array_id, content_id
from mkldist.in_memory.given_kernels import bank_spec
from mkldist.in_memory.kernel_bank import KernelBank
from mkldist.kernel_functions.custom import CustomFunction
from mkldist.machine_memory import physical_memory
from mkldist.memory import row_cache_bytes

SHARE_OF_MEMORY = 8  # an eighth of this machine's memory holds banks


@dataclass(frozen=True)
class BankRequest:
    """Everything that decides what a bank holds, besides the points.

    Parameters
    ----------
    kernels : str or sequence
        As for :class:`mkldist.KernelBank`, as are the others.
    normalisation : str or sequence of str
    groups : mapping or None
    backend : str
    seed : int
    views : mapping of str to sequence of int
    gaps : bool
        True if points may lack features, NaN.
    """

    kernels: Any
    normalisation: str | Sequence[str]
    groups: Mapping[str, Sequence[int | str]] | None
    backend: str
    seed: int
    views: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    gaps: bool = False

    def key(self, rows: Rows) -> str:
        """Return the name of the bank of these kernels on some rows."""
        settings = {"normalisation": self.normalisation, "backend": self.backend}
        spec = bank_spec(self.kernels, **settings)
        groups = {name: list(map(str, columns)) for name, columns in (self.groups or {}).items()}
        return content_id(
            points=array_id(*rows.arrays),
            names=None if rows.names is None else list(rows.names),
            bank=spec.model_dump(mode="json"),
            functions=[
                CustomFunction.named(name, f"kernels[{number}].function").identity
                for number, name in spec.imported.items()
            ],
            groups=groups,
            views={name: list(map(str, columns)) for name, columns in self.views.items()},
            gaps=self.gaps,
            seed=self.seed,
        )

    def made(self, rows: Rows) -> KernelBank:
        """Make the bank."""
        return KernelBank(
            rows.table(),
            self.kernels,
            normalisation=self.normalisation,
            groups=self.groups,
            views=self.views,
            missing="zero" if self.gaps else "error",
            texts=() if rows.texts is None else rows.texts.names,
            backend=self.backend,
            seed=self.seed,
        )


@dataclass(eq=False)
class _Entry:
    """A bank, made by the first thread that takes the lock; one thread at a time uses it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    bank: KernelBank | None = None
    n_bytes: int = 0


class BankCache:
    """The banks used last, of limited size.

    Parameters
    ----------
    limit : int, optional
        Bytes that the banks may take; by default an eighth of this machine's memory.  A larger
        bank is made for each use.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = physical_memory() // SHARE_OF_MEMORY if limit is None else limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def n_bytes(self) -> int:
        """Bytes that the banks take."""
        with self._lock:
            return sum(entry.n_bytes for entry in self._entries.values())

    @contextmanager
    def bank(self, request: BankRequest, rows: Rows) -> Iterator[KernelBank]:
        """Lend a bank, made unless it is kept; no other thread uses it meanwhile.

        Parameters
        ----------
        request : BankRequest
            Its kernels.
        rows : Rows
            Its points.
        """
        key = request.key(rows)
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        try:
            with entry.lock:
                if entry.bank is None:
                    entry.bank = request.made(rows)
                    entry.n_bytes = sum(a.nbytes for a in rows.arrays) + _size(entry.bank)
                yield entry.bank
        finally:
            self._shrink(self.limit)

    def clear(self) -> None:
        """Forget all banks."""
        self._shrink(-1)

    def _shrink(self, limit: int) -> None:
        """Forget the banks used longest ago."""
        with self._lock:
            total = sum(entry.n_bytes for entry in self._entries.values())
            while self._entries and total > limit:
                total -= self._entries.popitem(last=False)[1].n_bytes


def _size(bank: KernelBank) -> int:
    """Return the bytes that a bank takes in memory."""
    stored = bank.view.bank
    if isinstance(stored, RecomputedBank):
        return min(row_cache_bytes(None), stored.n_bytes)
    return stored.n_bytes


BANKS = BankCache()
"""The banks of this process."""
