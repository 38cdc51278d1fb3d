"""Records of a sweep on disk: one small file per finished run, whole or absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mkldist.durable import remove_temporaries, write_file
from mkldist.errors import UnreadableError
from mkldist.results.record_format import decode, encode, is_whole
from mkldist.results.run_record import RunRecord
from mkldist.results.state import RunState

__all__ = ["RecordStore", "RunRecord"]

_SUFFIX = ".npz"


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
            If the file exists and the system refuses to read it.
        """
        for state in (RunState.COMPLETE, RunState.FAILED):
            content = _content(self._path(run_id, state))
            record = decode(content) if content is not None else None
            if record is not None and record.id == run_id:
                return record
        return None

    def ids(self, *, verify: bool = False) -> dict[str, RunState]:
        """Return the recorded runs and their states.

        Parameters
        ----------
        verify : bool, optional
            Also read every file and leave out the damaged ones.
        """
        found: dict[str, RunState] = {}
        for path, run_id, state in self._files():
            if found.get(run_id) is RunState.COMPLETE:
                continue
            if not verify or _is_whole(Path(path)):
                found[run_id] = state
        return found

    def damaged(self) -> list[Path]:
        """Read every file, and return the damaged ones in the order of their names."""
        paths = (Path(path) for path, _, _ in self._files())
        return sorted(path for path in paths if not _is_whole(path))

    def remove(self, run_id: str) -> None:
        """Delete the record of a run if there is one."""
        self._remove_except(run_id, None)

    def remove_temporaries(self) -> int:
        """Delete the temporary files of killed writers, and return their number."""
        return sum(remove_temporaries(Path(shard)) for shard in _entries(self.directory))

    def _files(self) -> Iterator[tuple[str, str, RunState]]:
        """Yield path, id and state of every record, read from the names of the files."""
        states = {f"{state.value}{_SUFFIX}": state for state in RunState if state.is_recorded}
        for shard in _entries(self.directory):
            for name in _names(shard):
                run_id, _, rest = name.partition(".")
                if run_id and (state := states.get(rest)):
                    yield f"{shard}/{name}", run_id, state

    def _path(self, run_id: str, state: RunState) -> Path:
        return self.directory / run_id[:2] / f"{run_id}.{state.value}{_SUFFIX}"

    def _remove_except(self, run_id: str, kept: RunState | None) -> None:
        """Delete the files of a run in states other than `kept`."""
        for state in (RunState.COMPLETE, RunState.FAILED):
            if state is not kept:
                self._path(run_id, state).unlink(missing_ok=True)


def _entries(folder: Path) -> list[str]:
    """Return the paths in a folder as text: a hundred thousand Path objects take too long."""
    return [f"{folder}/{name}" for name in _names(folder)]


def _names(folder: Path | str) -> list[str]:
    """Return the names in a folder; none if it is missing."""
    try:
        return os.listdir(folder)  # noqa: PTH208, without a Path for each of many thousands
    except (FileNotFoundError, NotADirectoryError):
        return []


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        found = f"a record that cannot be read ({error.strerror})"
        raise UnreadableError(str(path), found, "a record") from error


def _is_whole(path: Path) -> bool:
    content = _content(path)
    return content is not None and is_whole(content)
