"""Locks on folders of banks: users share them, and who removes is alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mkldist.bank.cache import removing_banks, using_banks
from mkldist.errors import OutputError


def test_users_share_a_folder_and_keep_those_out_who_remove(tmp_path):
    root = tmp_path / "banks"
    with using_banks(str(root)):
        with using_banks(str(root)):
            pass
        with pytest.raises(OutputError, match="banks that a sweep at work uses"):
            removing_banks(root).__enter__()
    with removing_banks(root):
        pass


def test_one_user_is_alone_and_of_several_none(tmp_path):
    with using_banks(str(tmp_path)) as use:
        with using_banks(str(tmp_path)) as other:
            with use.alone() as alone, other.alone() as also:
                assert (alone, also) == (False, False)
            with pytest.raises(OutputError):
                removing_banks(tmp_path).__enter__()
        with use.alone() as alone:
            assert alone
        with pytest.raises(OutputError):
            removing_banks(tmp_path).__enter__()


def test_nobody_removes_the_banks_of_a_user_who_tries_to_be_alone(tmp_path):
    with using_banks(str(tmp_path)) as use:
        with using_banks(str(tmp_path)):
            attempt = use.alone()
            assert not attempt.__enter__()
        with pytest.raises(OutputError):
            removing_banks(tmp_path).__enter__()
        attempt.__exit__(None, None, None)
    with removing_banks(tmp_path):
        pass


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    script = f"""
import os, signal
from mkldist.bank.cache import using_banks
with using_banks({str(tmp_path)!r}):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode < 0
    with removing_banks(tmp_path):
        pass


@pytest.mark.parametrize("root", [None, "memory://banks", "/proc/no-folder-can-be-made-here"])
def test_places_without_locks_can_be_used(root):
    with using_banks(root):
        pass


def test_a_folder_that_cannot_be_made_cannot_be_cleaned(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        removing_banks(tmp_path / "file" / "banks").__enter__()
