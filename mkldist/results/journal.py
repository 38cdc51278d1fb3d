"""The journal of a sweep: one file to which the records of its runs are appended.

A record holds the outcome of one run: its solution, scores, times and origin, or its error.

The process that owns the output folder appends; any process may read meanwhile.  A record is a
frame of :mod:`mkldist.core.checksums`: a head with its states, scores and other small values, and
a body with its arrays and its provenance.  A later frame of a run replaces the earlier one.
A writer that is killed leaves the beginning of a frame, where readers stop and which the next
writer cuts off.  What a damaged frame held counts as not recorded.
"""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats, Ints, read_only
from mkldist.core.checksums import HEADER_BYTES, Arrays, FrameHeader, arrays_of, frame, frame_header
from mkldist.core.compiled import without_garbage_collection
from mkldist.core.durable import MAGIC, flush_folder, make_folder, replacing
from mkldist.core.memory import physical_memory
from mkldist.errors import OutputError, UnreadableError
from mkldist.results.schema import RunState
from mkldist.solvers.base import Solution, exact_proximity_of, proximity_of
from mkldist.solvers.progress import STATIONARITY, StopReason, is_active

if TYPE_CHECKING:
    from mkldist.planning.model import RunPlan


_NO_FLOATS: Floats = read_only(np.zeros(0))
_NO_INTS: Ints = read_only(np.zeros(0, dtype=np.intp))


def _no_floats() -> Floats:
    return _NO_FLOATS


def _no_ints() -> Ints:
    return _NO_INTS


def _floats(values: Floats | None) -> Floats:
    return _no_floats() if values is None else np.asarray(values, dtype=np.float64)


