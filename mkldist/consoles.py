"""Consoles that print names and messages as they are, and commands that a shell takes as they are.

A bracket or colon is no markup; blanks and quotes in a path stay part of it.
"""

from __future__ import annotations

import io
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def command_line(*words: object) -> str:
    """Return a command of mkldist as a shell takes it.

    Examples
    --------
    >>> command_line("clean", "results/my sweep")
    "mkldist clean 'results/my sweep'"
    """
    return shlex.join(["mkldist", *map(str, words)])


def standard_output() -> Console:
    """Return the console of standard output."""
    from rich.console import Console

    return Console(markup=False, emoji=False)


def standard_error() -> Console:
    """Return the console of standard error."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False)


def as_text(content: RenderableType, width: int) -> str:
    """Return what a console of some width prints, without the last line break."""
    from rich.console import Console

    file = io.StringIO()
    console = Console(file=file, width=width, force_jupyter=False, markup=False, emoji=False)
    console.print(content, crop=False)
    return file.getvalue().rstrip("\n")
