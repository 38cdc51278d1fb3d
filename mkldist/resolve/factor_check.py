"""Check that methods can solve on the banks of factors of a sweep, and that splits allow these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mkldist.data.dataset import Dataset, Split
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS, methods_for
from mkldist.planning.facts import BankFacts
from mkldist.resolve.factor_choice import memory_of, most_points_of
from mkldist.solvers.parameters import MethodGrid
from mkldist.solvers.refusals import Part, ProblemFacts, Refusal, one_of
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.model import MethodSpec, SweepSpec


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
    for bank in (one for one in spec.sized_banks if one.may_be_factors):
        thin = [name for name in datasets if banks[name, bank.label].on_factors]
        for entry in (one for one in spec.methods if thin and one.runs_on(bank)):
            refusal = METHODS[entry.name].refuses(_facts(bank))
            if refusal is not None:
                most = max(banks[name, bank.label].n_kernels for name in thin)
                raise _refused(spec, bank, entry, refusal, grids[thin[0]][entry.key], most)
        for name in thin:
            if any(len(split.unlabelled) for split in datasets[name][1]):
                raise SpecError(
                    f"banks.{bank.label}.backend",
                    f'"{FACTORS}" for data set {name!r}, which has unlabelled rows',
                    "labelled rows alone, among which the pivots of factors are",
                    "Choose another backend, or remove the unlabelled rows",
                )


def _facts(bank: BankSpec) -> ProblemFacts:
    """Return the facts of a bank of factors by which methods take it or refuse."""
    return ProblemFacts(factors=True, rounded=bank.dtype == "float32")


def _refused(
    spec: SweepSpec,
    bank: BankSpec,
    entry: MethodSpec,
    refusal: Refusal,
    grid: MethodGrid,
    n_kernels: int,
) -> SpecError:
    """Return the error of a method that cannot solve on a bank of factors."""
    others = f"{refusal.others}: {one_of(methods_for(_facts(bank)))}"
    if refusal.part is Part.ROUNDED:
        return SpecError(
            f"methods.{entry.key}",
            f"{entry.name} on bank {bank.label!r} of factors in float32, but it {refusal.reason}",
            others,
            f"Or give the bank {refusal.expected}",
        )
    n_bytes = memory_of(spec)
    most = most_points_of(grid, n_kernels, n_bytes)
    return SpecError(
        f"methods.{entry.key}",
        f"{entry.name} on bank {bank.label!r} of factors, but it {refusal.reason}, which "
        f"the {n_bytes / 2**30:.1f} GiB of a solver hold up to {most:,} points",
        others,
        "Or give it a bank with another backend by banks = [...]",
    )
