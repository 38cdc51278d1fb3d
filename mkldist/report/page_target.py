"""The file that a page of results may be written to: no other file of the user is replaced."""

from __future__ import annotations

from html import unescape
from pathlib import Path

from mkldist.core.identity import content_id
from mkldist.errors import OutputError, ending_words

ENDINGS = (".html", ".htm")
GENERATOR = '<meta name="generator" content="mkldist">'
"""The line of the template by which a page of mkldist is recognised."""
TITLE_END = ": report"
ORIGIN = '<meta name="mkldist-results" content="'
"""Start of the line that tells of which results a page is."""
HEAD = 2000  # bytes of a file in which these lines stand


def origin_of(results: Path) -> str:
    """Return what tells the results in one folder from others, without the folder's name."""
    return content_id(folder=str(results.resolve()))


def check_name(page: Path) -> None:
    """Refuse a folder, and a name that is not of a page."""
    if page.is_dir():
        hint = f"Write {page / 'report.html'}"
        raise OutputError(str(page), "a folder", "the name of a file, the page", hint)
    if page.suffix.casefold() not in ENDINGS:
        ending = ending_words(page.suffix)
        raise OutputError(str(page), ending, f"a name ending in {' or '.join(ENDINGS)}")


def check_target(page: Path, results: Path, *, overwrite: bool = False) -> None:
    """Refuse what :func:`check_name` does, and a file other than a page of the results."""
    check_name(page)
    if page.exists() and not overwrite and (found := _other_file(page, origin_of(results))):
        hint = "Choose another name with -o, or replace the file by --overwrite"
        raise OutputError(str(page), found, f"a new file, or a page of {results}", hint)


def _other_file(path: Path, origin: str) -> str:
    """Return what a file is, as a noun phrase; empty for a page of results of this origin."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD).decode(errors="replace")
    except OSError:
        head = ""
    if GENERATOR not in head:
        return "a file that is no page of mkldist"
    if f'{ORIGIN}{origin}"' in head:
        return ""
    title = head.partition("<title>")[2].partition("</title>")[0]
    name = unescape(title.removesuffix(TITLE_END))
    return f"a page of other results, of a sweep called {name!r}"
