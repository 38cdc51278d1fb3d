"""Note of the banks that a sweep stored, in its output folder: ``banks.json``."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from mkldist.checked_json import parsed, write_checked
from mkldist.durable import discard
from mkldist.errors import StoreError

NOTE = "banks.json"


def note_banks(path: Path, root: str, banks: Collection[str]) -> None:
    """Add banks to the note in an output folder; write a damaged note anew, with these alone.

    Parameters
    ----------
    path : Path
        The output folder, which this process has claimed.
    root : str
        Folder or URL of the banks; it is noted without any too, as graph Laplacians lie there.
    banks : collection of str
        Their ids.
    """
    noted = noted_banks(path)
    ids = sorted({*noted.get(root, ()), *banks})
    if ids != noted.get(root):
        if (path / NOTE).is_dir():
            discard(path / NOTE)
        write_checked(path / NOTE, {**noted, root: ids})


def drop_damaged_note(path: Path) -> None:
    """Remove the note in an output folder if it is damaged; what is no file is moved away."""
    if is_note_damaged(path):
        discard(path / NOTE)


def is_note_damaged(path: Path) -> bool:
    """Return True if something stands in the place of the note that is no whole note."""
    return os.path.lexists(path / NOTE) and whole_note(path) is None


def checked_note(path: Path) -> Mapping[str, list[str]]:
    """Return the banks of a sweep by their folder or URL; nothing if there is no note.

    Raises
    ------
    mkldist.errors.StoreError
        If the note is damaged, so that nobody knows what the sweep stored.
    """
    if is_note_damaged(path):
        raise StoreError(
            str(path / NOTE),
            "a damaged note of the Gram matrices that the sweep stored",
            "a whole note",
            f"Repeat the sweep's command, or run 'mkldist verify {path} --repair': it is made anew",
        )
    return noted_banks(path)


def noted_banks(path: Path) -> Mapping[str, list[str]]:
    """Return the banks of a sweep by their folder or URL; nothing if there is no whole note."""
    return whole_note(path) or {}


def whole_note(path: Path) -> Mapping[str, list[str]] | None:
    """Return the banks of a sweep by their folder or URL, None if the note is damaged or absent."""
    try:
        noted, _ = parsed((path / NOTE).read_bytes())
        if not all(isinstance(banks, list) for banks in noted.values()):
            return None
    except (OSError, ValueError):
        return None
    return {root: [str(bank) for bank in banks] for root, banks in noted.items()}
