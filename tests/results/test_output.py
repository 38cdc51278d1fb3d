"""Claims on an output folder: one sweep owns it, and one process writes at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from mkldist.errors import OutputError
from mkldist.results.manifest import manifest_name
from mkldist.results.output import claimed


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


def test_a_second_process_is_refused_and_a_killed_one_leaves_no_lock(tmp_path):
    program = textwrap.dedent(
        f"""
        import time
        from pathlib import Path
        from mkldist.results.output import claimed
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
