"""Run a daemon, and end all that it started when the process that wanted it ends, even by a kill.

``python guardian.py COMMAND ...`` runs until its standard input ends.  Daemons leave the process
group and the session of their parent.  Their orphans therefore become children of this process.
"""

import ctypes
import subprocess
import sys
from contextlib import suppress

import psutil

PR_SET_CHILD_SUBREAPER = 36  # of Linux: orphans among the descendants become children
TERM_SECONDS = 10.0


def guarded(*words: str) -> list[str]:
    """Return the command that runs another one until its standard input ends."""
    return [sys.executable, __file__, *words]


def main(words: list[str]) -> None:
    """Run a command until standard input ends; then end it and its descendants."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as daemon:
        sys.stdin.buffer.read()
        daemon.terminate()
        with suppress(subprocess.TimeoutExpired):
            daemon.wait(TERM_SECONDS)
        while left := psutil.Process().children(recursive=True):
            for one in left:
                with suppress(psutil.Error):
                    one.kill()
            psutil.wait_procs(left, timeout=1)


if __name__ == "__main__":
    main(sys.argv[1:])
