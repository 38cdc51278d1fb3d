"""Note of the banks that a sweep stored, in its output folder: ``banks.json``."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from mkldist.durable import write_json

NOTE = "banks.json"


def note_banks(path: Path, root: str, banks: Collection[str]) -> None:
    """Add banks to the note in an output folder.

    Parameters
    ----------
    path : Path
        The output folder, which this process has claimed.
    root : str
        Folder or URL of the banks.
    banks : collection of str
        Their ids.
    """
    noted = noted_banks(path)
    ids = sorted({*noted.get(root, ()), *banks})
    if ids != noted.get(root, []):
        write_json(path / NOTE, {**noted, root: ids})


def noted_banks(path: Path) -> Mapping[str, list[str]]:
    """Return the banks of a sweep by their folder or URL; nothing if there is no whole note."""
    with suppress(OSError, ValueError, AttributeError, TypeError):
        noted = json.loads((path / NOTE).read_text())
        return {str(root): [str(bank) for bank in banks] for root, banks in noted.items()}
    return {}
