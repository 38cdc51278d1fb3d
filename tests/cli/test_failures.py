"""Every failure of a command ends in one message and an exit code."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import click
import pytest

from mkldist.cli import DEBUG_VARIABLE, reporting
from mkldist.errors import ClusterError, DataError, SpecError

ENDS = [
    (SpecError("s.toml: tol", "-1", "a number above 0", "Leave it out"), 2,
     "mkldist: bad sweep: s.toml: tol: found -1; expected a number above 0. Leave it out.\n"),
    (DataError("a.csv", "no rows"), 2, "mkldist: bad data: a.csv: found no rows\n"),
    (ClusterError("scheduler tcp://x", "no answer"), 1,
     "mkldist: cluster: scheduler tcp://x: found no answer\n"),
    (KeyboardInterrupt(), 130, "mkldist: interrupted\n"),
    (KeyboardInterrupt("3 of 4"), 130, "mkldist: interrupted: 3 of 4\n"),
    (click.Abort(), 130, "mkldist: interrupted\n"),
    (click.UsageError("No such option"), 2, "Error: No such option\n"),
    (ZeroDivisionError("division by zero"), 1,
     "mkldist: internal error: ZeroDivisionError: division by zero. "
     "Set MKLDIST_DEBUG=1 to see where, and please report it.\n"),
    (OSError(errno.EIO, "Input/output error"), 1,
     "mkldist: internal error: OSError: [Errno 5] Input/output error. "
     "Set MKLDIST_DEBUG=1 to see where, and please report it.\n"),
    (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 900), 2,
     f"mkldist: bad input: {'x' * 60}...: found a name that is too long; expected the path of a "
     "file\n"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "code", "said"), ENDS, ids=[repr(end[0])[:20] for end in ENDS])
def test_a_failure_is_one_message_and_a_code(monkeypatch, capsys, error, code, said):
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    with pytest.raises(SystemExit) as caught, reporting():
        raise error
    assert caught.value.code == code
    assert capsys.readouterr().err == said


def test_a_traceback_is_shown_on_demand_and_keeps_the_code(monkeypatch, capsys):
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    with pytest.raises(SystemExit) as caught, reporting():
        raise SpecError("s.toml", "no such file")
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith("mkldist: bad sweep: s.toml: found no such file\n")


def test_success_says_nothing(capsys):
    with reporting():
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("raised", ["raise KeyboardInterrupt", "exec('raise KeyboardInterrupt')"])
def test_an_interrupt_ends_with_its_code_whatever_code_it_strikes(tmp_path, raised):
    """``python -m`` would end by the signal where it struck code from a text, as of dataclasses."""
    program = f"from mkldist.cli import reporting\nwith reporting():\n    {raised}\n"
    (tmp_path / "struck.py").write_text(program)
    ended = subprocess.run(
        [sys.executable, "-m", "struck"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (130, "mkldist: interrupted\n")


@pytest.mark.parametrize("broken", [errno.EIO, errno.EPIPE], ids=["terminal", "pipe"])
def test_an_interrupt_is_one_though_its_line_cannot_be_shown(capsys, broken):
    last = OSError(broken, "of what is shown at the end")
    last.__cause__ = OSError(broken, "of a line break")
    last.__cause__.__context__ = KeyboardInterrupt("3 of 4")
    with pytest.raises(SystemExit) as caught, reporting():
        raise last
    assert caught.value.code == 130
    assert capsys.readouterr().err == "mkldist: interrupted: 3 of 4\n"


IN_A_TERMINAL = """
import os, signal, time
import mkldist.cli
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored
os.open(os.ttyname(0), os.O_RDWR)  # the terminal of this session from now on


def wait(*_):
    print("waits", flush=True)
    try:
        time.sleep(60)
    finally:
        print("is over", end="")  # stays in memory until the program ends


mkldist.cli.LazyGroup.invoke = wait
mkldist.cli.main()
"""


def test_a_terminal_that_closes_interrupts_a_command():
    pty = pytest.importorskip("pty")
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_TERMINAL, "list"],
        stdin=end, stdout=end, stderr=end, start_new_session=True,
        env=os.environ | {"PYTHONUNBUFFERED": ""},
    )  # fmt: skip
    os.close(end)
    try:
        assert os.read(terminal, 5) == b"waits"
        os.close(terminal)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()
