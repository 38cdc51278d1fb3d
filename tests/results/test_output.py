"""Claims on an output folder: one sweep owns it, and one process writes at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from mkldist.errors import OutputError
from mkldist.results.folder import claimed, manifest_name, no_folder
from mkldist.results.journal import Journal
from tests.results.sweeps import made_up_plan, made_up_record


def test_a_folder_is_made_and_belongs_to_its_sweep(tmp_path):
    path = tmp_path / "new" / "sweep"
    with claimed(path, "one") as folder:
        assert folder.records.parent == path
    assert manifest_name(path) == "one"
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
    with pytest.raises(OutputError, match=f"mkldist verify {tmp_path} --repair"):
        manifest_name(tmp_path)
    with claimed(tmp_path, "one"):
        pass
    assert manifest_name(tmp_path) == "one"


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
    assert manifest_name(path) == "one"
    with pytest.raises(OutputError, match="folder of sweep 'one'"), claimed(path, "two"):
        pass


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
