"""Cost of each size of a scaling study, as its plan expects it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mkldist.memory import readable_bytes
from mkldist.planning.model import Plan
from mkldist.run.progress import duration
from mkldist.run.small_work import bank_seconds, build_seconds

if TYPE_CHECKING:
    from rich.console import RenderableType

SIZE_HEADINGS = ("runs", "passes", "bytes", "seconds")
RULE = (
    "time:      of one processor, a rough upper estimate, of which runs may take a tenth: a second",
    "           for 4 GB of passes over stored kernels, 0.4 GB of kernels built or computed in",
    "           passes, or 20 solvers, each with 50 factorisations of its Gram matrix besides",
)


@dataclass(frozen=True)
class SizeCost:
    """Expected cost of all runs on one data set and bank.

    Parameters
    ----------
    dataset, bank : str
        Names of the data set and of the bank.
    runs, passes : int
        Runs, and passes over the bank that all of them take.
    bytes : int
        Bytes of kernel values that these passes read or compute.
    seconds : float
        Time of one processor, a rough upper estimate: the build of the banks, and what
        :func:`mkldist.run.small_work.bank_seconds` says of runs on them.
    """

    dataset: str
    bank: str
    runs: int
    passes: int
    bytes: int
    seconds: float


def size_costs(plan: Plan, passes: Mapping[tuple[str, str], int]) -> Iterator[SizeCost]:
    """Yield the cost of every size, in the order of the plan.

    Parameters
    ----------
    plan : Plan
        The plan.
    passes : mapping of (str, str) to int
        Passes by data set and label of the bank.
    """
    for (dataset, label), of_all in passes.items():
        banks = [b for b in plan.banks if (b.dataset, b.spec.label) == (dataset, label)]
        runs = [r for r in plan.runs if (r.dataset, r.bank_label) == (dataset, label)]
        n_solvers = sum(run.n_jobs for run in runs)
        share = 1 / len(banks)
        yield SizeCost(
            dataset,
            label,
            len(runs),
            of_all,
            round(share * of_all * sum(bank.n_bytes for bank in banks)),
            sum(bank_seconds(bank, share * of_all, 0) + build_seconds(bank) for bank in banks)
            + bank_seconds(banks[0], 0, n_solvers),
        )


def size_table(costs: Iterator[SizeCost]) -> RenderableType:
    """Return the costs as a table for a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("data set", "bank"):
        table.add_column(heading, overflow="fold")
    for heading in ("runs", "passes", "kernel values", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in costs:
        table.add_row(
            Text(one.dataset),
            Text(one.bank),
            str(one.runs),
            str(one.passes),
            readable_bytes(one.bytes),
            duration(one.seconds),
        )
    return table
