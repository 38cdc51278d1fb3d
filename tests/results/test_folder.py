"""Claims on an output folder: one sweep owns it, and one process writes at a time."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from mkldist.core.checksums import write_checked
from mkldist.core.durable import machine_id
from mkldist.errors import OutputError, StoreError
from mkldist.results.folder import (
    BANK_NOTE,
    DATA_NOTE,
    WORK_NOTE,
    AtWork,
    Claim,
    Manifest,
    OutputFolder,
    ReadData,
    changed_data,
    checked_note,
    claimed,
    drop_damaged_note,
    is_note_damaged,
    no_folder,
    note_banks,
    note_data,
    noted_banks,
    owner,
    put_together,
    read_data_note,
    read_manifest,
    read_work_note,
    remove_work_note,
    restored_manifest,
    rewritten_files,
    stamps_of,
    write_manifest,
    write_work_note,
)
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.layout import TreeLayout, lay_out, write_layout
from mkldist.results.schema import RunState
from mkldist.results.status import Recorded, lacking_runs, recorded_runs, sweep_status
from mkldist.results.tree import open_results
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record
from tests.run.sweeps import plan_of, record_times, records, run_here, sweep_text
from tests.variants import quick


def test_a_folder_is_made_and_belongs_to_its_sweep(tmp_path):
    path = tmp_path / "new" / "sweep"
    with claimed(path, "one") as folder:
        assert folder.records.parent == path
    assert read_manifest(path).sweep == "one"
    with claimed(path, "one"):
        pass
    with pytest.raises(OutputError, match="folder of sweep 'one'"), claimed(path, "two"):
        pass


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match=r"thesis\.tex"), claimed(tmp_path, "one"):
        pass
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["thesis.tex"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    path = tmp_path / "results"
    path.write_text("a file")
    with pytest.raises(OutputError, match="a file; expected a folder"), claimed(path, "one"):
        pass
    with pytest.raises(OutputError), claimed(path / "below", "one"):
        pass
    assert path.read_text() == "a file"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}'])
def test_a_damaged_manifest_is_made_anew_by_the_sweep(tmp_path, content):
    manifest = tmp_path / "sweep.json"
    manifest.write_text(content)
    with pytest.raises(OutputError, match="Repeat the sweep's command"):
        read_manifest(tmp_path)
    with claimed(tmp_path, "one"):
        pass
    assert read_manifest(tmp_path).sweep == "one"


@pytest.mark.parametrize("kind", ["loop", "link"])
def test_a_link_to_nothing_in_the_place_of_the_folder_is_called_that(tmp_path, kind):
    path = tmp_path / "results"
    path.symlink_to(path if kind == "loop" else tmp_path / "unmounted")
    words = "found a symbolic link to nothing"
    with pytest.raises(OutputError, match=f"{path}: {words}.*Remove"), claimed(path, "one"):
        pass
    with pytest.raises(OutputError, match=words), claimed(path / "below", "one"):
        pass
    assert no_folder(path) == "a symbolic link to nothing"


@pytest.mark.parametrize("name", ["sweep.json", ".lock", ".owner"])
def test_a_folder_in_the_place_of_a_file_is_named(tmp_path, name):
    with claimed(tmp_path, "one"):
        pass
    place = tmp_path / name
    place.unlink(missing_ok=True)
    place.mkdir()
    words = f"{place}: found a folder where a file is needed; expected a file. Move"
    with pytest.raises(OutputError, match=words), claimed(tmp_path, "one"):
        pass


@pytest.mark.parametrize("kind", ["gone", "loop", "link"])
def test_a_folder_whose_manifest_is_gone_is_still_that_of_its_records(tmp_path, kind):
    path = tmp_path / "one"
    with claimed(path, "one") as folder:
        Journal(folder.records).append([made_up_record(made_up_plan().runs[0])])
    folder.manifest.unlink()
    if kind != "gone":
        target = folder.manifest if kind == "loop" else tmp_path / "nothing"
        folder.manifest.symlink_to(target)
    with claimed(path, "one"):
        pass
    assert read_manifest(path).sweep == "one"
    with pytest.raises(OutputError, match="folder of sweep 'one'"), claimed(path, "two"):
        pass


@pytest.mark.slow
def test_a_second_process_is_refused_and_a_killed_one_leaves_no_lock(tmp_path):
    program = textwrap.dedent(
        f"""
        import time
        from pathlib import Path
        from mkldist.results.folder import claimed
        with claimed(Path({str(tmp_path)!r}), "one"):
            print("claimed", flush=True)
            time.sleep(60)
        """
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"claimed\n"
        with pytest.raises(OutputError, match=f"pid {other.pid} on"), claimed(tmp_path, "one"):
            pass
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    with claimed(tmp_path, "one"):
        pass


SPEC = json.dumps({"name": "one", "description": "größe"})


def with_layout(path, name="one"):
    write_layout(path, TreeLayout((), {}, {"sweep": name, "spec": SPEC}))


def test_what_is_written_comes_back_and_is_kept(tmp_path):
    write_manifest(tmp_path, "one", None)
    assert read_manifest(tmp_path) == Manifest("one")
    file = tmp_path / "one.toml"
    write_manifest(tmp_path, "one", file, SPEC)
    inode = (tmp_path / "sweep.json").stat().st_ino
    write_manifest(tmp_path, "one", None)
    assert read_manifest(tmp_path) == Manifest("one", file, SPEC)
    assert (tmp_path / "sweep.json").stat().st_ino == inode


def test_a_flipped_bit_anywhere_is_found_and_mended(tmp_path):
    file = tmp_path / "one.toml"
    file.touch()
    write_manifest(tmp_path, "one", file, SPEC)
    with_layout(tmp_path)
    path = tmp_path / "sweep.json"
    whole = path.read_bytes()
    for place in np.random.default_rng(2).choice(8 * len(whole), size=100, replace=False):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(OutputError, match="cannot be read"):
            read_manifest(tmp_path)
        found = restored_manifest(tmp_path)
        assert (found.sweep, found.spec) == ("one", SPEC)
        assert found.file is None
        assert owner(tmp_path) == "one"
        write_manifest(tmp_path, "one", file)
        assert path.read_bytes() == whole


def test_without_a_layout_the_name_is_that_of_the_folder(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "sweep.toml").touch()
    deep = "[" * 100_000  # as a file made by hand may hold
    for text in ("", '{"sweep": "one", "fo', deep):
        (folder / "sweep.json").write_text(text)
        assert owner(folder) is None
        assert restored_manifest(folder) == Manifest("mine", folder / "sweep.toml")


def test_a_manifest_without_a_checksum_is_refused(tmp_path):
    (tmp_path / "sweep.json").write_text('{"format": 2, "sweep": "one"}')
    with pytest.raises(OutputError):
        read_manifest(tmp_path)


def test_banks_are_added_by_their_folder_and_none_twice(tmp_path):
    assert noted_banks(tmp_path) == {}
    for root, banks in (("/one", ["b", "a"]), ("/one", ["b", "c"]), ("s3://two", [])):
        note_banks(tmp_path, root, banks)
    assert noted_banks(tmp_path) == {"/one": ["a", "b", "c"], "s3://two": []}
    before = (tmp_path / BANK_NOTE).stat()
    note_banks(tmp_path, "/one", ["a"])  # nothing new, so it is not written again
    after = (tmp_path / BANK_NOTE).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("text", ["", "[]", '{"/one": 1}', '{"/one": ['])
def test_a_damaged_note_names_no_bank(tmp_path, text):
    (tmp_path / BANK_NOTE).write_text(text)
    assert noted_banks(tmp_path) == {}


def broken(note: Path, kind: str) -> None:
    if kind == "text":
        note.write_text("{")
    elif kind == "folder":
        note.mkdir()
        (note / "thesis.tex").write_text("years of work")
    else:
        note.symlink_to(note)


@pytest.mark.parametrize("kind", ["text", "folder", "loop"])
def test_a_damaged_note_is_told_from_none_and_written_anew(tmp_path, kind):
    assert checked_note(tmp_path) == {}
    broken(tmp_path / BANK_NOTE, kind)
    assert is_note_damaged(tmp_path)
    found = rf"{BANK_NOTE}: found a damaged note .* Repeat the sweep's command"
    with pytest.raises(StoreError, match=found):
        checked_note(tmp_path)
    note_banks(tmp_path, "/one", ["a"])
    assert checked_note(tmp_path) == {"/one": ["a"]}
    assert (tmp_path / f"{BANK_NOTE}.moved" / "thesis.tex").exists() == (kind == "folder")
    drop_damaged_note(tmp_path)
    assert checked_note(tmp_path) == {"/one": ["a"]}


@pytest.mark.parametrize("kind", ["text", "folder", "loop"])
def test_a_damaged_note_is_dropped_where_nothing_is_stored(tmp_path, kind):
    broken(tmp_path / BANK_NOTE, kind)
    drop_damaged_note(tmp_path)
    assert checked_note(tmp_path) == {}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file that the sweep of its folder has read."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n")
    note_data(tmp_path, {"t": ReadData("old", stamps_of([path, tmp_path / "gone.csv"]))})
    return path


def test_it_reads_back_and_is_written_once(file):
    noted = read_data_note(file.parent)
    assert noted == {"t": ReadData("old", stamps_of([file]))}
    before = (file.parent / DATA_NOTE).stat().st_mtime_ns
    note_data(file.parent, noted)
    assert (file.parent / DATA_NOTE).stat().st_mtime_ns == before
    note_data(file.parent, {"u": ReadData("u", {})})
    assert set(read_data_note(file.parent)) == {"t", "u"}


def test_a_file_of_another_state_and_data_of_another_content_have_changed(file):
    folder, same = file.parent, stamps_of([file])
    assert list(changed_data(folder, {"t": ReadData("new", same)})) == []  # another label, say
    assert list(rewritten_files(folder)) == []
    os.utime(file, ns=(0, 7))
    now = stamps_of([file])
    assert list(changed_data(folder, {"t": ReadData("old", now)})) == []
    [words] = changed_data(folder, {"t": ReadData("new", now), "u": ReadData("u", {})})
    assert words.startswith(f"{file} changed since this sweep read it on 2")
    [words] = rewritten_files(folder)
    assert words.startswith(f"{file} was written after this sweep read it on 2")


def test_files_that_are_not_here_and_damaged_notes_say_nothing(file):
    file.unlink()
    assert list(rewritten_files(file.parent)) == []
    for text in ("", "[]", '{"t": 1}'):
        (file.parent / DATA_NOTE).write_text(text)
        assert read_data_note(file.parent) == {}


FIRST = AtWork("heart/level", "solving", 20.0, 2)
SECOND = AtWork("heart/level", "solving", 10.0, 3)
BANK = AtWork("heart/xu2008", "building the bank", 5.0)


def test_tasks_of_one_method_are_put_together():
    [runs, bank] = put_together([BANK, FIRST, SECOND])
    assert bank == BANK
    assert (runs.since, runs.n_runs) == (10.0, 5)
    assert len(put_together([FIRST, AtWork("heart/level", "compiling", 1.0, 1)])) == 2


def test_a_note_is_read_as_it_was_written(tmp_path):
    assert read_work_note(tmp_path) == []
    write_work_note(tmp_path, [FIRST, BANK])
    assert read_work_note(tmp_path) == [FIRST, BANK]
    remove_work_note(tmp_path)
    remove_work_note(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_note_that_cannot_be_read_or_written_says_nothing(tmp_path):
    (tmp_path / WORK_NOTE).write_text("[{}]")
    assert read_work_note(tmp_path) == []
    write_work_note(tmp_path / "nowhere", [FIRST])


@pytest.fixture
def folder(tmp_path):
    write_manifest(tmp_path, "made-up", None)
    return tmp_path


def test_runs_are_counted_by_state_and_node(folder):
    plan = made_up_plan(datasets=["heart", "wdbc"], n_splits=2)
    records = Journal(folder / "records.journal")
    lay_out(folder, plan, made_up_facts(plan))
    for run in plan.runs[:5]:
        records.append([made_up_record(run)])
    records.append([RunRecord.failed(plan.runs[5], "worker lost")])
    status = sweep_status(folder)
    assert (status.name, status.n_runs, status.path) == ("made-up", len(plan.runs), folder)
    assert status.counts == {RunState.COMPLETE: 5, RunState.FAILED: 1, RunState.WAITING: 26}
    assert status.by_node["heart/level"] == {RunState.COMPLETE: 3, RunState.WAITING: 3}
    assert sum(sum(counts.values()) for counts in status.by_node.values()) == status.n_runs
    [failed] = status.failed
    assert (failed.error, failed.id) == ("worker lost", plan.runs[5].id)
    assert (failed.node, failed.split) == ("heart/simplemkl", 0)
    params = plan.runs[5].params
    assert failed.params == {name: params[name] for name in ("C", "variant")}


def test_a_sweep_that_has_not_planned_yet_has_no_runs(folder):
    status = sweep_status(folder)
    assert (status.n_runs, dict(status.counts), status.without_layout) == (0, {}, 0)


def test_recorded_runs_are_counted_where_the_layout_is_gone(folder):
    plan, records = made_up_plan(n_splits=1), Journal(folder / "records.journal")
    for run in plan.runs[:2]:
        records.append([made_up_record(run)])
    assert sweep_status(folder).without_layout == 2
    lay_out(folder, plan, made_up_facts(plan))
    assert sweep_status(folder).without_layout is None


def test_a_claim_says_which_process_is_at_work(folder):
    assert sweep_status(folder).claim is None
    with claimed(folder, "made-up"):
        claim = sweep_status(folder).claim
        assert claim == Claim(os.getpid(), socket.gethostname(), machine_id())
        assert claim.is_live
    assert sweep_status(folder).claim is None


def test_the_claim_of_a_dead_process_is_not_live_and_one_elsewhere_is_unknown(folder):
    """Containers may share a host name, and see other processes."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    note = {"pid": child.pid, "host": socket.gethostname()}
    for machine, live in (
        ({"machine": machine_id()}, False),
        ({"machine": "another-container"}, None),
        ({}, None),
    ):
        (folder / ".owner").write_text(json.dumps(note | machine))
        claim = sweep_status(folder).claim
        assert claim is not None
        assert claim.is_live is live
    (folder / ".owner").write_text("{")
    assert sweep_status(folder).claim is None


