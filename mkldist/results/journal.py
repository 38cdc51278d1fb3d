"""The journal of a sweep: one file to which the outcomes of its runs are appended.

The process that owns the output folder appends; any process may read meanwhile.  A record is a
frame of :mod:`mkldist.core.checksums`: a head with its states, scores and other small values, and
a body with its arrays and its provenance.  A later frame of a run replaces the earlier one.
A writer that is killed leaves the beginning of a frame, where readers stop and which the next
writer cuts off.  What a damaged frame held counts as not recorded.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from mkldist.core.checksums import (
    HEADER_BYTES,
    MAGIC,
    Arrays,
    FrameHeader,
    arrays_of,
    frame,
    frame_header,
)
from mkldist.core.compiled import without_garbage_collection
from mkldist.core.durable import flush_folder, make_folder, replacing
from mkldist.errors import OutputError, UnreadableError
from mkldist.results.record import ARRAYS, RunRecord
from mkldist.results.schema import RunState

JOURNAL = "records.journal"

_TRACE = "trace."
_PROVENANCE = "provenance"
_IN_HEAD = [
    item.name for item in fields(RunRecord) if item.name not in (*ARRAYS, "trace", _PROVENANCE)
]
_RUN, _REMOVED = "run", "removed"
NUMBERS = ("extra", "counters", "times", "scores")
"""Fields that hold numbers by their names."""
_STATES = {state.value: state for state in RunState if state.is_recorded}
_BUFFER = 2**20
T = TypeVar("T")
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
    """Bytes of a journal that are damaged, and the run whose record they were, if that is read.

    A torn frame is the beginning of one at the end of the file: its writer was killed, is at work,
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
    """Records of the runs of a sweep, in one file, which is made with the first record."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.n_damaged = 0
        """Places where the last reader of heads met damage; bodies are read by :meth:`damaged`."""
        self._last: _Frame | None = None  # of the frames that have been read
        self._runs: dict[str, _Frame] = {}
        self._has_written = False

    @property
    def is_blocked(self) -> bool:
        """True if a folder, or a link to nothing, stands in the place of the file."""
        return os.path.lexists(self.path) and not self.path.is_file()

    def append(self, records: Iterable[RunRecord]) -> None:
        """Append records, which then survive a loss of power; for the owner of the folder alone."""
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
            return {run_id: known.state for run_id, known in self._runs.items() if known.state}

    def scan(self, of: Callable[[Mapping[str, Any]], T]) -> dict[str, T]:
        """Return what a function makes of the head of every record, by run, in one pass.

        A head holds the fields of a record but its arrays and its provenance.  One of which the
        function makes an error is of another version, and left out.
        """
        found: dict[str, T] = {}

        def take(known: _Frame, head: Mapping[str, Any]) -> None:
            for run_id in head["ids"] if known.kind == _REMOVED else [head["id"]]:
                found.pop(run_id, None)
            if known.kind == _RUN:
                with suppress(LookupError, TypeError, ValueError):
                    found[head["id"]] = of(head)

        with without_garbage_collection(), self._opened(take):
            return found

    def heads(self) -> dict[str, RunRecord]:
        """Return all records without arrays, but those of classes, and without provenance."""
        return self.scan(lambda head: _record(head, {}))

    def read(self, run_id: str) -> RunRecord | None:
        """Return a run's record; None if it is missing or damaged."""
        with self._opened() as file:
            return _whole(file, self._runs.get(run_id))

    def each(self, run_ids: Iterable[str], of: Callable[[RunRecord], T]) -> list[T | None]:
        """Return what a function makes of each run's record, which is without provenance here.

        It is None for a record that is missing or damaged.
        """
        with self._opened() as file:
            records = (_whole(file, self._runs.get(i), provenance=False) for i in run_ids)
            return [None if record is None else of(record) for record in records]

    def damaged(self) -> list[Damage]:
        """Read every byte; return what is damaged, and let its runs count as not recorded."""
        found: list[Damage] = []
        with self._opened() as file:
            if file is None:
                return []
            size, at = os.fstat(file.fileno()).st_size, 0
            for known, head in _frames(file, 0, size):
                if known.at > at:
                    found.append(Damage(at, known.at))
                at = known.end
                run_id = str(head.get("id", "")) if head else ""
                if head is None or not known.header.is_body(_body(file, known)):
                    found.append(Damage(known.at, known.end, run_id))
                    if self._runs.get(run_id) == known:
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
            target = self.path.resolve()  # a link stays one
            with replacing(target) as temporary, temporary.open("xb") as new:
                for known in sorted(self._runs.values(), key=lambda known: known.at):
                    file.seek(known.at)
                    new.write(file.read(known.header.n_bytes))
                shutil.copymode(target, temporary)
        self._forget()

    @property
    def _end(self) -> int:
        """Where the frames end that have been read."""
        return 0 if self._last is None else self._last.end

    def _forget(self) -> None:
        self._last, self._runs, self.n_damaged = None, {}, 0

    @contextmanager
    def _opened(
        self, take: Callable[[_Frame, Mapping[str, Any]], None] | None = None
    ) -> Iterator[BinaryIO | None]:
        """Yield the file, whose whole frames have been read; None if it is missing.

        Only frames that have been added are read, unless `take` shall have the heads of all.
        """
        with _READING:
            try:
                file = self.path.open("rb", buffering=_BUFFER)
            except OSError as error:
                if not isinstance(error, FileNotFoundError) or self.is_blocked:
                    raise self._unreadable(error) from error
                self._forget()
                yield None
                return
            with file:
                if take or not (self._last and self._last.is_in(file)):
                    self._forget()  # also if it is another file, even one of the same inode
                for known, head in _frames(file, self._end, os.fstat(file.fileno()).st_size):
                    self.n_damaged += head is None or known.at > self._end
                    self._last = known
                    if head is not None:
                        if known.kind == _RUN:
                            self._runs[head["id"]] = known
                        else:
                            for run_id in head["ids"]:
                                self._runs.pop(run_id, None)
                        if take:
                            take(known, head)
                yield file

    def _write(self, frames: Iterable[bytes]) -> None:
        """Append frames after the last whole one, and flush them to the device."""
        content = memoryview(b"".join(frames))
        with self._opened() as file:
            is_new = file is None
        if is_new and self._has_written:
            raise OutputError(
                str(self.path),
                "no such file any more",
                "the journal that this sweep has written",
                "Put it back, then repeat the command: what it holds is not done again",
            )
        make_folder(self.path.parent)
        with self.path.open("xb" if is_new else "r+b", buffering=0) as raw:
            raw.truncate(self._end)
            raw.seek(self._end)
            try:
                while content:
                    content = content[raw.write(content) :]
                os.fsync(raw.fileno())
            except OSError:  # an interrupt leaves whole frames, and a torn tail at most
                with suppress(OSError):
                    raw.truncate(self._end)
                raise
        if is_new:
            flush_folder(self.path.parent)
        self._has_written = True

    def _unreadable(self, error: OSError) -> UnreadableError:
        found = f"a file that cannot be read ({error.strerror})"
        hint = "Make it readable, then repeat the command: finished work is kept"
        if self.is_blocked:
            found = "a folder, or a link to nothing"
            hint = (
                "Put the file back, or move away what is there: the sweep's command then does the "
                "runs again"
            )
        return UnreadableError(str(self.path), found, "the journal of a sweep", hint)


