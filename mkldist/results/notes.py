"""Notes in an output folder: the data that were read, the banks that were stored, the work at hand.

Nothing depends on those of data and work but words: one that is damaged or gone counts as none.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mkldist.core.checked_json import json_value, parsed, write_checked
from mkldist.core.consoles import command_line
from mkldist.core.durable import discard, write_file
from mkldist.errors import StoreError

DATA_NOTE = ".data.json"
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
        noted = parsed((folder / DATA_NOTE).read_bytes())
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
            folder / DATA_NOTE, {name: asdict(one) for name, one in {**before, **data}.items()}
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


BANK_NOTE = "banks.json"


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
        if (path / BANK_NOTE).is_dir():
            discard(path / BANK_NOTE)
        write_checked(path / BANK_NOTE, {**noted, root: ids})


def drop_damaged_note(path: Path) -> None:
    """Remove the note in an output folder if it is damaged; what is no file is moved away."""
    if is_note_damaged(path):
        discard(path / BANK_NOTE)


def is_note_damaged(path: Path) -> bool:
    """Return True if something stands in the place of the note that is no whole note."""
    return os.path.lexists(path / BANK_NOTE) and whole_note(path) is None


def checked_note(path: Path) -> Mapping[str, list[str]]:
    """Return the banks of a sweep by their folder or URL; nothing if there is no note.

    Raises
    ------
    mkldist.errors.StoreError
        If the note is damaged, so that nobody knows what the sweep stored.
    """
    if is_note_damaged(path):
        raise StoreError(
            str(path / BANK_NOTE),
            "a damaged note of the Gram matrices that the sweep stored",
            "a whole note",
            f"Repeat the sweep's command, or run '{command_line('verify', path, '--repair')}': "
            "it is made anew",
        )
    return noted_banks(path)


def noted_banks(path: Path) -> Mapping[str, list[str]]:
    """Return the banks of a sweep by their folder or URL; nothing if there is no whole note."""
    return whole_note(path) or {}


def whole_note(path: Path) -> Mapping[str, list[str]] | None:
    """Return the banks of a sweep by their folder or URL, None if the note is damaged or absent."""
    try:
        noted = parsed((path / BANK_NOTE).read_bytes())
        if not all(isinstance(banks, list) for banks in noted.values()):
            return None
    except (OSError, ValueError):
        return None
    return {root: [str(bank) for bank in banks] for root, banks in noted.items()}


WORK_NOTE = ".work.json"


@dataclass(frozen=True)
class AtWork:
    """Runs of one method, or blocks of one bank, that workers are at work on.

    Parameters
    ----------
    place : str
        Node of the runs in the results, or data set and bank.
    doing : str
        What is being done, such as ``"solving"``.
    since : float
        When it began, in seconds since the epoch.
    n_runs : int
        Number of runs; 0 for a bank.
    splits : tuple of int
        Their splits.
    params : mapping of str to sequence
        Their hyperparameters, and the values of each.
    """

    place: str
    doing: str
    since: float
    n_runs: int = 0
    splits: tuple[int, ...] = ()
    params: Mapping[str, Sequence[Any]] | None = None


def write_work_note(folder: Path, at_work: Iterable[AtWork]) -> None:
    """Write the note of an output folder, unless the folder refuses it: nothing depends on it."""
    with suppress(OSError):
        text = json.dumps([asdict(one) for one in at_work])
        write_file(folder / WORK_NOTE, [text.encode()], durable=False)


def remove_work_note(folder: Path) -> None:
    """Remove the note of an output folder."""
    with suppress(OSError):
        (folder / WORK_NOTE).unlink(missing_ok=True)


def read_work_note(folder: Path) -> list[AtWork]:
    """Return what a sweep was at work on when it last said so, by place and stage.

    Runs of one method in several tasks are put together.
    """
    with suppress(OSError, ValueError, TypeError, KeyError):
        note = json_value((folder / WORK_NOTE).read_bytes())
        return put_together(AtWork(**{**one, "splits": tuple(one["splits"])}) for one in note)
    return []


def put_together(at_work: Iterable[AtWork]) -> list[AtWork]:
    """Return one entry for each place and stage."""
    together: dict[tuple[str, str], AtWork] = {}
    for one in at_work:
        key = one.place, one.doing
        other = together.get(key)
        if other is None:
            together[key] = one
            continue
        names = dict.fromkeys([*(other.params or {}), *(one.params or {})])
        together[key] = AtWork(
            *key,
            min(one.since, other.since),
            one.n_runs + other.n_runs,
            tuple(sorted({*one.splits, *other.splits})),
            {
                name: _union((other.params or {}).get(name, ()), (one.params or {}).get(name, ()))
                for name in names
            },
        )
    return sorted(together.values(), key=lambda one: (one.n_runs == 0, one.place, one.doing))


def _union(values: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return values without repetition; numbers in their order."""
    found = [*values, *(value for value in others if value not in values)]
    numbers = all(isinstance(value, int | float) for value in found)
    return sorted(found) if numbers else found