@pytest.mark.parametrize("name", ["", "missing"])
def test_a_folder_of_no_sweep_is_an_error(tmp_path, name):
    with pytest.raises(StoreError, match="output folder of a sweep"):
        sweep_status(tmp_path / name)


def test_a_sweep_file_in_place_of_its_output_is_said_to_be_a_file(tmp_path):
    (tmp_path / "s.toml").write_text("")
    for look in (sweep_status, open_results):
        with pytest.raises(StoreError, match=r"s\.toml: found a file, not a folder; expected"):
            look(tmp_path / "s.toml")


def test_a_layout_cut_short_is_an_error(folder):
    plan = made_up_plan(n_splits=2)
    lay_out(folder, plan, made_up_facts(plan))
    layout = folder / "tree.layout"
    layout.write_bytes(layout.read_bytes()[:200])
    with pytest.raises(StoreError, match="cannot be read"):
        sweep_status(folder)


def test_runs_at_work_are_those_that_a_living_process_noted(folder):
    at_work = AtWork("heart/level", "solving", 1.0, 2)
    with claimed(folder, "made-up"):
        assert sweep_status(folder).at_work == ()
        write_work_note(folder, [at_work])
        assert sweep_status(folder).at_work == (at_work,)
    assert sweep_status(folder).at_work == ()  # as after a kill, which leaves the note