def _record_frame(record: RunRecord) -> bytes:
    """Return a record as a frame: arrays and provenance in the body, the rest in the head."""
    if not record.state.is_recorded:
        raise ValueError(f"a run that is {record.state} has no outcome to record")
    arrays: dict[str, Any] = {name: getattr(record, name) for name in ARRAYS}
    arrays = {name: array for name, array in arrays.items() if array.shape != (0,)}
    arrays |= {_TRACE + name: values for name, values in record.trace.items()}
    if record.provenance:
        arrays[_PROVENANCE] = np.array([json.dumps(record.provenance)], dtype=object)
    head = {name: getattr(record, name) for name in _IN_HEAD}
    head["of_classes"] = {
        name: np.asarray(values, np.float64).tolist() for name, values in record.of_classes.items()
    }
    return frame({"kind": _RUN, **head}, arrays)


def _record(head: Mapping[str, Any], arrays: Arrays) -> RunRecord:
    """Return the record of a head and arrays; raise an error for one of another version."""
    own = {name: value for name, value in head.items() if name != "kind"}
    own["state"] = _STATES[own["state"]]
    own |= {name: {**own[name]} for name in NUMBERS}
    of_classes = {**own["of_classes"]}
    own["of_classes"] = {name: np.array(v, np.float64) for name, v in of_classes.items()}
    own |= {name: arrays[name] for name in ARRAYS if name in arrays}
    own["trace"] = {n.removeprefix(_TRACE): a for n, a in arrays.items() if n.startswith(_TRACE)}
    if _PROVENANCE in arrays:
        own["provenance"] = json.loads(arrays[_PROVENANCE][0])
    return RunRecord(**own)


