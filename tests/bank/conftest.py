"""Small stores for the tests of the Gram store."""

import pytest

from mkldist.bank import store as bank_store
from mkldist.bank.store import BankStore
from tests.bank import store_scripts as scripts


@pytest.fixture
def small_blocks(monkeypatch):
    """Cut stores into blocks of a few kernels."""
    monkeypatch.setattr(bank_store, "CHUNK_BYTES", 8192)
    monkeypatch.setattr(bank_store, "KERNELS_PER_CHUNK", 4)


@pytest.fixture
def built(tmp_path, small_blocks):
    """Return a complete store of small blocks."""
    scripts.build(tmp_path)
    return BankStore.open(tmp_path, scripts.BANK)
