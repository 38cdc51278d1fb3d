"""The choice of thin factors for the banks that allow them: where matrices do not fit in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mkldist.memory import physical_memory
from mkldist.planning.costs import BUFFER_BYTES, WORKER_BASE_BYTES
from mkldist.planning.facts import BankFacts, DatasetFacts
from mkldist.resolve.memory_limit import parse_memory
from mkldist.solvers.most_points import most_points
from mkldist.solvers.parameters import MethodGrid
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
