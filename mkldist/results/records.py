"""Records of a sweep on disk: one small file per finished run, whole or absent."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from mkldist.consoles import command_line
from mkldist.durable import discard, remove_temporaries, write_file
from mkldist.errors import UnreadableError
from mkldist.results.record_format import decode, encode, name_of
from mkldist.results.run_record import RunRecord
from mkldist.results.state import RunState

__all__ = ["RecordStore", "RunRecord"]

_SUFFIX = ".npz"
_SHARD_LETTERS = 2
_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class RecordStore:
    """One npz file per recorded run, named ``<first two of the id>/<id>.<state>.npz``.

    Readers see a whole record or none, even if its writer was killed.  The state is part of the
    name, so that a sweep of many thousand runs is listed without opening a file.  Several processes
    may write different runs at once.

    Parameters
    ----------
    directory : Path
        The folder, made with the first record.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory)

    def write(self, record: RunRecord) -> None:
        """Write a record, which then survives a loss of power, in place of the run's former one.

        Raises
        ------
        OSError
            If the disk refuses it; nothing of the record is left then.
        ValueError
            If the state of the record is not that of a finished run.
        """
        if not record.state.is_recorded:
            raise ValueError(f"a run that is {record.state} has no outcome to record")
        write_file(self._path(record.id, record.state), [encode(record)])
        self._remove_except(record.id, record.state)

    def read(self, run_id: str) -> RunRecord | None:
        """Return a run's record, or None if it is missing or damaged.

        Raises
        ------
        mkldist.errors.UnreadableError
            If the file exists and the system refuses to read it, or if its folder is none.
        """
        for state in (RunState.COMPLETE, RunState.FAILED):
            content = _content(self._path(run_id, state))
            record = decode(content) if content is not None else None
            if record is not None and (record.id, record.state) == (run_id, state):
                return record
        return None

    def heads(self) -> dict[str, RunRecord]:
        """Return all records that can be read."""
        found = {run_id: self.read(run_id) for run_id in self.ids()}
        return {run_id: record for run_id, record in found.items() if record is not None}

    def ids(self, *, verify: bool = False) -> dict[str, RunState]:
        """Return the recorded runs and their states.

        Parameters
        ----------
        verify : bool, optional
            Also read every file and leave out the damaged ones.
        """
        found: dict[str, RunState] = {}
        for shard, name, run_id, state in self._files():
            if found.get(run_id) is RunState.COMPLETE or not _is_of(shard, run_id):
                continue
            if not verify or _is_sound(Path(shard, name), run_id, state):
                found[run_id] = state
        return found

    def damaged(self) -> list[Path]:
        """Read every file, and return the damaged ones in the order of their names.

        A record of another run or state than its name says is damaged, and so is what stands in
        the place of a record or of a folder of them.
        """
        found = [
            path
            for shard, name, run_id, state in self._files()
            if not _is_sound(path := Path(shard, name), run_id, state) or not _is_of(shard, run_id)
        ]
        return sorted([*self.blocked(), *found])

    def blocked(self) -> list[Path]:
        """Return the files, and the links to nothing, that stand where records have a folder."""
        if os.path.lexists(self.directory) and not self.directory.is_dir():
            return [self.directory]
        return [Path(shard) for shard in self._shards() if not os.path.isdir(shard)]  # noqa: PTH112

    def refuse_blocked(self) -> None:
        """Refuse a store whose records cannot be reached.

        Raises
        ------
        mkldist.errors.UnreadableError
            Naming what stands where records have a folder.
        """
        for path in self.blocked():
            raise _blocked(path, self.directory.parent)

    def remove(self, run_id: str) -> None:
        """Delete the record of a run if there is one."""
        self._remove_except(run_id, None)

    def remove_temporaries(self) -> int:
        """Delete the temporary files of killed writers, and return their number."""
        return sum(remove_temporaries(Path(shard)) for shard in self._shards())

    def _shards(self) -> Iterator[str]:
        """Yield the paths of the folders of records, and of what stands in the place of one."""
        for name in _names(self.directory):
            if len(name) <= _SHARD_LETTERS:
                yield f"{self.directory}/{name}"

    def _files(self) -> Iterator[tuple[str, str, str, RunState]]:
        """Yield folder, name, id and state of every record, read from the names of the files.

        Paths are text: a hundred thousand Path objects take too long.
        """
        states = {f"{state.value}{_SUFFIX}": state for state in RunState if state.is_recorded}
        for shard in self._shards():
            for name in _names(shard):
                run_id, _, rest = name.partition(".")
                if run_id and (state := states.get(rest)):
                    yield shard, name, run_id, state

    def _path(self, run_id: str, state: RunState) -> Path:
        return self.directory / run_id[:_SHARD_LETTERS] / f"{run_id}.{state.value}{_SUFFIX}"

    def _remove_except(self, run_id: str, kept: RunState | None) -> None:
        """Delete the files of a run in states other than `kept`."""
        for state in (RunState.COMPLETE, RunState.FAILED):
            if state is not kept:
                discard(self._path(run_id, state))


def _is_of(shard: str, run_id: str) -> bool:
    """Return True if the records of a run belong into a folder."""
    return shard.rpartition("/")[2] == run_id[:_SHARD_LETTERS]


def _names(folder: Path | str) -> list[str]:
    """Return the names in a folder; none if it is missing or no folder."""
    try:
        return os.listdir(folder)  # noqa: PTH208, without a Path for each of many thousands
    except OSError as error:
        if error.errno in _NO_FOLDER:
            return []
        raise _unreadable(folder, "a folder of records", error) from error


def _content(path: Path) -> bytes | None:
    """Return what a file holds; None if it is missing, or a folder or a link to nothing."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            raise _unreadable(path, "a record", error) from error
        if path.parent.is_dir():  # the record is a link that leads to itself
            return None
        records = path.parents[1]
        place = path.parent if records.is_dir() else records
        raise _blocked(place, records.parent) from error


def _unreadable(path: Path | str, what: str, error: OSError) -> UnreadableError:
    found = f"{what} that cannot be read ({error.strerror})"
    hint = "Make it readable, then repeat the command: finished work is kept"
    return UnreadableError(str(path), found, what, hint)


def _blocked(path: Path, output: Path) -> UnreadableError:
    return UnreadableError(
        str(path),
        "a file, or a link to nothing, in the place of a folder",
        "a folder of records",
        f"Put the folder back, or run '{command_line('verify', output, '--repair')}': it moves "
        "away what is there, and the sweep's command does the runs again",
    )


def _is_sound(path: Path, run_id: str, state: RunState) -> bool:
    """Return True if a file is whole, and a record of the run and the state that its name says."""
    content = _content(path)
    return content is not None and name_of(content) == (run_id, state.value)
