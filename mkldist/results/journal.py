"""The journal of a sweep: one file to which the outcomes of its runs are appended.

The process that owns the output folder appends; any process may read meanwhile.  A record is a
frame, see :mod:`mkldist.core.frames`: a head with its states, scores and other small values, and a
body with its arrays.  A later frame of a run takes the place of the earlier one.  Who was killed
while it appended leaves the beginning of a frame, where readers stop and which the next writer cuts
off.  What a damaged frame held counts as not recorded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from mkldist.core.consoles import command_line
from mkldist.core.durable import flush_folder, make_folder, replacing
from mkldist.core.frames import (
    HEADER_BYTES,
    MAGIC,
    Arrays,
    FrameHeader,
    arrays_of,
    frame,
    frame_header,
)
from mkldist.errors import UnreadableError
from mkldist.results.record import ARRAYS, RunRecord
from mkldist.results.schema import RunState

JOURNAL = "records.journal"

_TRACE = "trace."
_IN_HEAD = [item.name for item in fields(RunRecord) if item.name not in (*ARRAYS, "trace")]
_RUN, _REMOVED = "run", "removed"
_STATES = {state.value: state for state in RunState if state.is_recorded}
_BUFFER = 2**20
_READING = threading.Lock()
"""Held by the thread that reads: trees of results give one journal to several threads of dask."""


class _Frame(NamedTuple):
    """A frame in the file: where it begins, its header, and what its head says."""

    at: int
    header: FrameHeader
    kind: str
    state: RunState | None = None

    @property
    def end(self) -> int:
        return self.at + self.header.n_bytes

    def is_in(self, file: BinaryIO) -> bool:
        """Return True if a file has this frame at its place."""
        file.seek(self.at)
        return frame_header(file.read(HEADER_BYTES)) == self.header


class Damage(NamedTuple):
    """Bytes of a journal that are damaged.

    Parameters
    ----------
    start, end : int
        Where they begin and end.
    run : str
        Run whose record they were; empty if that cannot be read.
    is_torn : bool
        True for the beginning of a frame at the end of the file: its writer was killed, is at work,
        or the file has been cut.
    """

    start: int
    end: int
    run: str = ""
    is_torn: bool = False

    def __str__(self) -> str:
        what = f", run {self.run}" * bool(self.run) + ", an unfinished record" * self.is_torn
        return f"bytes {self.start} to {self.end}{what}"


class Journal:
    """Records of the runs of a sweep, in one file.

    Parameters
    ----------
    path : Path
        The file, made with the first record.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._last: _Frame | None = None  # of the frames that have been taken in
        self._runs: dict[str, _Frame] = {}

    @property
    def is_blocked(self) -> bool:
        """True if a folder, or a link to nothing, stands in the place of the file."""
        return os.path.lexists(self.path) and not self.path.is_file()

    def append(self, records: Iterable[RunRecord]) -> None:
        """Append records, which then survive a loss of power; for the owner of the folder alone.

        Raises
        ------
        OSError
            If the disk refuses them; none of them is recorded then.
        ValueError
            If the state of a record is not that of a finished run.
        """
        self._write([_record_frame(record) for record in records])

    def remove(self, run_ids: Iterable[str]) -> None:
        """Let runs count as not recorded; for the owner of the folder alone."""
        known = self.states()
        gone = [run_id for run_id in dict.fromkeys(run_ids) if run_id in known]
        if gone:
            self._write([frame({"kind": _REMOVED, "ids": gone}, {})])

    def states(self) -> dict[str, RunState]:
        """Return the recorded runs and their states, without reading an array."""
        with self._opened():
            return {i: place.state for i, place in self._runs.items() if place.state is not None}

    def heads(self) -> dict[str, RunRecord]:
        """Return all records without arrays but those of classes; others are empty in them."""
        found: dict[str, Mapping[str, Any]] = {}
        with self._opened(found):
            read = ((run_id, _record(found[run_id], {})) for run_id in self._runs)
            return {run_id: record for run_id, record in read if record is not None}

    def read(self, run_id: str) -> RunRecord | None:
        """Return a run's record; None if it is missing or damaged.

        Raises
        ------
        mkldist.errors.UnreadableError
            If the system refuses to read the file.
        """
        with self._opened() as file:
            place = self._runs.get(run_id)
            found = _content(file, place) if file and place else None
        return _record(*found) if found else None

    def damaged(self) -> list[Damage]:
        """Read every byte; return what is damaged, and let its runs count as not recorded."""
        found: list[Damage] = []
        with self._opened() as file:
            if file is None:
                return []
            size, at = os.fstat(file.fileno()).st_size, 0
            for place, head in _frames(file, 0, size):
                if place.at > at:
                    found.append(Damage(at, place.at))
                at = place.end
                run_id = str(head.get("id", "")) if head else ""
                if head is None or not place.header.is_body(_body(file, place)):
                    found.append(Damage(place.at, place.end, run_id))
                    if self._runs.get(run_id) == place:
                        del self._runs[run_id]
            if size > at:
                file.seek(at)
                rest = file.read(HEADER_BYTES)
                torn = len(rest) < HEADER_BYTES or frame_header(rest) is not None
                found.append(Damage(at, size, is_torn=torn))
        return found

    def compact(self) -> None:
        """Write the file anew with the sound frames that count; for the owner of the folder."""
        self.damaged()
        with self._opened() as file:
            if file is None:
                return
            places = sorted(self._runs.values(), key=lambda place: place.at)
            with replacing(self.path) as temporary, temporary.open("xb") as new:
                for place in places:
                    file.seek(place.at)
                    new.write(file.read(place.header.n_bytes))
        self._forget()

    @property
    def _end(self) -> int:
        """Where the frames end that have been taken in."""
        return 0 if self._last is None else self._last.end

    def _forget(self) -> None:
        self._last, self._runs = None, {}

    @contextmanager
    def _opened(
        self, heads: dict[str, Mapping[str, Any]] | None = None
    ) -> Iterator[BinaryIO | None]:
        """Yield the file, of which every whole frame has been taken in; None if it is missing.

        Heads of all records are put into `heads`, if it is given.
        """
        with _READING:
            yield from self._read(heads)

    def _read(self, heads: dict[str, Mapping[str, Any]] | None) -> Iterator[BinaryIO | None]:
        try:
            file = self.path.open("rb", buffering=_BUFFER)
        except OSError as error:
            if not isinstance(error, FileNotFoundError) or self.is_blocked:
                raise self._unreadable(error) from error
            self._forget()
            yield None
            return
        with file:
            if heads is not None or not (self._last and self._last.is_in(file)):
                self._forget()  # also if it is another file, even one of the same inode
            for place, head in _frames(file, self._end, os.fstat(file.fileno()).st_size):
                self._last = place
                if head is not None:
                    self._take(place, head)
                    if heads is not None and place.kind == _RUN:
                        heads[head["id"]] = head
            yield file

    def _take(self, place: _Frame, head: Mapping[str, Any]) -> None:
        """Let a frame count from now on."""
        if place.kind == _REMOVED:
            for run_id in head["ids"]:
                self._runs.pop(run_id, None)
        elif place.state is not None:
            self._runs[head["id"]] = place

    def _write(self, frames: Iterable[bytes]) -> None:
        """Append frames after the last whole one, and flush them to the device."""
        content = memoryview(b"".join(frames))
        with self._opened() as file:
            is_new = file is None
        make_folder(self.path.parent)
        with self.path.open("xb" if is_new else "r+b", buffering=0) as raw:
            raw.truncate(self._end)
            raw.seek(self._end)
            try:
                while content:
                    content = content[raw.write(content) :]
                os.fsync(raw.fileno())
            except BaseException:
                with suppress(OSError):
                    raw.truncate(self._end)
                raise
        if is_new:
            flush_folder(self.path.parent)

    def _unreadable(self, error: OSError) -> UnreadableError:
        found = f"a file that cannot be read ({error.strerror})"
        hint = "Make it readable, then repeat the command: finished work is kept"
        if self.is_blocked:
            found = "a folder, or a link to nothing"
            repair = command_line("verify", self.path.parent, "--repair")
            hint = (
                f"Put the file back, or run '{repair}': it moves away what is there, and the "
                "sweep's command does the runs again"
            )
        return UnreadableError(str(self.path), found, "the journal of a sweep", hint)


