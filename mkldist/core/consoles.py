"""Consoles that print names and messages as they are, and commands that a shell takes as they are.

A bracket or colon is no markup; blanks and quotes in a path stay part of it.
"""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

ENDLESS = 10_000
"""Characters of a line that nothing fills."""


def command_line(*words: object) -> str:
    """Return a command of mkldist as a shell takes it.

    Examples
    --------
    >>> command_line("clean", "results/my sweep")
    "mkldist clean 'results/my sweep'"
    """
    return shlex.join(["mkldist", *map(str, words)])


def standard_output() -> Console:
    """Return the console of standard output.

    Other programs read what is piped: it is as wide as it needs to be, so that names stay whole,
    unless the variable COLUMNS has a width.
    """
    from rich.console import Console

    console = Console(markup=False, emoji=False)
    if not (console.is_terminal or console.is_jupyter or "COLUMNS" in os.environ):
        console.width = ENDLESS
    return console


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


def plain_table(headings: Sequence[str], *, left: int = 1, **columns: Any) -> Table:
    """Return a table with these headings: the first so many columns of text, others of numbers.

    `columns` are options of all columns, see :meth:`rich.table.Table.add_column`.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < left else "right", **columns)
    return table
