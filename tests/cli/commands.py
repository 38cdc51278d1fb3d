"""Commands of mkldist as a shell runs them, in a process of their own or in this one."""

import io
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from mkldist.cli import main


def run(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run ``mkldist`` with these words in a folder, in another process; expect an exit code."""
    return _checked(
        subprocess.run(
            [sys.executable, "-m", "mkldist", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        ),
        code,
    )


def run_here(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Do the same in this process, which has imported what the command needs."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))  # they take bytes too
    ended = 0
    with pytest.MonkeyPatch.context() as patch, chdir(folder):
        patch.setattr(sys, "argv", ["mkldist", *words])
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main()
            except SystemExit as end:
                ended = end.code
    texts = (stream.seek(0) or stream.read() for stream in (out, err))
    return _checked(subprocess.CompletedProcess(words, ended, *texts), code)


def _checked(done: subprocess.CompletedProcess[str], code: int) -> subprocess.CompletedProcess[str]:
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done