def _whole(
    file: BinaryIO | None, known: _Frame | None, *, provenance: bool = True
) -> RunRecord | None:
    """Return the record of a frame; None if there is none, or it is damaged."""
    if file is None or known is None:
        return None
    file.seek(known.at + HEADER_BYTES)
    found = known.header.head(file.read(known.header.head_bytes))
    body = file.read(known.header.body_bytes)
    if found is None or not known.header.is_body(body):
        return None
    arrays = arrays_of(found[1], body)
    if arrays and not provenance:
        arrays.pop(_PROVENANCE, None)
    with suppress(LookupError, TypeError, ValueError):
        return None if arrays is None else _record(found[0], arrays)
    return None


def _frames(
    file: BinaryIO, start: int, size: int
) -> Iterator[tuple[_Frame, Mapping[str, Any] | None]]:
    """Yield the frames from `start` on, with their heads, None for a head that is damaged.

    Damaged bytes between two frames are passed over.
    """
    at: int | None = start
    while at is not None and at + HEADER_BYTES <= size:
        file.seek(at)
        header = frame_header(file.read(HEADER_BYTES))
        if header is None:
            at = _next_frame(file, at + 1, size)
            continue
        end = at + header.n_bytes
        if end > size:
            return
        found = header.head(file.read(header.head_bytes))
        head = found[0] if found else {}
        kind, run_id, state = (head.get(name) for name in ("kind", "id", "state"))
        if kind == _RUN and isinstance(run_id, str) and isinstance(state, str) and state in _STATES:
            yield _Frame(at, header, _RUN, _STATES[state]), head
        elif kind == _REMOVED and isinstance(head.get("ids"), list):
            yield _Frame(at, header, _REMOVED), head
        else:
            yield _Frame(at, header, ""), None
        at = end


def _next_frame(file: BinaryIO, start: int, size: int) -> int | None:
    """Return where the next whole frame begins; None if there is none."""
    for position in range(start, size, _BUFFER):
        file.seek(position)
        content = file.read(_BUFFER + HEADER_BYTES)
        at = content.find(MAGIC)
        while 0 <= at < _BUFFER:
            header = frame_header(content[at : at + HEADER_BYTES])
            if header is not None and position + at + header.n_bytes <= size:
                return position + at
            at = content.find(MAGIC, at + 1)
    return None


def _body(file: BinaryIO, known: _Frame) -> bytes:
    file.seek(known.at + HEADER_BYTES + known.header.head_bytes)
    return file.read(known.header.body_bytes)
