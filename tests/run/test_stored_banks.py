"""Banks that are built alone, which of them a sweep keeps, and their removal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mkldist.bank.cache import NodeCache, removing_banks, using_banks
from mkldist.bank.store import GramStore
from mkldist.errors import OutputError, StoreError
from mkldist.run import sweep as clean_sweep
from mkldist.run import sweep_loop
from mkldist.run.clean import remove, stored_banks, total_bytes
from mkldist.run.sweep import build_banks
from tests.bank.stores import stored
from tests.run.here import TEXT, Failing, kept, spec_of, sweep
from tests.run.sweeps import run_here, sweep_text


def not_kept(text: str) -> str:
    return text.replace("keep_banks = true", "keep_banks = false")


def test_banks_that_are_not_kept_lie_apart_from_those_of_other_sweeps(tmp_path, client):
    sweep(TEXT, tmp_path / "first")
    shared = kept(tmp_path / "banks")
    assert len(shared) == 3
    sweep(not_kept(TEXT).replace('"small"', '"second"'), tmp_path / "second")
    assert kept(tmp_path / "banks") == shared
    assert kept(tmp_path / "second" / "banks") == []


def test_in_a_shared_folder_only_own_banks_are_deleted(tmp_path, client):
    sweep(TEXT, tmp_path / "first")
    root = tmp_path / "banks"
    shared = kept(root)
    text = not_kept(sweep_text({"uniform": [1.0]}, name="second", repeats=4))
    sweep(text.replace("keep_banks", f'banks = "{root}"\nkeep_banks'), tmp_path / "second")
    assert kept(root) == shared


def test_own_banks_in_a_shared_folder_stay_while_another_sweep_uses_it(tmp_path, client):
    root = tmp_path / "elsewhere"
    text = not_kept(TEXT).replace("keep_banks", f'banks = "{root}"\nkeep_banks')
    with using_banks(str(root)):
        sweep(text, tmp_path / "small")
        assert len(kept(root)) == 3
    sweep(text.replace("10.0", "20.0"), tmp_path / "small")
    assert len(kept(root)) == 3  # which another sweep may have built
    sweep(text.replace('"small"', '"second"').replace("n = 80", "n = 60"), tmp_path / "second")
    assert len(kept(root)) == 3


def test_a_call_after_a_kill_removes_the_banks_that_no_run_needs_any_more(
    tmp_path, client, monkeypatch
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    output = tmp_path / "small"
    sweep(not_kept(TEXT), output)
    built(not_kept(TEXT), output)  # as a kill before the removal would leave them
    copy = NodeCache().path_of(GramStore.open(str(output / "banks"), kept(output / "banks")[0]))
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(b"")
    assert sweep(not_kept(TEXT), output).computed == 0
    assert kept(output / "banks") == []
    assert not copy.exists()


TWO_LABELS = TEXT.replace(
    "[outputs]",
    TEXT[TEXT.index("[[banks]]") : TEXT.index("[outputs]")].replace(
        "[[banks]]", '[[banks]]\nname = "plain"', 1
    ).replace('"trace"', '"none"')
    + "[outputs]",
)  # fmt: skip


def built(text: str, output: Path):
    return build_banks(spec_of(text), origin=output.parent / "x.toml", output=output)


def test_banks_of_one_id_are_built_once(tmp_path, client):
    result = built(TWO_LABELS, tmp_path / "small")
    assert (len(result.banks), result.blocks) == (3, 3)
    store = GramStore.open(result.root, result.banks[0])
    assert result.bytes == 3 * 8 * store.n_kernels * store.layout.n_entries
    assert kept(Path(result.root)) == list(result.banks)
    client.tasks = []
    assert built(TWO_LABELS, tmp_path / "small").blocks == 0
    assert client.tasks == []


def test_building_is_tried_again_when_a_worker_dies(tmp_path, client, monkeypatch):
    Failing(monkeypatch, "build", RuntimeError("worker died"), times=2)
    assert built(TEXT, tmp_path / "small").blocks == 3


def test_a_bank_that_cannot_be_built_is_reported_and_the_others_are_built(
    tmp_path, client, monkeypatch
):
    real = sweep_loop.build
    bad: list[str] = []

    def build(task):
        bad.append(task.ref.plan.id)
        if task.ref.plan.id == bad[0]:
            raise ZeroDivisionError("by nought")
        return real(task)

    monkeypatch.setattr(sweep_loop, "build", build)
    with pytest.raises(StoreError, match="ZeroDivisionError: by nought"):
        built(TEXT, tmp_path / "small")
    assert len(kept(tmp_path / "banks")) == 2


METHODS = {"uniform": [1.0]}


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
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

    monkeypatch.setattr(clean_sweep._Sweep, "work", work)
    run_here(sweep_text(METHODS), tmp_path / "results" / "small", "tcp://nowhere:1")
    assert tried == [root]
    with removing_banks(root):
        pass


def test_a_sweep_that_stores_nothing_notes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(clean_sweep._Sweep, "work", lambda *given: None)
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
