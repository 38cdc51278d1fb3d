"""The manifest of an output folder, which names the sweep that owns it: ``sweep.json``."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkldist.core.checked_json import parsed, write_checked
from mkldist.core.consoles import command_line
from mkldist.errors import OutputError, StoreError

MANIFEST = "sweep.json"
FORMAT = 2
_DAMAGE = (OSError, ValueError, KeyError, TypeError, StoreError)
_NAME = re.compile(rb'"sweep": "([^"\\]+)"')
_FILE = re.compile(rb'"file": "([^"\\]+)"')


@dataclass(frozen=True)
class Manifest:
    """The sweep that owns a folder.

    Parameters
    ----------
    sweep : str
        Its name.
    file : Path or None
        The file that it was last made from; None if it is not known.
    spec : str
        Its specification as JSON, overrides included; empty if it is not known.
    """

    sweep: str
    file: Path | None = None
    spec: str = ""


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of an output folder.

    Raises
    ------
    mkldist.errors.OutputError
        If the folder has no manifest or a damaged one.
    """
    try:
        return _read(path)
    except IsADirectoryError as error:
        raise OutputError(
            str(path / MANIFEST),
            "a folder",
            "the manifest of a sweep, a file",
            "Move that folder away, then repeat the sweep's command: the manifest is made anew",
        ) from error
    except _DAMAGE as error:
        raise OutputError(
            str(path / MANIFEST),
            f"a manifest that cannot be read ({type(error).__name__})",
            "the manifest of a sweep",
            f"Repeat the sweep's command, or run '{command_line('verify', path, '--repair')}': "
            "it is made anew",
        ) from error


def restored_manifest(path: Path) -> Manifest:
    """Return the manifest of an output folder, or what is left of a damaged one.

    The layout names its sweep too.  Where that is damaged as well, the name is read from
    the damaged text, and where it has none, it is that of the folder.
    """
    with suppress(*_DAMAGE):
        return _read(path)
    name, spec = path.absolute().name, ""
    text = b""
    with suppress(OSError):
        text = (path / MANIFEST).read_bytes()
    if found := _text(_NAME, text):
        name = found
    with suppress(*_DAMAGE):
        attributes = _layout_attributes(path)
        name, spec = str(attributes["sweep"]), str(attributes["spec"])
    file = Path(_text(_FILE, text) or path / "sweep.toml")
    with suppress(OSError, ValueError):
        return Manifest(name, file if file.is_file() else None, spec)
    return Manifest(name, None, spec)


def owner(path: Path) -> str | None:
    """Return the name of the sweep that owns a folder; None if only damaged files tell."""
    with suppress(*_DAMAGE):
        return _read(path).sweep
    with suppress(*_DAMAGE):
        return str(_layout_attributes(path)["sweep"])
    return None


def manifest_name(path: Path) -> str:
    """Return the name of the sweep that an output folder belongs to.

    Raises
    ------
    mkldist.errors.OutputError
        If the folder has no manifest or a damaged one.
    """
    return read_manifest(path).sweep


def write_manifest(path: Path, sweep: str, file: Path | None, spec: str = "") -> None:
    """Write whose folder it is, unless that is written there already.

    A file or a specification that is not given stays as it was.
    """
    known = None
    with suppress(*_DAMAGE):
        known = _read(path)
    before = restored_manifest(path)
    wanted = Manifest(sweep, before.file if file is None else file.absolute(), spec or before.spec)
    if known == wanted:
        return
    fields: dict[str, Any] = {"format": FORMAT, "sweep": sweep}
    if wanted.file is not None:
        fields["file"] = str(wanted.file)
    if wanted.spec:
        fields["spec"] = wanted.spec
    write_checked(path / MANIFEST, fields)


def _read(path: Path) -> Manifest:
    document = parsed((path / MANIFEST).read_bytes())
    if document["format"] != FORMAT:
        raise ValueError("a manifest of another format")
    file = document.get("file")
    return Manifest(
        str(document["sweep"]), None if file is None else Path(file), document.get("spec", "")
    )


def _layout_attributes(path: Path) -> dict[str, Any]:
    """Return the attributes of the results in a folder, which name their sweep."""
    from mkldist.results.layout_file import read_layout  # seldom

    return read_layout(path).attributes


def _text(pattern: re.Pattern[bytes], text: bytes) -> str:
    """Return what a pattern finds in a text; nothing if that is no UTF-8."""
    found = pattern.search(text)
    with suppress(ValueError):
        return found[1].decode() if found else ""
    return ""