def _record_frame(record: RunRecord) -> bytes:
    if not record.state.is_recorded:
        raise ValueError(f"a run that is {record.state} has no outcome to record")
    arrays: dict[str, Any] = {name: getattr(record, name) for name in ARRAYS}
    arrays |= {_TRACE + name: values for name, values in record.trace.items()}
    head = {name: getattr(record, name) for name in _IN_HEAD}
    head["of_classes"] = {name: np.asarray(a).tolist() for name, a in record.of_classes.items()}
    return frame({"kind": _RUN, **head}, arrays)


def _record(head: Mapping[str, Any] | None, arrays: Arrays) -> RunRecord | None:
    """Return the record of a head and arrays; None if they are damaged, or of another version."""
    if head is None or head.get("kind") != _RUN:
        return None
    trace = {n.removeprefix(_TRACE): a for n, a in arrays.items() if n.startswith(_TRACE)}
    given: dict[str, Any] = {name: arrays[name] for name in ARRAYS if name in arrays}
    try:
        own = {**head, "state": _STATES[head["state"]]}
        del own["kind"]
        if own["of_classes"]:
            own["of_classes"] = {n: np.array(a, np.float64) for n, a in own["of_classes"].items()}
        return RunRecord(**own, **given, trace=trace)
    except (LookupError, TypeError, ValueError):
        return None


