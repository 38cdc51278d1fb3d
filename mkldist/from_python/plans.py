"""The plan of a sweep as an object: numbers to read, and the text that ``mkldist plan`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.consoles import as_text
from mkldist.counted import counted
from mkldist.forecast import MOST_WORKERS
from mkldist.forecast.curve import Forecast
from mkldist.forecast.simulation import Crew
from mkldist.from_python.plan_forecast import (
    FORECAST_COLUMNS,
    forecast_here,
    forecast_table,
)
from mkldist.from_python.plan_notes import (
    factor_lines,
    graph_lines,
    opposite_lines,
    search_lines,
    shard_lines,
    solver_lines,
)
from mkldist.from_python.plan_sizes import RULE, SIZE_HEADINGS, size_costs, size_table
from mkldist.from_python.short_errors import with_short_errors
from mkldist.memory import readable_bytes
from mkldist.planning.model import Plan
from mkldist.results.output import OutputFolder
from mkldist.results.recorded import Recorded, recorded_runs
from mkldist.results.records import RecordStore
from mkldist.run.cluster import ConnectOptions, default_workers
from mkldist.run.data_read import FilesBefore, changed_lines
from mkldist.run.sweep_setup import sweep_rounds
from mkldist.spec.model import SweepSpec

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, ConsoleOptions, RenderableType

    from mkldist.data.given import GivenData

WIDTH = 100  # of the text of a plan
BANK_HEADINGS = ("banks", "points", "kernels", "dtype", "backend", "disk", "runs")


@dataclass(frozen=True, eq=False, repr=False)
class SweepPlan:
    """Work of a sweep, before it is done.

    Printed, it is the text of ``mkldist plan``.

    Parameters
    ----------
    plan : Plan
        Every run, bank and batch; of a search, as many as there may be.
    data : tuple of str
        Lines about the data sets: what was taken, and how.
    recorded : Recorded
        How many of the runs are recorded already.
    n_workers : int
        Workers that the plan is for.
    passes_by_bank : mapping of (str, str) to int
        Passes that are expected, by data set and bank; with a search, those of its first rounds.
    forecasts : tuple of Forecast
        What it is expected to take on rising numbers of workers, if a number was asked for.
    forecast_notes : str
        Sentences on the forecasts: rates, methods that no record times, runs that fail.
    n_threads : int
        Threads of each worker.
    n_problems : mapping of str to int
        Classes of each data set that are learnt against the rest; 1 for two classes.

    Attributes
    ----------
    n_runs, n_recorded, n_failed : int
        Runs (with a search, as many as there may be), and those of them that are recorded, and
        recorded as failed.
    n_batches, n_banks, n_kernels, n_solvers : int
        Batches, banks, Gram matrices in all banks, and solvers of all runs.
    disk_bytes, memory_per_worker : int
        Bytes of stored Gram matrices, and of a worker at its peak.
    passes : int
        Passes over banks that are expected.
    banks : pandas.DataFrame
        Banks, a row for each data set and bank of the sweep.
    sizes : pandas.DataFrame
        Expected cost of the same: runs, passes, bytes of kernel values, seconds of a processor.
    forecast : pandas.DataFrame
        The forecasts, a row for each number of workers.
    """

    plan: Plan
    data: tuple[str, ...]
    recorded: Recorded
    n_workers: int
    passes_by_bank: Mapping[tuple[str, str], int] = field(default_factory=dict)
    forecasts: tuple[Forecast, ...] = ()
    forecast_notes: str = ""
    n_threads: int = 1
    n_problems: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def make(
        cls,
        spec: SweepSpec,
        origin: Path,
        data_dirs: Sequence[Path],
        output: Path,
        crew: Crew | None = None,
        given: Mapping[str, GivenData] | None = None,
        *,
        storage: float | None = None,
        allow_code: bool = False,
    ) -> SweepPlan:
        """Plan a sweep; read its data and write nothing.

        Parameters
        ----------
        spec, origin, data_dirs, output
            As for :func:`mkldist.run.sweep.run_sweep`.
        crew : Crew, optional
            Workers to plan for, which may be of other machines, and to foretell; by default one
            for each processor of this one, without a forecast.
        given : mapping of str to GivenData, optional
            Data sets that are in memory, by name.
        storage : float, optional
            Bytes a second of the storage that the workers share; by default as measured here.
        allow_code : bool
            True if kernel functions that are not mkldist's may be imported and called.

        Raises
        ------
        mkldist.errors.InputError
            For input that cannot be used.
        """
        options = ConnectOptions(n_workers=default_workers())
        if crew is not None:
            options = ConnectOptions(
                n_workers=crew.workers, threads_per_worker=crew.threads, elsewhere=True
            )
        options = options.of_execution(spec.execution)
        files = FilesBefore.of(spec, data_dirs, origin.parent, given or {})
        rounds = sweep_rounds(spec, origin, data_dirs, options, given or {}, allow_code=allow_code)
        store = RecordStore(OutputFolder(output).records)
        rounds.replay(store)
        data = tuple(rounds.resolved.account_lines(spec))
        recorded = recorded_runs(rounds.plan, output)
        if recorded.total < len(rounds.plan.runs):
            changed = changed_lines(output, files.read(spec, rounds.resolved))
            recorded = replace(recorded, changed=tuple(changed))
        n_problems = {name: facts.n_problems for name, facts in rounds.resolved.facts.items()}
        plan = cls(rounds.most, data, recorded, options.n_workers or 1, rounds.passes_by_bank)
        plan = replace(plan, n_problems=n_problems)
        if crew is None:
            return plan
        foretold, notes = forecast_here(rounds, store, crew, storage)
        return replace(plan, n_threads=crew.threads, forecasts=foretold, forecast_notes=notes)

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return len(self.plan.runs)

    @property
    def n_recorded(self) -> int:
        """Number of runs that are recorded already."""
        return self.recorded.total

    @property
    def n_failed(self) -> int:
        """Number of runs that are recorded as failed."""
        return self.recorded.failed

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        return len(self.plan.batches)

    @property
    def n_banks(self) -> int:
        """Number of banks."""
        return len(self.plan.banks)

    @property
    def n_kernels(self) -> int:
        """Number of Gram matrices in all banks."""
        return sum(bank.n_kernels for bank in self.plan.banks)

    @property
    def n_solvers(self) -> int:
        """Number of solvers of all runs: one for each class and inner fold of a run."""
        return sum(run.n_jobs for run in self.plan.runs)

    @property
    def disk_bytes(self) -> int:
        """Bytes of stored Gram matrices."""
        return self.plan.bank_bytes

    @property
    def memory_per_worker(self) -> int:
        """Bytes that a worker of one thread is expected to take at its peak."""
        return self.plan.memory_per_worker

    @property
    def passes(self) -> int:
        """Passes over banks that are expected."""
        return self.plan.estimated_passes

    @property
    def banks(self) -> pd.DataFrame:
        """Banks, a row for each data set and bank of the sweep."""
        import pandas as pd

        columns = ["dataset", "bank", *BANK_HEADINGS]
        return pd.DataFrame(list(self._banks()), columns=columns)

    @property
    def sizes(self) -> pd.DataFrame:
        """Expected cost of each data set and bank of the sweep."""
        import pandas as pd

        rows = [asdict(cost) for cost in size_costs(self.plan, self.passes_by_bank)]
        return pd.DataFrame(rows, columns=["dataset", "bank", *SIZE_HEADINGS])

    @property
    def forecast(self) -> pd.DataFrame:
        """The forecasts, a row for each number of workers."""
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.forecasts], columns=FORECAST_COLUMNS)

    def __str__(self) -> str:
        """Return the text that ``mkldist plan`` prints."""
        return as_text(self, WIDTH)

    __repr__ = __str__

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield the data sets, the table of banks, and the lines on the work."""
        from rich.text import Text

        unbroken: dict[str, Any] = {"no_wrap": True, "overflow": "ignore"}
        yield Text("\n".join((*self.data, "")), **unbroken)
        yield self._table()
        if self.plan.spec.is_study and self.plan.spec.search is None:
            yield Text("")
            yield size_table(size_costs(self.plan, self.passes_by_bank))
        yield Text("\n".join(("", *self._lines())), **unbroken)
        if self.forecasts:
            yield Text("")
            yield forecast_table(self.forecasts)
        if self.forecast_notes:
            yield Text(self.forecast_notes, **unbroken)

    def _table(self) -> RenderableType:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column("data set", overflow="fold")
        table.add_column("bank", no_wrap=True)
        for heading in BANK_HEADINGS:
            table.add_column(heading, justify="right", no_wrap=True)
        for *cells, disk, n_runs in self._banks():
            table.add_row(*map(Text, (*map(str, cells), readable_bytes(disk), str(n_runs))))
        return table

    def _banks(self) -> Iterator[tuple[Any, ...]]:
        """Yield a row for each data set and bank of the sweep, in the order of the runs."""
        runs: dict[tuple[str, str], int] = {}
        for run in self.plan.runs:
            place = run.dataset, run.bank_label
            runs[place] = runs.get(place, 0) + 1
        for place, n_runs in runs.items():
            banks = [b for b in self.plan.banks if (b.dataset, b.spec.label) == place]
            yield (
                *place,
                len(banks),
                max(bank.n_points for bank in banks),
                banks[0].n_kernels,
                banks[0].dtype,
                banks[0].backend,
                sum(bank.stored_bytes for bank in banks),
                n_runs,
            )

    def _lines(self) -> Iterator[str]:
        spec = self.plan.spec
        kept = ", each bank deleted when its runs are recorded"
        yield f"{spec.name}: {self._runs} in {counted(self.n_batches, 'batch', 'batches')}"
        yield self._recorded()
        yield from (f"changed:   {line}" for line in self.recorded.changed)
        yield from search_lines(self.plan)
        yield from solver_lines(self.plan, self.n_problems)
        kernels = counted(self.n_kernels, "Gram matrix", "Gram matrices")
        yield f"kernels:   {kernels} in {counted(self.n_banks, 'bank')}"
        yield from graph_lines(self.plan)
        yield from factor_lines(self.plan)
        stored = {bank.is_factored for bank in self.plan.banks if bank.stored}
        what = {False: "Gram matrices", True: "factors"}
        words = " and ".join(what[one] for one in sorted(stored)) or what[False]
        disk = f"disk:      {readable_bytes(self.disk_bytes)} of {words}"
        yield disk + ("" if spec.outputs.keep_banks else kept)
        threads = f" of {self.n_threads} threads" if self.n_threads > 1 else ""
        yield (
            f"memory:    {readable_bytes(self.memory_per_worker)} per worker"
            f"{' of one thread' if threads else ''} at its peak, "
            f"{counted(self.n_workers, 'worker')}{threads}"
        )
        yield from shard_lines(self.plan, self.n_workers)
        yield f"passes:    about {self.passes} over a bank, {spec.execution} execution"
        if spec.is_study and spec.search is None:
            yield from RULE
        yield from opposite_lines(self.plan)

    def _recorded(self) -> str:
        """Return a line on the runs that need not be done any more."""
        one = self.recorded
        failed = f", {one.failed} of them failed" if one.failed else ""
        place = f" in {one.path}" if one.total or one.others else ""
        others = f", and {one.others} that are not in this plan" if one.others else ""
        return f"recorded:  {one.total} of {self._runs}{place}{failed}{others}"

    @property
    def _runs(self) -> str:
        """The number of runs in words; a search may end with fewer."""
        most = "at most " if self.plan.spec.search is not None else ""
        return f"{most}{counted(self.n_runs, 'run')}"


