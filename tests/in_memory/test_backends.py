"""Banks by their `bank_size` and backend, against the matrices of their source."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine
from mkldist.bank.sources import ArraySource
from mkldist.errors import DataError, GramError
from mkldist.fit import bank as bank_module
from mkldist.fit.bank import BankSize, loaded, recomputed, stored
from tests.bank.bank_suite import random_grams

GRAMS = random_grams(30, 25)
SIZE = BankSize(30, 25, np.dtype("float64"))


def matrices(bank):
    return answer(bank, [Combine(np.eye(bank.n_kernels))])[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_loaded_bank_holds_all_kernels(monkeypatch, dtype, threads):
    monkeypatch.setattr(bank_module, "n_processors", lambda: threads)
    grams = random_grams(6, 450)  # large enough for parts of several threads
    bank = loaded(ArraySource(grams), np.dtype(dtype))
    assert bank.dtype == dtype
    assert bank.n_bytes == BankSize(6, 450, np.dtype(dtype)).n_bytes
    np.testing.assert_array_equal(matrices(bank), grams)


def test_values_beyond_the_type_are_refused():
    with pytest.raises(GramError, match="kernel 0: found values beyond the range of float32"):
        loaded(ArraySource(1e39 * GRAMS), np.dtype("float32"))


def test_a_recomputed_bank_computes_all_kernels():
    np.testing.assert_array_equal(matrices(recomputed(ArraySource(GRAMS))), GRAMS)


@pytest.mark.parametrize("backend", ["mmap", "stream"])
def test_a_stored_bank_is_found_again_in_its_folder(tmp_path, backend):
    made = []

    def source():
        made.append(1)
        return ArraySource(GRAMS)

    for _ in range(2):
        bank = stored(source, "bank", SIZE, backend, tmp_path / "here")
        np.testing.assert_array_equal(matrices(bank), GRAMS)
        bank.close()
    assert len(made) == 1
    assert (tmp_path / "here" / "bank").is_dir()


def test_a_disk_without_room_is_refused_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr(bank_module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(DataError, match=r"0\.0 GiB of free space; expected .* for the bank"):
        stored(lambda: pytest.fail("computed"), "bank", SIZE, "stream", tmp_path)


def test_sizes_are_known_before_memory_is_taken(monkeypatch):
    monkeypatch.setattr(bank_module, "physical_memory", lambda: 2 * SIZE.n_bytes)
    larger = BankSize(31, 25, np.dtype("float64"))
    assert (SIZE.fits, larger.fits) == (True, False)
    assert SIZE.backend("auto", "recompute") == "memory"
    assert larger.backend("auto", "recompute") == "recompute"
    assert larger.backend("stream", "recompute") == "stream"
    said = r"'memory' for 31 kernels on 25 points, which take .* Choose backend='recompute'"
    with pytest.raises(DataError, match=said):
        larger.backend("memory", "recompute")
