"""Opening of a stored bank, of Gram matrices or of factors, by what its files say."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from mkldist.gram.array_documents import GROUP
from mkldist.gram.blob_places import open_blobs
from mkldist.gram.factor_documents import describes_factors
from mkldist.gram.factor_store import FactorStore
from mkldist.gram.store import GramStore

BankStore: TypeAlias = GramStore | FactorStore


def open_store(root: str | Path, bank_id: str) -> BankStore:
    """Return the store of an existing bank.

    Raises
    ------
    mkldist.errors.StoreError
        If it is missing, damaged or of another layout.
    """
    if describes_factors(open_blobs(root, bank_id).get(GROUP)):
        return FactorStore.open(root, bank_id)
    return GramStore.open(root, bank_id)