@with_short_errors
def plan(
    spec: str | Path | Mapping[str, Any] | SweepSpec,
    data: Mapping[str, Any] | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
    data_dirs: str | Path | Sequence[str | Path] = (),
    workers: int | None = None,
    threads_per_worker: int | None = None,
    storage: float | None = None,
    allow_code: bool = False,
) -> SweepPlan:
    """Return the work of a sweep without doing it; write nothing.

    Parameters
    ----------
    spec, data, changes, output, data_dirs
        As for :func:`mkldist.sweep`.
    workers : int, optional
        Workers to plan for, which may be more than this machine has: then the plan has a forecast
        of time, bytes and memory.  By default one for each processor.
    threads_per_worker : int, optional
        Tasks that each of these workers does at the same time; by default one.
    storage : float, optional
        Bytes a second of the storage that these workers share; by default as this disk.
    allow_code : bool
        As for :func:`mkldist.sweep`.

    Raises
    ------
    mkldist.errors.InputError
        For words or data that cannot be used.

    Examples
    --------
    >>> import mkldist
    >>> work = mkldist.plan("quickstart", changes={"splits.repeats": 2})
    >>> work.n_runs, work.n_kernels
    (26, 806)
    """
    from mkldist.from_python.given_sweep import (
        GivenSweep,
        check_count,
        check_speed,
        given_folders,
    )
    from mkldist.spec.arguments import check_flags

    check_flags(allow_code=allow_code)
    check_count("workers", workers, 1, MOST_WORKERS)
    check_count("threads_per_worker", threads_per_worker, 1)
    check_speed("storage", storage)
    crew = Crew(workers or 1, threads_per_worker or 1) if workers or threads_per_worker else None
    given = GivenSweep.of(spec, data, changes, output)
    folders = given_folders("data_dirs", data_dirs)
    with given.naming():
        return SweepPlan.make(
            given.spec, given.origin, folders, given.output,
            crew, given.kept.data, storage=storage, allow_code=allow_code,
        )  # fmt: skip