def test_recorded_runs_outside_the_plan_are_counted(folder):
    plan = made_up_plan()
    records = Journal(folder / "records.journal")
    lay_out(folder, plan, made_up_facts(plan))
    records.append([made_up_record(plan.runs[0])])
    assert sweep_status(folder).others == 0
    for run in made_up_plan(datasets=["wdbc"]).runs[:3]:
        records.append([made_up_record(run)])
    assert sweep_status(folder).others == 3
    assert sweep_status(folder).counts[RunState.COMPLETE] == 1


def test_runs_of_the_plan_failed_ones_and_others_are_counted(tmp_path):
    plan = made_up_plan()
    store = Journal(OutputFolder(tmp_path).records)
    for run in plan.runs[:4]:
        store.append([made_up_record(run)])
    store.append([RunRecord.failed(plan.runs[4], "worker lost")])
    for run in made_up_plan(datasets=["wdbc"]).runs[:2]:
        store.append([made_up_record(run)])
    assert recorded_runs(plan, tmp_path) == Recorded(tmp_path, total=5, failed=1, others=2)


def test_a_missing_folder_has_none(tmp_path):
    place = tmp_path / "nowhere"
    assert recorded_runs(made_up_plan(), place) == Recorded(place, 0, 0, 0)
    assert not place.exists()


