"""Note of the data that a sweep read, to tell when their files change: ``.data.json``.

Nothing depends on it but words: a note that is damaged or gone counts as none.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mkldist.checked_json import parsed, write_checked

NOTE = ".data.json"
_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError)

Stamp = tuple[int, int]
"""Bytes of a file, and when it was written, in nanoseconds since the epoch."""


@dataclass(frozen=True)
class ReadData:
    """What a sweep read as a data set.

    Parameters
    ----------
    fingerprint : str
        Content hash of the data set.
    files : mapping of str to Stamp
        The state of its files, by their absolute paths, just before they were read.
    read : float
        When that was, in seconds since the epoch.
    """

    fingerprint: str
    files: Mapping[str, Stamp]
    read: float = field(default_factory=time.time, compare=False)

    @property
    def when(self) -> str:
        """When it was read, in local time."""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.read))

    def changed(self, stamps: Mapping[str, Stamp]) -> list[str]:
        """Return the files that have another state now; no others than both name."""
        return [file for file, stamp in self.files.items() if stamps.get(file, stamp) != stamp]


def stamps_of(files: Iterable[Path]) -> dict[str, Stamp]:
    """Return the state of files by their absolute paths, without those that cannot be found."""
    found: dict[str, Stamp] = {}
    for file in files:
        with suppress(OSError):
            stat = file.stat()
            found[str(file.absolute())] = stat.st_size, stat.st_mtime_ns
    return found


def read_data_note(folder: Path) -> dict[str, ReadData]:
    """Return what the sweep of an output folder read last, by data set; nothing without a note."""
    with suppress(*_DAMAGE):
        noted, _ = parsed((folder / NOTE).read_bytes())
        return {
            name: ReadData(
                str(one["fingerprint"]),
                {file: (int(size), int(written)) for file, (size, written) in one["files"].items()},
                float(one["read"]),
            )
            for name, one in noted.items()
        }
    return {}


def note_data(folder: Path, data: Mapping[str, ReadData]) -> None:
    """Write what a sweep read, unless the note says so already or the folder refuses it."""
    before = read_data_note(folder)
    if {**before, **data} == before:
        return
    with suppress(OSError):
        write_checked(
            folder / NOTE, {name: asdict(one) for name, one in {**before, **data}.items()}
        )


def changed_data(folder: Path, data: Mapping[str, ReadData]) -> Iterator[str]:
    """Yield words on the files that changed the data since the sweep of a folder read them.

    Parameters
    ----------
    folder : Path
        The output folder, which may be missing.
    data : mapping of str to ReadData
        The data as they are now, by data set.
    """
    noted = read_data_note(folder)
    for name, now in data.items():
        before = noted.get(name)
        if before is not None and before.fingerprint != now.fingerprint:
            for file in before.changed(now.files):
                yield f"{file} changed since this sweep read it on {before.when}"


def rewritten_files(folder: Path) -> Iterator[str]:
    """Yield words on the files that were written since the sweep of a folder read them.

    Their content is not read, so that it may be the same; files that are not here count as
    unchanged, as those of results from another machine.
    """
    for before in read_data_note(folder).values():
        for file in before.changed(stamps_of(map(Path, before.files))):
            yield f"{file} was written after this sweep read it on {before.when}"
