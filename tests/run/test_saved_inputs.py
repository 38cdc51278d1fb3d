"""What the output folder saves of a sweep's inputs, and what paths and names mean."""

from __future__ import annotations

import errno
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mkldist.cli.sweeps import plan_command as plan
from mkldist.cli.sweeps import status_command as status
from mkldist.cli.sweeps import sweep_command as sweep
from mkldist.data.inputs import input_data
from mkldist.errors import OutputError, StoreError
from mkldist.results.folder import OutputFolder, claimed
from mkldist.results.status import sweep_status
from mkldist.run.paths import banks_root, output_path, results_of, sweep_file_of
from mkldist.run.saved_inputs import (
    FROM_FILES,
    FilesBefore,
    SavedInputs,
    file_name,
    fits_checksum_header,
    with_checksum_header,
)
from mkldist.run.verify import verify
from mkldist.spec.load import load_sweep

X, Y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
DATA = {"a": input_data((X, Y), "a"), "b-2": input_data((-X, Y), "b")}


def written(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.path.rglob("*.*")}


def test_what_is_there_is_not_written_again(tmp_path):
    folder, kept = OutputFolder(tmp_path), SavedInputs("name = 1\n", DATA)
    assert kept.write(folder) == []
    names = {file_name(name, data) for name, data in DATA.items()}
    before = written(folder)
    assert before.keys() == names | {"sweep.toml"}
    assert kept.write(folder) == []
    assert written(folder) == before
    SavedInputs("name = 2\n", DATA).write(folder)
    assert {name for name, at in written(folder).items() if at != before[name]} == {"sweep.toml"}


def test_damaged_data_are_written_anew(tmp_path):
    folder, kept = OutputFolder(tmp_path), SavedInputs("s", DATA)
    kept.write(folder)
    file, other = (folder.data / file_name(name, data) for name, data in DATA.items())
    sound, before = file.read_bytes(), other.stat().st_mtime_ns
    file.write_bytes(other.read_bytes())
    kept.write(folder)
    assert file.read_bytes() == sound
    assert other.stat().st_mtime_ns == before


def test_data_that_changed_are_told_and_old_ones_removed(tmp_path):
    folder = OutputFolder(tmp_path)
    SavedInputs("s", DATA).write(folder)
    changed = {"a": input_data((X + 1, Y), "a"), "new": DATA["b-2"]}
    [said] = SavedInputs("s", changed).write(folder)
    assert said.startswith("a: these data differ from those of the last call")
    assert written(folder).keys() - {"sweep.toml"} == {
        file_name(name, data) for name, data in changed.items()
    }


def test_a_sweep_of_files_keeps_nothing(tmp_path):
    assert FROM_FILES.write(OutputFolder(tmp_path)) == []
    assert not written(OutputFolder(tmp_path))


def test_a_full_disk_is_told_and_leaves_the_old_words(tmp_path, monkeypatch):
    folder = OutputFolder(tmp_path)
    SavedInputs("old", {}).write(folder)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OutputError, match="no space left on the device"):
        SavedInputs("new", DATA).write(folder)
    assert folder.sweep_file.read_bytes() == with_checksum_header("old")
    assert written(folder).keys() == {"sweep.toml"}


TEXT = 'name = "Äpfel"\nseed = 3\n'


def crc32c(content: bytes) -> int:
    """Return the CRC with the reflected polynomial of Castagnoli, a bit at a time."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_first_line_holds_the_checksum_of_the_others():
    first, below = with_checksum_header(TEXT).decode().split("\n", 1)
    digits = crc32c(TEXT.encode()).to_bytes(4, "little").hex()
    assert (first, below) == (f"# checksum of the lines below: crc32c:{digits}", TEXT)
    assert tomllib.loads(with_checksum_header(TEXT).decode()) == {"name": "Äpfel", "seed": 3}


def test_every_flipped_bit_and_every_cut_is_found():
    whole = with_checksum_header(TEXT)
    assert fits_checksum_header(whole) is True
    flipped = [bytearray(whole) for _ in range(8 * len(whole))]
    for place, content in enumerate(flipped):
        content[place // 8] ^= 1 << place % 8
    # A file that no longer begins with a comment counts as one of the user; TOML refuses it.
    assert {fits_checksum_header(bytes(content)) for content in flipped[:8]} == {None}
    assert not any(fits_checksum_header(bytes(content)) for content in flipped[8:])
    assert not any(fits_checksum_header(whole[:end]) for end in range(len(whole)))


def test_a_file_of_the_user_has_no_checksum():
    assert fits_checksum_header(TEXT.encode()) is None


def test_verify_tells_of_words_that_were_changed(tmp_path):
    with claimed(tmp_path / "out", "mine") as folder:
        SavedInputs(TEXT, {}).write(folder)
    file = OutputFolder(tmp_path / "out").sweep_file
    (words,) = (one for one in verify(tmp_path / "out") if one.kind == "words")
    assert (words.files, words.damaged, words.note) == (1, (), "")
    file.write_bytes(file.read_bytes().replace(b"seed = 3", b"seed = 1"))
    (words,) = (one for one in verify(tmp_path / "out") if one.kind == "words")
    assert words.damaged == (str(file),)
    assert "changed by hand" in words.note
    file.write_bytes(file.read_bytes().split(b"\n", 1)[1])
    (words,) = (one for one in verify(tmp_path / "out") if one.kind == "words")
    assert (words.damaged, words.note) == ((), "without a checksum")


SWEEP = """
name = "small"
[[datasets]]
name = "t"
file = "t.csv"
[splits]
train_fraction = 0.5
[[banks]]
kernels = [{ function = "linear" }]
[[methods]]
name = "uniform"
C = 1
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the table of a sweep in the folder of the commands."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i * 7 % 11},{'ab'[i % 2]}\n" for i in range(20))
    (tmp_path / "t.csv").write_text(f"x,label\n{rows}")
    (tmp_path / "small.toml").write_text(SWEEP)
    return tmp_path / "t.csv"


