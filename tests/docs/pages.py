"""Code blocks of the pages of documentation, and running them as a reader would.

All blocks of a page run in order, in one new folder that holds the page's `{download}` files:
``python`` in one namespace, the lines of ``console`` that begin with ``$`` in a shell, or in this
process if all are commands of mkldist, which then need not import it again.  A block of ``python``
or ``toml`` whose first line is ``# FILE.py`` or ``# FILE.toml`` is written as that file.  Other
languages are for reading.  ``% not run: REASON`` in the line before a block leaves it out.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.commands import run_here

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(
    r"^(?P<before>%[^\n]*\n)?^(?P<fence>```+)(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)
DOWNLOAD = re.compile(r"\{download\}`(?:[^<`]*<)?([^>`]+)>?`")
FILE = re.compile(r"# ([\w.-]+\.(?:py|toml))\n")
NOT_RUN = "% not run: "
COMMAND = re.compile(r"mkldist [^$|&;<>`*]*")
COMPLETE: dict[str, Any] = {
    "name": "example",
    "datasets": [{"name": "wdbc"}],
    "banks": [{"family": "do2009"}],
    "methods": [{"name": "majority"}],
}
"""What a part of a sweep file lacks."""


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    language: str
    code: str
    is_run: bool

    @property
    def file(self) -> str | None:
        """The file that the block is, if it is one."""
        found = FILE.match(self.code)
        return found and found[1] if self.language in ("python", "toml") else None


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page, in order."""
    return [
        Block(
            found["language"].strip(),
            found["code"],
            not (found["before"] or "").startswith(NOT_RUN),
        )
        for found in FENCE.finditer(page.read_text(encoding="utf-8"))
    ]


def run(page: Path, folder: Path) -> None:
    """Run the blocks of a page in an empty folder, which is the working folder."""
    for file in DOWNLOAD.findall(page.read_text(encoding="utf-8")):
        shutil.copy(page.parent / file, folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if not block.is_run:
            continue
        if block.file:
            (folder / block.file).write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.code, str(page), "exec"), names)
        elif block.language == "console":
            lines = block.code.splitlines()
            _console([line[2:] for line in lines if line.startswith("$ ")], folder)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(folder)):
            del sys.modules[name]  # another page may have another module of this name


def _console(lines: list[str], folder: Path) -> None:
    if all(map(COMMAND.fullmatch, lines)):
        for line in lines:
            run_here(folder, *shlex.split(line)[1:])
    else:
        _shell(lines, folder)


def _shell(lines: list[str], folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(DOCS.parent)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{lines}\n{done.stdout}{done.stderr}"
