"""Limit of a worker's memory: parse its words, and check that a worker can keep it.

Banks that allow thin factors have these where matrices do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mkldist.core.memory import physical_memory
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import BUFFER_BYTES, WORKER_BASE_BYTES, least_memory
from mkldist.planning.facts import BankFacts, DatasetFacts
from mkldist.planning.model import BankPlan, Plan
from mkldist.solvers.most_points import most_points
from mkldist.solvers.parameters import MethodGrid
from mkldist.solvers.refusals import ProblemFacts, all_of
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.model import SweepSpec


def with_backends(
    spec: SweepSpec,
    grids: Mapping[str, Mapping[str, MethodGrid]],
    banks: Mapping[tuple[str, str], BankFacts],
    datasets: Mapping[str, DatasetFacts],
) -> dict[tuple[str, str], BankFacts]:
    """Return the facts of banks, which say for which of them thin factors stand.

    A bank that allows factors gets them on a data set if memory does not hold what some solver on
    it needs, of the matrices of all its points.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    grids : mapping of str to mapping of str to MethodGrid
        By data set, all settings of its methods by their keys.
    banks : mapping of (str, str) to BankFacts
        Facts by data set and bank label.
    datasets : mapping of str to DatasetFacts
        Facts by data set.
    """
    found = dict(banks)
    for bank in (one for one in spec.sized_banks if one.may_be_factors):
        for name, facts in datasets.items():
            place = name, bank.label
            thin = bank.backend == FACTORS or not _fits(
                spec, bank, grids[name], banks[place].n_kernels, max(facts.known_sizes)
            )
            found[place] = replace(banks[place], on_factors=thin)
    return found


def _fits(
    spec: SweepSpec,
    bank: BankSpec,
    grids: Mapping[str, MethodGrid],
    n_kernels: int,
    n_points: int,
) -> bool:
    """Return True if memory holds the matrices of every solver on a bank."""
    n_bytes = memory_of(spec)
    own = (grids[entry.key] for entry in spec.methods if entry.runs_on(bank))
    return all(n_points <= most_points_of(grid, n_kernels, n_bytes) for grid in own)


def most_points_of(grid: MethodGrid, n_kernels: int, n_bytes: int) -> int:
    """Return the most points on which memory holds what a solver needs at every setting."""
    return min(most_points(grid.method, point, n_kernels, n_bytes) for point in grid.points)


def memory_of(spec: SweepSpec) -> int:
    """Return the bytes that the solver of a worker of one thread may take.

    The worker has the sweep's `memory`, or this machine's; libraries and a buffer take some.
    """
    given = parse_memory(spec.memory) or physical_memory()
    return max(given - WORKER_BASE_BYTES - BUFFER_BYTES, 0)


def parse_memory(text: str | None, where: str = "memory") -> int | None:
    """Return the bytes that words such as ``2GiB`` stand for; None for None.

    Raises
    ------
    mkldist.errors.SpecError
        For anything else.
    """
    if text is None:
        return None
    from dask.utils import parse_bytes

    try:
        n_bytes = int(parse_bytes(text))
    except (ValueError, OverflowError):
        n_bytes = 0
    if n_bytes <= 0 or (n_bytes < 2**20 and text.strip().isdecimal()):
        raise SpecError(where, f"{text!r}", "a number of bytes such as '2GiB'")
    return n_bytes


def check_memory(plan: Plan, threads: int, available: int | None = None) -> None:
    """Refuse a limit of memory that no worker can keep, or more than the machine has.

    Parameters
    ----------
    plan : Plan
        The sweep's plan.
    threads : int
        Tasks that a worker runs at the same time.
    available : int, optional
        Bytes of memory of the machine on which workers run; None if it is unknown.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the bytes that a worker needs, and for what.
    """
    given, least = parse_memory(plan.spec.memory), least_memory(plan.banks, plan.batches, threads)
    limits = [limit for limit in (given, available) if limit is not None]
    if not limits or min(limits) >= least:
        return
    loaded = any(bank.spec.backend == "memory" for bank in plan.banks)
    held = "a whole bank" if loaded else "a buffer"
    if any(bank.sharded for bank in plan.banks):
        held = "a part of a bank"
    largest = max(bank.n_points for bank in plan.banks)
    needed = (
        f"at least {math.ceil(least / 2**20)} MiB, for the libraries, "
        f"{held} and one solver on {largest} points"
        + (f" in each of {threads} threads" if threads > 1 else "")
    )
    if available is not None and available < least:
        found = f"{available // 2**20} MiB in this machine"
        hint = 'Remove backend = "memory", or set "recompute"' if loaded else _advice(plan, threads)
        raise SpecError("memory", found, needed, hint)
    hint = 'Raise it, or remove backend = "memory"' if loaded else _advice(plan, threads)
    raise SpecError("memory", f"{plan.spec.memory!r}", needed, hint)


def _advice(plan: Plan, threads: int) -> str:
    """Return what helps where solvers do not fit: factors, for the methods that take them."""

    def needed(bank: BankPlan) -> int:
        return least_memory([bank], [one for one in plan.batches if one.bank == bank.id], threads)

    largest = max(plan.banks, key=needed)
    if largest.is_factored:
        return "Lower rank, or use fewer points"
    keys = dict.fromkeys((run.key, run.method) for run in plan.runs if run.bank == largest.id)
    refusals = {key: METHODS[name].refuses(ProblemFacts(factors=True)) for key, name in keys}
    can = [key for key, refusal in refusals.items() if refusal is None]
    cannot = [key for key, refusal in refusals.items() if refusal is not None]
    if not can:
        return f"Use fewer points: {_need(cannot)} whole Gram matrices"
    if not cannot:
        return f'Set backend = "{FACTORS}", which needs no matrix of all points'
    return (
        f'Give {all_of(can)} a bank with backend = "{FACTORS}", which needs no matrix of all '
        f"points; {_need(cannot)} whole Gram matrices, for fewer points"
    )


def _need(names: Sequence[str]) -> str:
    """Return names with the verb that says that they need something."""
    return f"{all_of(names)} need{'s' if len(names) == 1 else ''}"
