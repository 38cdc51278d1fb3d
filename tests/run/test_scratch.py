"""Temporary folders of workers: gone at the end, and after a kill with the next sweep."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mkldist.errors import OutputError
from mkldist.run.scratch import mark_sockets, remove_abandoned, scratch_of_workers
from tests.variants import quick

HELD = """
import sys
from multiprocessing.util import get_temp_dir
from mkldist.errors import OutputError
from mkldist.run.scratch import mark_sockets, scratch_of_workers
mark_sockets()
mark_sockets()
with scratch_of_workers():
    print(get_temp_dir(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_folders_of_a_killed_process_go_and_those_of_living_ones_stay(folder):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", HELD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    sockets = [Path(process.stdout.readline().strip()) for process in processes]
    assert all(len(list(one.iterdir())) == 1 for one in sockets)
    (folder / "pymp-of-another-program").mkdir()
    assert len(list(folder.iterdir())) == 5
    processes[0].kill()
    processes[0].communicate()
    assert remove_abandoned() == 2
    assert not sockets[0].exists()
    assert sockets[1].exists()
    assert remove_abandoned() == 0
    processes[1].communicate()
    assert [path.name for path in folder.iterdir()] == ["pymp-of-another-program"]


def test_dask_uses_the_folder_while_the_context_lasts(folder):
    import dask

    before = dask.config.get("temporary-directory")
    with scratch_of_workers():
        [own] = folder.iterdir()
        assert dask.config.get("temporary-directory") == str(own)
    assert not own.exists()
    assert dask.config.get("temporary-directory") == before


def test_sockets_are_marked_in_the_folder_of_multiprocessing():
    from multiprocessing.util import get_temp_dir

    mark_sockets()
    before = set(Path(get_temp_dir()).iterdir())
    mark_sockets()
    assert set(Path(get_temp_dir()).iterdir()) == before


@pytest.mark.parametrize(
    "option",
    quick([[], ["--workers", "1"]]),
    ids=["in a thread", "in processes"],
)
def test_without_a_folder_for_temporary_files_the_command_says_so(tmp_path, option):
    """As root may write everywhere, the list of folders that Python tries is made empty."""
    program = (
        "import tempfile; tempfile._candidate_tempdir_list = lambda: []\n"
        "from mkldist.cli import main; main()"
    )
    words = ["sweep", "two_circles", "--output", str(tmp_path / "out"), *option]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2, done.stderr
    assert "TMPDIR: found no folder for temporary files that can be written" in done.stderr
    assert "Set TMPDIR to one." in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_folder_for_temporary_files_is_a_full_disk(folder, monkeypatch):
    def full(path, *details, **more):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(OutputError, match="no space left on the device"), scratch_of_workers():
        pass


@pytest.mark.parametrize("vanishes", [False, True])
def test_the_folder_of_sockets_is_removed_without_a_word(folder, vanishes):
    program = (
        "import shutil, sys\n"
        "from multiprocessing.util import get_temp_dir\n"
        "from mkldist.run.scratch import make_socket_folder\n"
        "make_socket_folder(); made = get_temp_dir(); make_socket_folder()\n"
        "assert get_temp_dir() == made; print(made)\n"
        f"{vanishes} and shutil.rmtree(made)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()).parent == folder
    assert list(folder.iterdir()) == []


def test_a_folder_of_too_long_a_path_is_refused_before_workers_start(tmp_path, monkeypatch):
    long = tmp_path / ("long" * 25)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    words = ["sweep", "two_circles", "--workers", "1", "--output", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "mkldist", *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert re.search(r"TMPDIR: found .*long, a path of \d+ bytes; expected at most", done.stderr)
    assert "internal" not in done.stderr