def _ints(values: Ints | None) -> Ints:
    return _no_ints() if values is None else np.asarray(values, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class RunRecord:
    """The outcome of one run of M kernels, of which s have a weight, on n training rows.

    Values of each of k classes are of more than two classes.
    """

    # Identity of the run, as in `planning.model.RunPlan`; `bank` is the bank's label
    id: str
    dataset: str
    bank: str
    split: int
    method: str
    key: str
    params: dict[str, Any]
    state: RunState  # ``COMPLETE`` or ``FAILED``
    error: str = ""  # Why the run failed
    n_kernels: int = 0  # M
    n_active: int = -1  # Kernels that are active for some class; by default counted in `weights`
    n_nonzero: int = -1  # Kernels with a non-zero weight; by default counted in `kernels`
    kernels: Ints = field(default_factory=_no_ints)  # (s,) of non-zero weight, ascending
    # (s,) or (k, s) weights of these, for each class unless classes share them
    weights: Floats = field(default_factory=_no_floats)
    # (n,) or (k, n) expansion coefficients over the training rows, in the order of the split
    coefficients: Floats = field(default_factory=_no_floats)
    bias: float = math.nan  # Intercept; NaN for more than two classes, see `of_classes`
    objective: float = math.nan
    dual_objective: float = math.nan  # Lower bound
    gap: float = math.nan  # Relative duality gap
    stop_reason: str = ""
    counters: dict[str, int] = field(default_factory=dict)  # Work done by the solver
    scores: dict[str, float] = field(default_factory=dict)  # By name, such as ``test_error``
    times: dict[str, float] = field(default_factory=dict)  # Seconds by name, see `schema.SCALARS`
    # A row per outer iteration, if the method has the setting ``trace``, and `FINAL_TRACES`
    trace: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)  # Further scalars of the method
    of_classes: dict[str, Floats] = field(default_factory=dict)  # (k,), or (k, k) ``confusion``
    # (t,) test rows of the data set, then unlabelled rows; empty unless predictions are kept
    test_rows: Ints = field(default_factory=_no_ints)
    # (t,) or (k, t) decision function at these rows
    decision_values: Floats = field(default_factory=_no_floats)
    # (n,) rows to which `coefficients` belong; empty unless these are kept
    train_rows: Ints = field(default_factory=_no_ints)
    # (s, n) coefficients of each kernel, if kernels have their own and these are kept, in the
    # order of `kernels`, or of the entries of `weights` other than 0, class by class
    kernel_coefficients: Floats = field(default_factory=_no_floats)
    # Versions, machine, threads, seed and fingerprints; JSON-serialisable
    provenance: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_solutions(
        cls,
        run: RunPlan,
        solutions: Sequence[Solution],
        *,
        scores: Mapping[str, float],
        times: Mapping[str, float],
        provenance: Mapping[str, Any],
        test_rows: Ints | None = None,
        decision_values: Floats | None = None,
        train_rows: Ints | None = None,
        kernel_coefficients: Floats | None = None,
        counters: Mapping[str, int] | None = None,
        of_classes: Mapping[str, Floats] | None = None,
    ) -> RunRecord:
        """Return the record of a run whose solvers returned."""
        found = solution_fields(solutions)
        found["counters"] |= counters or {}
        found["of_classes"] = {**found.get("of_classes", {}), **(of_classes or {})}
        return cls(
            **_identity(run),
            **found,
            state=RunState.COMPLETE,
            scores={name: float(value) for name, value in scores.items()},
            times={name: float(value) for name, value in times.items()},
            test_rows=_ints(test_rows),
            decision_values=_floats(decision_values),
            train_rows=_ints(train_rows),
            kernel_coefficients=_floats(kernel_coefficients),
            provenance=dict(provenance),
        )

    @classmethod
    def failed(
        cls,
        run: RunPlan,
        error: str,
        *,
        n_kernels: int = 0,
        provenance: Mapping[str, Any] | None = None,
    ) -> RunRecord:
        """Return the record of a run that ended in `error`."""
        made_by = {n: _utf8(v) if isinstance(v, str) else v for n, v in (provenance or {}).items()}
        return cls(
            **_identity(run),
            state=RunState.FAILED,
            error=_utf8(error),
            n_kernels=n_kernels,
            provenance=made_by,
        )

    @property
    def kernel_weights(self) -> Floats:
        """Weights of all M kernels, (M,), or (k, M) of k classes."""
        dense = np.zeros((*self.weights.shape[:-1], self.n_kernels))
        dense[..., self.kernels] = self.weights
        return dense

    def __post_init__(self) -> None:
        if self.n_active < 0:
            active = is_active(np.atleast_2d(self.weights)).any(axis=0)
            object.__setattr__(self, "n_active", int(np.count_nonzero(active)))
        if self.n_nonzero < 0:
            object.__setattr__(self, "n_nonzero", len(self.kernels))


ARRAYS = tuple(
    item.name for item in fields(RunRecord) if item.default_factory in (_no_floats, _no_ints)
)
"""Names of the fields that are arrays."""


