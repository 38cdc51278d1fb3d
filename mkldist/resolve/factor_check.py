"""Check that methods can solve on the banks of factors of a sweep, and that splits allow these."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from mkldist.data.dataset import Dataset, Split
from mkldist.errors import SpecError
from mkldist.machine_memory import physical_memory
from mkldist.memory import ProblemSize
from mkldist.methods.registry import METHODS, methods_for
from mkldist.planning.facts import BankFacts
from mkldist.resolve.memory_limit import parse_memory
from mkldist.solvers.base import Method
from mkldist.solvers.parameters import MethodGrid
from mkldist.solvers.refusals import ProblemFacts, Refusal, one_of
from mkldist.solvers.solver_params import SolverParams
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.model import MethodSpec, SweepSpec

MOST_POINTS = 10**8


def check_factors(
    spec: SweepSpec,
    grids: Mapping[str, Mapping[str, MethodGrid]],
    banks: Mapping[tuple[str, str], BankFacts],
    datasets: Mapping[str, tuple[Dataset, Sequence[Split]]],
) -> None:
    """Refuse methods that cannot solve on a bank of factors, and unlabelled rows in such a bank.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    grids : mapping of str to mapping of str to MethodGrid
        By data set, all settings of its methods by their keys.
    banks : mapping of (str, str) to BankFacts
        Facts by data set and bank label.
    datasets : mapping of str to (Dataset, sequence of Split)
        Data sets with their splits.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first such method, the points up to which its matrices fit in memory, and the
        methods that can; or the first data set with unlabelled rows.
    """
    for bank in (one for one in spec.sized_banks if one.backend == FACTORS):
        for entry in (one for one in spec.methods if one.runs_on(bank)):
            refusal = METHODS[entry.name].refuses(ProblemFacts(factors=True))
            if refusal is not None:
                most = max(facts.n_kernels for (_, label), facts in banks.items()
                           if label == bank.label)  # fmt: skip
                of_first = next(iter(grids.values()))
                raise _refused(spec, bank, entry, refusal, of_first[entry.key], most)
        for name, (_, splits) in datasets.items():
            if any(len(split.unlabelled) for split in splits):
                raise SpecError(
                    f"banks.{bank.label}.backend",
                    f'"{FACTORS}" for data set {name!r}, which has unlabelled rows',
                    "labelled rows alone, among which the pivots of factors are",
                    "Choose another backend, or remove the unlabelled rows",
                )


def _refused(
    spec: SweepSpec,
    bank: BankSpec,
    entry: MethodSpec,
    refusal: Refusal,
    grid: MethodGrid,
    n_kernels: int,
) -> SpecError:
    """Return the error of a method that cannot solve on a bank of factors."""
    n_bytes = parse_memory(spec.memory) or physical_memory()
    most = most_points(grid.method, next(iter(grid.points)), n_kernels, n_bytes)
    return SpecError(
        f"methods.{entry.key}",
        f"{entry.name} on bank {bank.label!r} of factors, but it {refusal.reason}, which "
        f"{n_bytes / 2**30:.1f} GiB of memory hold up to {most:,} points",
        f"{refusal.others}: {one_of(methods_for(ProblemFacts(factors=True)))}",
        "Or give it a bank with another backend by banks = [...]",
    )


def most_points(method: Method, params: SolverParams, n_kernels: int, n_bytes: int) -> int:
    """Return the most points on which memory holds what a solver of a method needs.

    Parameters
    ----------
    method : Method
        The method.
    params : SolverParams
        Its parameters.
    n_kernels : int
        Number M of kernels.
    n_bytes : int
        The memory.
    """

    def needed(n: int) -> int:
        return method.memory(ProblemSize(n, n_kernels, n), params).needed

    return max(bisect_right(range(MOST_POINTS), n_bytes, key=needed) - 1, 0)
