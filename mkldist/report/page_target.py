"""The file that a page of results may be written to: no other file of the user is replaced."""

from __future__ import annotations

from pathlib import Path

from mkldist.errors import OutputError, ending_words

ENDINGS = (".html", ".htm")
GENERATOR = '<meta name="generator" content="mkldist">'
"""The line of the template by which a page of mkldist is recognised."""
HEAD = 2000  # bytes of a file in which that line stands


def check_target(page: Path, *, overwrite: bool = False) -> None:
    """Refuse a name that is not of a page, a folder, and a file that mkldist did not write.

    Parameters
    ----------
    page : Path
        The file to write.
    overwrite : bool
        True if any file of that name may be replaced.

    Raises
    ------
    mkldist.errors.OutputError
        Naming the file.
    """
    if page.is_dir():
        hint = f"Write {page / 'report.html'}"
        raise OutputError(str(page), "a folder", "the name of a file, the page", hint)
    if page.suffix.casefold() not in ENDINGS:
        ending = ending_words(page.suffix)
        raise OutputError(str(page), ending, f"a name ending in {' or '.join(ENDINGS)}")
    if page.exists() and not overwrite and not _is_page(page):
        hint = "Choose another name with -o, or replace the file by --overwrite"
        raise OutputError(str(page), "a file that is no page of mkldist", "a new file", hint)


def _is_page(path: Path) -> bool:
    """Return True if mkldist wrote the file."""
    try:
        with path.open("rb") as stream:
            return GENERATOR.encode() in stream.read(HEAD)
    except OSError:
        return False