def said(command, *words: str) -> str:
    return CliRunner().invoke(command, words, catch_exceptions=False).output


@pytest.mark.slow
def test_a_changed_file_is_named_with_what_becomes_of_the_runs(table: Path) -> None:
    said(sweep, "small.toml")
    assert "recorded:  1 of 1 run in" in said(plan, "small.toml")
    assert "t.csv" not in said(status, "small")
    before = table.read_text()
    table.write_text(before.replace("7,", "8,", 1))
    changed = f"{table} changed since this sweep read it on "
    told = said(plan, "small.toml")
    assert f"changed:   {changed}" in told
    assert "their records are kept, and count again if the old file comes back" in told
    assert f"{table} was written after this sweep read it on " in said(status, "small")
    told = said(sweep, "small.toml")
    assert changed in told
    assert "another sweep of the name" not in told
    assert "was written" not in said(status, "small")
    assert "changed:" not in said(plan, "small.toml")
    table.write_text(before)
    assert "changed:" not in said(plan, "small.toml")  # the old runs count again


def test_data_from_python_have_no_files(table: Path) -> None:
    spec = load_sweep(Path("small.toml"))
    assert FilesBefore.of(spec, (), table.parent, ["t"]).stamps == {}
    assert list(FilesBefore.of(spec, (), table.parent).stamps["t"]) == [str(table)]


PATHS_SWEEP = """
name = "mine"
[[datasets]]
name = "two_moons"
[[banks]]
family = "do2009"
[[methods]]
name = "majority"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return the folder of the command, with a sweep file and the results that it made."""
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(PATHS_SWEEP)
    with claimed(Path("results/mine"), "mine", Path("mine.toml")):
        pass
    return tmp_path


@pytest.mark.parametrize("given", ["results/mine", "results/mine/", "mine", "mine.toml"])
def test_results_are_found_by_folder_name_and_file(folder, given):
    assert results_of(Path(given)) == Path("results/mine")


@pytest.mark.parametrize("given", ["results/mine", "mine"])
def test_results_whose_manifest_is_a_folder_are_found_for_the_command_to_tell(folder, given):
    Path("mine.toml").unlink()
    Path("results/mine/sweep.json").unlink()
    Path("results/mine/sweep.json").mkdir()
    assert results_of(Path(given), several=True) == Path("results/mine")
    for refused in (sweep_status, sweep_file_of):
        said = r"sweep\.json: found a folder; .* Move that folder away, then repeat the sweep's"
        with pytest.raises(OutputError, match=said):
            refused(Path("results/mine"))


def test_a_file_names_the_folder_that_it_writes_to(folder):
    Path("other.toml").write_text(PATHS_SWEEP + '[outputs]\npath = "elsewhere"')
    with pytest.raises(StoreError, match=r"elsewhere: found no such folder.*mkldist sweep other"):
        results_of(Path("other.toml"))
    Path("elsewhere").mkdir()
    assert results_of(Path("other.toml")) == Path("elsewhere")
    with pytest.raises(StoreError, match="Run the sweep first: mkldist sweep quickstart"):
        results_of(Path("quickstart"))


def test_folders_without_results_are_left_to_the_command(folder):
    (folder / "empty").mkdir()
    assert results_of(folder / "empty") == folder / "empty"


@pytest.mark.parametrize("given", [".", "results"])
def test_a_folder_of_results_of_sweeps_lists_them(folder, given):
    said = "found a folder with the results of 1 sweep; .* Name it: results/mine"
    with pytest.raises(StoreError, match=said):
        results_of(Path(given))


def test_a_name_of_nothing_meets_the_nearest_results(folder):
    with pytest.raises(StoreError, match="Did you mean 'mine'"):
        results_of(Path("mines"))
    with pytest.raises(StoreError, match="The results here: mine"):
        results_of(Path("tumours"))


@pytest.mark.parametrize("given", ["results/mine", "results/mine/"])
def test_the_file_of_results_is_the_one_that_they_were_made_from(folder, given):
    assert sweep_file_of(Path(given)) == folder / "mine.toml"


def test_a_file_here_precedes_results_of_its_name(folder):
    assert sweep_file_of(Path("mine")) == Path("mine.toml")
    Path("mine.toml").rename("renamed.toml")
    assert sweep_file_of(Path("mine")) == folder / "mine.toml"  # and loading says that it is gone
    assert sweep_file_of(Path("unknown")) == Path("unknown")


def test_sweeps_side_by_side_share_banks_that_they_keep(folder):
    spec = load_sweep(Path("mine.toml"))
    assert output_path(spec) == Path("results/mine")
    assert output_path(spec, Path("x")) == Path("x")
    assert banks_root(spec, Path("results/mine")) == str(folder / "results/mine/banks")
    shared = load_sweep(Path("mine.toml"), ["outputs.keep_banks=true"])
    assert banks_root(shared, Path("results/mine")) == str(folder / "results/banks")
    far = load_sweep(Path("mine.toml"), ["outputs.banks=s3://bucket/banks"])
    assert banks_root(far, Path("results/mine")) == "s3://bucket/banks"
