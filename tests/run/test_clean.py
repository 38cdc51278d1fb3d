"""Removal of stored banks, and what it leaves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mkldist.bank.cache import NodeCache, removing_banks, using_banks
from mkldist.errors import OutputError
from mkldist.run import sweep
from mkldist.run.clean import remove, stored_banks, total_bytes
from tests.bank.stores import stored
from tests.run.sweeps import run_here, sweep_text

METHODS = {"uniform": [1.0]}


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_sweep_loses_its_banks_alone_and_computes_them_again(tmp_path, scheduler):
    path = tmp_path / "results" / "small"
    run_here(sweep_text(METHODS), path, scheduler)
    other = stored(tmp_path / "results" / "banks", np.ones((1, 4, 4)), "float64", "other")
    before, banks = files(path), stored_banks(path)
    assert len(banks) == 2  # one for each split
    assert {bank.words for bank in banks} == {"two_moons, bank"}
    on_disk = sum(len(content) for bank in banks
                  for content in files(Path(bank.store.location)).values())  # fmt: skip
    assert remove(banks) == total_bytes(banks) + on_disk == on_disk
    assert stored_banks(path) == ()
    assert not other.missing()
    assert files(path) == before
    assert run_here(sweep_text(METHODS), path, scheduler).computed == 0
    assert stored_banks(path) == ()  # nothing was to do
    more = run_here(sweep_text({"uniform": [1.0, 2.0]}), path, scheduler)
    assert (more.computed, more.failed) == (2, 0)
    assert len(stored_banks(path)) == 2


def test_a_sweep_at_work_keeps_its_banks(tmp_path, monkeypatch):
    root, tried = tmp_path / "results" / "banks", []

    def work(*given):
        with pytest.raises(OutputError, match="a sweep at work"):
            removing_banks(root).__enter__()
        tried.append(root)

    monkeypatch.setattr(sweep._Sweep, "work", work)
    run_here(sweep_text(METHODS), tmp_path / "results" / "small", "tcp://nowhere:1")
    assert tried == [root]
    with removing_banks(root):
        pass


def test_a_sweep_that_stores_nothing_notes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep._Sweep, "work", lambda *given: None)
    text = sweep_text(METHODS, backend="recompute")
    run_here(text, tmp_path / "results" / "small", "tcp://nowhere:1")
    assert not (tmp_path / "results" / "banks").exists()
    assert stored_banks(tmp_path / "results" / "small") == ()


def test_all_banks_of_a_folder_go_with_their_copies_and_nothing_else(tmp_path, cache):
    root = tmp_path / "banks"
    store = stored(root, np.ones((2, 5, 5)), "float64", "one")
    stored(root, np.ones((2, 5, 5)), "float32", "two")
    (root / "mine").mkdir()
    (root / "mine" / "thesis.txt").write_text("years of work")
    NodeCache().open(store).close()
    banks = stored_banks(root)
    assert [bank.copy is not None for bank in banks] == [True, False]
    assert banks[0].copy_bytes == NodeCache().path_of(store).stat().st_size
    assert remove(banks) > 2 * 2 * 25 * 4
    assert stored_banks(root) == ()
    assert (root / "mine" / "thesis.txt").read_text() == "years of work"
    assert not list(cache.glob("*.bank"))


def test_nothing_goes_from_a_folder_in_use(tmp_path, cache):
    store = stored(tmp_path, np.ones((1, 4, 4)), "float64")
    banks = stored_banks(tmp_path)
    with using_banks(str(tmp_path)), pytest.raises(OutputError, match="at work"):
        remove(banks)
    assert not store.missing()


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert stored_banks(tmp_path / "nowhere") == ()
