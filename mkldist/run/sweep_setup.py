"""Preparation of a sweep: its plan, its folders, and the settings of its batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.data.given import GivenData
from mkldist.errors import InputError
from mkldist.memory import physical_memory
from mkldist.planning.model import Plan
from mkldist.resolve.code_check import check_code
from mkldist.resolve.memory_limit import check_memory, parse_memory
from mkldist.resolve.resolved import NOTHING, Resolved, resolve
from mkldist.results.layout import check_names
from mkldist.run.cluster import ConnectOptions, default_workers
from mkldist.run.wall_time import parse_wall_time
from mkldist.search.rounds import Rounds
from mkldist.spec.model import SweepSpec

if TYPE_CHECKING:
    from mkldist.worker.tasks import BatchSettings


def planned(
    spec: SweepSpec,
    origin: Path,
    data_dirs: Sequence[Path],
    options: ConnectOptions,
    *,
    allow_code: bool = False,
) -> tuple[Plan, Resolved]:
    """Return the plan of a sweep for the workers that the options ask for, and its data.

    With a search it is a plan of as many runs as there may be.

    Parameters
    ----------
    spec, origin, data_dirs, options, allow_code
        As for :func:`sweep_rounds`.

    Raises
    ------
    mkldist.errors.InputError
        For input that cannot be used.
    """
    rounds = sweep_rounds(spec, origin, data_dirs, options, allow_code=allow_code)
    return rounds.most, rounds.resolved


def sweep_rounds(
    spec: SweepSpec,
    origin: Path,
    data_dirs: Sequence[Path],
    options: ConnectOptions,
    given: Mapping[str, GivenData] = NOTHING,
    *,
    allow_code: bool = False,
) -> Rounds:
    """Return the rounds of a sweep for the workers that the options ask for, at the first.

    Parameters
    ----------
    spec, origin, data_dirs
        As for :func:`mkldist.run.sweep.run_sweep`.
    options : ConnectOptions
        Workers of the sweep.
    given : mapping of str to GivenData
        Data sets that are in memory, by name.
    allow_code : bool
        True if kernel functions that are not mkldist's may be imported and called.

    Raises
    ------
    mkldist.errors.InputError
        For input that cannot be used.
    """
    check_names(spec)
    options = options.of_execution(spec.execution)
    parse_wall_time(spec.wall_time)  # refuses words that are no time
    memory_limit = parse_memory(spec.memory)
    if memory_limit is not None:
        memory_limit //= options.threads_per_worker
    code = check_code(spec, origin.parent, allowed=allow_code)
    resolved = replace(resolve(spec, data_dirs, origin.parent, given), code=code)
    n_threads = options.expected_threads() or default_workers()
    rounds = Rounds(spec, resolved, n_threads, memory_limit)
    available = physical_memory() if options.are_local else None
    check_memory(rounds.most, options.threads_per_worker, available)
    return rounds


def with_recorded(
    rounds: Rounds, of_file: Callable[[], Rounds], recorded: Collection[str]
) -> Rounds:
    """Return the rounds of a call that asks for a part of its sweep file, with what is recorded.

    ``--set`` may narrow a sweep, as to one value of a list: then the call does this part, and the
    results hold the recorded runs of the file beside it.

    Parameters
    ----------
    rounds : Rounds
        What the call asks for.
    of_file : callable
        Returns the rounds of the file as it is.
    recorded : collection of str
        Ids of the recorded runs.

    Returns
    -------
    Rounds
        The same `rounds` if the call asks for a run that the file does not, if records decide on
        further runs, or if nothing else is recorded.
    """
    asked = {run.id for run in rounds.plan.runs}
    if rounds.are_several or not {*recorded} - asked:
        return rounds
    with suppress(InputError):  # the file may be wrong where a change of this call makes it right
        whole = of_file()
        known = {run.id for run in whole.plan.runs}
        if not whole.are_several and asked <= known:
            return whole.only(asked | known.intersection(recorded))
    return rounds


def batch_settings(spec: SweepSpec, *, predictions: bool = False) -> BatchSettings:
    """Return the settings of a sweep's batches."""
    from mkldist.worker.tasks import BatchSettings

    return BatchSettings(
        execution=spec.execution,
        seed=spec.seed,
        memory_limit=parse_memory(spec.memory),
        predictions=predictions,
        coefficients=spec.outputs.coefficients or bool(spec.outputs.figures),
    )