def _utf8(text: str) -> str:
    """Return a text that every file can hold: names of files may be no UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def _identity(run: RunPlan) -> dict[str, Any]:
    return {
        "id": run.id,
        "dataset": run.dataset,
        "bank": run.bank_label,
        "split": run.split,
        "method": run.method,
        "key": run.key,
        "params": dict(run.params),
    }


def solution_fields(solutions: Sequence[Solution]) -> dict[str, Any]:
    """Return the fields of a record that the solution of a run, or of each class, determines.

    Objectives, bounds and work of several solutions are summed; of their stationarities the largest
    counts, and a gap they have only together.  The stop reason is that of the first solution that
    did not converge.
    """
    if len(solutions) > 1:
        return _of_each_class(solutions)
    solution = solutions[0]
    kernels = np.flatnonzero(solution.kernel_weights)
    fields = {
        "n_kernels": len(solution.kernel_weights),
        "kernels": kernels,
        "weights": np.asarray(solution.kernel_weights, dtype=np.float64)[kernels],
        "coefficients": np.asarray(solution.coefficients, dtype=np.float64).T,
        "objective": float(solution.objective),
        "dual_objective": float(solution.dual_objective),
        "gap": float(solution.gap),
        "stop_reason": str(solution.stop_reason),
        "counters": solution.counters.as_dict(),
        "trace": {name: np.asarray(values) for name, values in solution.trace.items()},
        "extra": _scalars(solution),
    }
    if solution.coefficients.ndim == 1:
        return fields | {"bias": float(solution.bias)}
    biases = np.asarray(solution.bias, dtype=np.float64)
    return fields | {"bias": math.nan, "of_classes": {"class_bias": biases}}


def _of_each_class(solutions: Sequence[Solution]) -> dict[str, Any]:
    weights = np.array([solution.kernel_weights for solution in solutions], dtype=np.float64)
    kernels = np.flatnonzero(weights.any(axis=0))
    objective = sum(solution.objective for solution in solutions)
    dual = sum(solution.dual_objective for solution in solutions)
    reasons = [solution.stop_reason for solution in solutions]
    early = [reason for reason in reasons if reason is not StopReason.CONVERGED]
    proximity, exact = proximity_of(solutions), exact_proximity_of(solutions)
    work = [solution.counters.as_dict() for solution in solutions]
    return {
        "n_kernels": weights.shape[1],
        "kernels": kernels,
        "weights": weights[:, kernels],
        "coefficients": np.array([solution.coefficients for solution in solutions]),
        "bias": math.nan,
        "objective": float(objective),
        "dual_objective": float(dual),
        "gap": math.nan,
        **({} if STATIONARITY in proximity else proximity),
        "extra": exact | (proximity if STATIONARITY in proximity else {}),
        "stop_reason": str((early or reasons)[0]),
        "counters": {name: sum(one[name] for one in work) for name in work[0]},
        "trace": _traces([solution.trace for solution in solutions]),
        "of_classes": {
            "class_bias": np.array([solution.bias for solution in solutions], dtype=np.float64),
            "class_objective": np.array([solution.objective for solution in solutions]),
            "class_dual_objective": np.array([solution.dual_objective for solution in solutions]),
            **_extras([_scalars(solution) for solution in solutions]),
        },
    }


def _scalars(solution: Solution) -> dict[str, float]:
    """Return what a solution reports besides, with the bound of one on factors of kernels."""
    reported = {**solution.extra, **exact_proximity_of([solution])}
    return {name: float(value) for name, value in reported.items()}


def _extras(extras: Sequence[dict[str, float]]) -> dict[str, Floats]:
    """Return further scalars of the classes, NaN for a class that did not report one."""
    names = dict.fromkeys(name for extra in extras for name in extra)
    return {
        f"class_{name}": np.array([extra.get(name, math.nan) for extra in extras], dtype=np.float64)
        for name in names
    }


def _traces(traces: Sequence[dict[str, Floats]]) -> dict[str, Floats]:
    """Return the traces of classes stacked, the shorter ones filled up with NaN."""
    stacked = {}
    for name in dict.fromkeys(name for trace in traces for name in trace):
        rows = [np.asarray(trace.get(name, np.empty(0)), dtype=np.float64) for trace in traces]
        shape = tuple(max(sizes) for sizes in zip(*(r.shape for r in rows if r.size), strict=True))
        stacked[name] = np.full((len(rows), *shape), np.nan)
        for target, row in zip(stacked[name], rows, strict=True):
            if row.size:
                target[tuple(slice(size) for size in row.shape)] = row
    return stacked


PACKAGE = Path(__file__).parents[1]
SECONDS = 10.0  # for git to answer, on a slow file system


@cache
def source_commit(package: Path = PACKAGE) -> str:
    """Return the commit of a package's checkout, ``-dirty`` if files differ; else an empty text.

    A package that is installed inside of somebody else's checkout has no commit.
    """
    if not (package.parent / ".git").exists():
        return ""
    command = ["git", "--no-optional-locks", "-C", str(package), "describe", "--always", "--dirty",
               "--abbrev=40", "--exclude=*"]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


PACKAGES = ("mkldist", "numpy", "scipy", "numba", "scikit-learn", "zarr", "xarray", "distributed")
CPUINFO = Path("/proc/cpuinfo")


@cache
def environment() -> dict[str, Any]:
    """Return versions and machine of this process, JSON-serialisable."""
    import scipy.linalg  # noqa: F401  SciPy loads a BLAS of its own
    from threadpoolctl import threadpool_info

    blas = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    return {
        "commit": source_commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "host": socket.gethostname(),
        "processor": processor_name(),
        "processors": os.cpu_count() or 0,
        "memory_bytes": physical_memory(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
        "blas": sorted(
            {f"{pool.get('internal_api')} {pool.get('version')}".strip() for pool in blas}
        ),
    }


def provenance(*, seed: int, data: str, bank: str, split: str, threads: int) -> dict[str, Any]:
    """Return inputs, software, machine and end of a run that has just ended, JSON-serialisable."""
    return {
        **environment(),
        "seed": seed,
        "data_fingerprint": data,
        "bank": bank,
        "split_fingerprint": split,
        "blas_threads": threads,
        "pid": os.getpid(),
        "ended": time.time(),
    }


def processor_name(cpuinfo: Path = CPUINFO) -> str:
    """Return the model of the processor; elsewhere than on Linux, what Python knows of it."""
    with suppress(OSError):
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor()


def _version(name: str) -> str:
    """Return the version of an installed package; empty if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


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
_OF_ANOTHER_VERSION = (LookupError, TypeError, ValueError)
"""What a record of other fields raises where it is read."""
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

        def take(_: BinaryIO, known: _Frame, head: Mapping[str, Any] | None) -> None:
            if known.kind == _REMOVED and head:
                for run_id in head["ids"]:
                    found.pop(run_id, None)
            elif head:
                found.pop(head["id"], None)
                with suppress(*_OF_ANOTHER_VERSION):
                    found[head["id"]] = of(head)

        with without_garbage_collection(), self._opened(take):
            return found

    def read(self, run_id: str) -> RunRecord | None:
        """Return a run's record; None if it is missing or damaged."""
        with self._opened() as file:
            return _whole(file, self._runs.get(run_id))

    def each(self, run_ids: Iterable[str], of: Callable[[RunRecord], T]) -> list[T | None]:
        """Return what a function makes of each run's record; None of one missing or damaged."""
        with self._opened() as file:
            records = (_whole(file, self._runs.get(i), provenance=False) for i in run_ids)
            return [None if record is None else of(record) for record in records]

    def damaged(self) -> list[Damage]:
        """Read every byte; return what is damaged, and let its runs count as not recorded.

        A record of another version counts as damaged.
        """
        found, at = list[Damage](), 0

        def check(file: BinaryIO, known: _Frame, head: Mapping[str, Any] | None) -> None:
            nonlocal at
            if known.at > at:
                found.append(Damage(at, known.at))
            at = known.end
            file.seek(known.at + HEADER_BYTES + known.header.head_bytes)
            body = file.read(known.header.body_bytes)
            if not (head and _is_known(known, head) and known.header.is_body(body)):
                run_id = str(head.get("id", "")) if head else ""
                found.append(Damage(known.at, known.end, run_id))
                if self._runs.get(run_id) == known:
                    del self._runs[run_id]

        with without_garbage_collection(), self._opened(check) as file:
            if file is None:
                return []
            size = os.fstat(file.fileno()).st_size
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
        self, take: Callable[[BinaryIO, _Frame, Mapping[str, Any] | None], None] | None = None
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
                        take(file, known, head)
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
    with suppress(*_OF_ANOTHER_VERSION):
        return None if arrays is None else _record(found[0], arrays)
    return None


def _is_known(known: _Frame, head: Mapping[str, Any]) -> bool:
    """Return False for the head of a record of another version."""
    with suppress(*_OF_ANOTHER_VERSION):
        return known.kind == _REMOVED or bool(_record(head, {}))
    return False


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
        kind, run_id, state = map(head.get, ("kind", "id", "state"))
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
