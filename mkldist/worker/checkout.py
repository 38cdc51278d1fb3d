"""The commit of the code, where it runs from a git checkout."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
SECONDS = 10.0  # for git to answer, on a slow file system


@cache
def source_commit(package: Path = PACKAGE) -> str:
    """Return the commit of a package's checkout; empty where it is installed otherwise.

    Parameters
    ----------
    package : Path
        The folder of the package, which lies at the top of the checkout.

    Returns
    -------
    str
        40 hexadecimal digits, and ``-dirty`` if a file of the checkout differs from the commit.
        A package that is installed inside of somebody else's checkout has no commit.
    """
    if not (package.parent / ".git").exists():
        return ""
    command = ["git", "--no-optional-locks", "-C", str(package), "describe", "--always", "--dirty",
               "--abbrev=40", "--exclude=*"]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
