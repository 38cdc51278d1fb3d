"""Note of the banks that a sweep stored, in its output folder: ``banks.json``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from mkldist.checked_json import parsed, write_checked

NOTE = "banks.json"


def note_banks(path: Path, root: str, banks: Collection[str]) -> None:
    """Add banks to the note in an output folder.

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
        write_checked(path / NOTE, {**noted, root: ids})


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
