"""Preparation of a sweep: its plan, its folders, and the settings of its batches."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mkldist.plan.model import Plan
from mkldist.plan.planner import make_plan
from mkldist.resolve.code_check import check_code
from mkldist.resolve.memory_limit import check_memory, parse_memory
from mkldist.resolve.resolved import Resolved, resolve
from mkldist.results.layout import check_names
from mkldist.results.output import OutputFolder
from mkldist.run.cluster import ConnectOptions, default_workers
from mkldist.spec.model import SweepSpec
from mkldist.worker.batch import BatchSettings

TOPIC = "mkldist-runs"


def planned(
    spec: SweepSpec,
    origin: Path,
    data_dirs: Sequence[Path],
    options: ConnectOptions,
    *,
    allow_code: bool = False,
) -> tuple[Plan, Resolved]:
    """Return the plan of a sweep for the workers that the options ask for, and its data.

    Parameters
    ----------
    spec, origin, data_dirs
        As for :func:`mkldist.run.sweep.run_sweep`.
    options : ConnectOptions
        Workers of the sweep.
    allow_code : bool
        True if kernel functions that are not mkldist's may be imported and called.

    Raises
    ------
    mkldist.errors.InputError
        For input that cannot be used.
    """
    check_names(spec)
    memory_limit = parse_memory(spec.memory)
    if memory_limit is not None:
        memory_limit //= options.threads_per_worker
    code = check_code(spec, origin.parent, allowed=allow_code)
    resolved = replace(resolve(spec, data_dirs, origin.parent), code=code)
    n_threads = options.expected_threads() or default_workers()
    plan = make_plan(spec, resolved.facts, resolved.banks, resolved.grids, n_threads, memory_limit)
    check_memory(plan, options.threads_per_worker)
    return plan, resolved


def batch_settings(spec: SweepSpec, folder: OutputFolder) -> BatchSettings:
    """Return the settings of a sweep's batches, with a Dask topic of this call alone."""
    return BatchSettings(
        records=str(folder.records.absolute()),
        execution=spec.execution,
        seed=spec.seed,
        memory_limit=parse_memory(spec.memory),
        predictions=spec.outputs.predictions,
        coefficients=spec.outputs.coefficients or bool(spec.outputs.figures),
        topic=f"{TOPIC}-{uuid.uuid4().hex}",
    )