def _frames(
    file: BinaryIO, start: int, size: int
) -> Iterator[tuple[_Frame, Mapping[str, Any] | None]]:
    """Yield the frames from `start` on, with their heads, None for a damaged head.

    Damaged bytes between two frames are passed over.
    """
    at: int | None = start
    while at is not None and at + HEADER_BYTES <= size:
        file.seek(at)
        header = frame_header(file.read(HEADER_BYTES))
        if header is None:
            at = _next_frame(file, at + 1, size)
            continue
        if at + header.n_bytes > size:
            return
        found = header.head(file.read(header.head_bytes))
        place = _Frame(at, header, "") if found is None else _placed(at, header, found[0])
        yield place, found[0] if found and place.kind else None
        at = place.end


def _placed(at: int, header: FrameHeader, head: Mapping[str, Any]) -> _Frame:
    """Return a frame with what its head says; without a kind if that makes no sense."""
    kind = head.get("kind")
    if kind == _RUN and isinstance(head.get("id"), str):
        state = _STATES.get(str(head.get("state")))
        if state is not None:
            return _Frame(at, header, _RUN, state)
    if kind == _REMOVED and isinstance(head.get("ids"), list):
        return _Frame(at, header, kind)
    return _Frame(at, header, "")


def _next_frame(file: BinaryIO, start: int, size: int) -> int | None:
    """Return where the next whole frame begins; None if there is none."""
    for position in range(start, size, _BUFFER):
        file.seek(position)
        content = file.read(_BUFFER + HEADER_BYTES)
        place = content.find(MAGIC)
        while 0 <= place < _BUFFER:
            header = frame_header(content[place : place + HEADER_BYTES])
            if header is not None and position + place + header.n_bytes <= size:
                return position + place
            place = content.find(MAGIC, place + 1)
    return None


def _body(file: BinaryIO, place: _Frame) -> bytes:
    file.seek(place.at + HEADER_BYTES + place.header.head_bytes)
    return file.read(place.header.body_bytes)


def _content(file: BinaryIO, place: _Frame) -> tuple[dict[str, Any], Arrays] | None:
    """Return dict and arrays of a frame; None if it is damaged."""
    file.seek(place.at + HEADER_BYTES)
    found = place.header.head(file.read(place.header.head_bytes))
    body = file.read(place.header.body_bytes)
    if found is None or not place.header.is_body(body):
        return None
    arrays = arrays_of(found[1], body)
    return None if arrays is None else (found[0], arrays)
