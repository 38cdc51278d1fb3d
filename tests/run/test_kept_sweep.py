"""Files that an output folder keeps of a sweep that was given in Python."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from mkldist.data.given import given_data
from mkldist.errors import OutputError
from mkldist.results.folder import OutputFolder
from mkldist.run.saved_inputs import FROM_FILES, SavedInputs, file_name, with_checksum_header

X, Y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
DATA = {"a": given_data((X, Y), "a"), "b-2": given_data((-X, Y), "b")}


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
    changed = {"a": given_data((X + 1, Y), "a"), "new": DATA["b-2"]}
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
