"""Record of one run: its solution, scores, times and origin, or its error."""

from __future__ import annotations

import math
import os
import platform
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats, Ints, read_only
from mkldist.core.memory import physical_memory
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
    """Return versions and machine of this process, JSON-serialisable.

    ``commit`` is that of mkldist, empty where it does not run from a git checkout.
    """
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