PLAIN = sweep_text({"uniform": [1.0, 10.0]}).replace("predictions = true", "predictions = false")
BY_DEFAULT = PLAIN.replace("predictions = false", "")


def asking(*words: str) -> str:
    return BY_DEFAULT.replace("[outputs]", "\n".join(("[outputs]", *words)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "variable"),
    quick([("predictions = true", "decision_values"), ("coefficients = true", "coefficients")]),
)
def test_what_is_asked_for_later_is_computed_once(tmp_path, words, variable):
    output, asked = tmp_path / "r", asking(words)
    run_here(PLAIN, output, None)
    before = records(output)
    store = Journal(output / "records.journal")
    assert set(lacking_runs(plan_of(asked), store, output)) == before.keys()
    assert run_here(asked, output, None).computed == len(before)
    node = open_results(output)["two_moons/uniform"]
    assert variable in node
    assert np.isfinite(node[variable].to_numpy()).any(axis=-1).all()
    after = records(output)
    assert {i: one.objective for i, one in after.items()} == {
        i: one.objective for i, one in before.items()
    }
    times = record_times(output)
    assert lacking_runs(plan_of(asked), store, output) == []
    run_here(asked, output, None)
    assert record_times(output) == times


@pytest.mark.slow
def test_few_decision_values_are_kept_by_default_with_facts_of_the_data(tmp_path, monkeypatch):
    for most, name in ((10**6, "few"), (1, "many")):
        monkeypatch.setattr("mkldist.run.rounds.MOST_VALUES", most)
        run_here(BY_DEFAULT, tmp_path / name, None)
    tree = open_results(tmp_path / "few")
    node, many = tree["two_moons/uniform"], open_results(tmp_path / "many")["two_moons/uniform"]
    tested = np.isfinite(node["decision_values"].to_numpy()).sum(axis=-1)
    assert (tested == node["n_test"].to_numpy()[:, None]).all()
    assert "decision_values" not in many
    (data,) = json.loads(tree.attrs["data"]).values()
    assert data["rows"] == node.sizes["sample"] == sum(data["classes"].values())
    assert (data["features"], data["missing"]) == (2, 0)


@pytest.mark.slow
def test_what_is_kept_is_not_done_again_where_less_is_asked_for(tmp_path):
    output, asked = tmp_path / "r", asking("predictions = true")
    run_here(asked, output, None)
    times = record_times(output)
    run_here(PLAIN, output, None)
    run_here(asked, output, None)
    assert record_times(output) == times


@pytest.mark.parametrize("name", ["..", "../other", "/other", "", ".", "a/../.."])
def test_a_forged_note_leads_out_of_no_folder(tmp_path, name):
    write_checked(tmp_path / BANK_NOTE, {"/one": ["a", name]})
    assert noted_banks(tmp_path) == {}
