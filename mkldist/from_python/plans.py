"""The plan of a sweep as an object: numbers to read, and the text that ``mkldist plan`` prints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.core.memory import readable_bytes
from mkldist.core.terminal import as_text, plain_table
from mkldist.core.wording import html_of, pluralize, truncate
from mkldist.data.inputs import InputData
from mkldist.from_python.sweeps import (
    SweepInputs,
    check_count,
    check_speed,
    given_folders,
    with_short_errors,
)
from mkldist.methods.registry import METHODS
from mkldist.planning.model import Plan
from mkldist.planning.planner import factor_rounds, factors_bytes, parse_memory, without
from mkldist.results.folder import OutputFolder, check_owner
from mkldist.results.journal import Journal
from mkldist.results.status import Recorded, lacking_runs, recorded_runs
from mkldist.run.cluster import ConnectOptions, default_workers
from mkldist.run.forecast import (
    TYPICAL,
    Forecast,
    SweepCosts,
    forecasts,
    recorded_costs,
    solver_key,
)
from mkldist.run.rounds import Rounds
from mkldist.run.saved_inputs import FilesBefore, changed_lines
from mkldist.run.sweep_setup import sweep_rounds
from mkldist.spec.kinds import MOST_WORKERS, check_flags, spelled
from mkldist.spec.model import SweepSpec

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, ConsoleOptions, RenderableType


SIZE_HEADINGS = ("runs", "passes", "bytes", "seconds")
RULE = (
    "time:      of one processor, a rough upper estimate, of which runs may take a tenth: a second",
    "           for 4 GB of passes over stored kernels, 0.4 GB of kernels built or computed in",
    "           passes, or 100 solvers, each with 10 factorisations of its Gram matrix besides;",
    "           a solver that starts from the solution at another C counts as a tenth of one",
)


@dataclass(frozen=True)
class SizeCost:
    """Expected cost of all runs on one data set and bank."""

    dataset: str
    bank: str
    runs: int
    passes: int  # over the bank, of all these runs
    bytes: int  # of kernel values that these passes read or compute
    seconds: float  # of one processor, a rough upper estimate, with the build of the bank


def size_costs(costs: SweepCosts, passes: Mapping[tuple[str, str], int]) -> Iterator[SizeCost]:
    """Yield the cost of every size, in the order of the plan."""
    plan = costs.plan
    for (dataset, label), of_all in passes.items():
        banks = {b.id: b for b in plan.banks if (b.dataset, b.spec.label) == (dataset, label)}
        batches = [
            batch for batch in plan.batches
            if (batch.runs[0].dataset, batch.runs[0].bank_label) == (dataset, label)
        ]  # fmt: skip
        n_bytes = round(of_all * sum(bank.n_bytes for bank in banks.values()) / len(banks))
        n_runs = sum(len(batch.runs) for batch in batches)
        yield SizeCost(dataset, label, n_runs, of_all, n_bytes, costs.together(batches))


def size_table(costs: Iterator[SizeCost]) -> RenderableType:
    """Return the costs as a table for a terminal."""
    from rich.text import Text

    headings = ["data set", "bank", "runs", "passes", "kernel values", "time"]
    table = plain_table(headings, left=2, overflow="fold")
    for one in costs:
        table.add_row(
            Text(one.dataset),
            Text(one.bank),
            str(one.runs),
            str(one.passes),
            readable_bytes(one.bytes),
            _time(one.seconds),
        )
    return table


def default_lines(spec: SweepSpec) -> Iterator[str]:
    """Yield a line on each default that hyperparameters have for want of a value in the file."""
    found: dict[str, list[str]] = {}
    for entry in spec.methods:
        params = METHODS[entry.name].params.model_fields
        for name in METHODS[entry.name].hyperparameters:
            if not all(name in entry.settings_on(one.name) for one in spec.datasets):
                value = spelled(params[name].default, None)
                found.setdefault(f"{name} = {value}", []).append(entry.key)
    for value, keys in found.items():
        yield f"default:   {value} of {', '.join(keys)}"


def search_lines(plan: Plan) -> list[str]:
    """Return a line on the trials of a search, if there is one."""
    search = plan.spec.search
    if search is None:
        return []
    how = "random"
    if search.kind == "halving":
        how = f"{search.rungs} rungs of tolerance, one of {search.factor} goes on"
    return [
        f"search:    {search.trials} trials of each method on each split, {how}; "
        "least validation error wins"
    ]


def solver_lines(plan: Plan, n_problems: Mapping[str, int]) -> list[str]:
    """Return a line on the solvers, if runs have more than one."""
    n_solvers = sum(run.n_jobs for run in plan.runs)
    if n_solvers == len(plan.runs):
        return []
    classes = any(n_problems[r.dataset] > 1 and not r.shared_weights for r in plan.runs)
    folds = any(run.selection for run in plan.runs)
    of = "one for each class" if classes else "one"
    on = " on each inner fold and on the whole training part" if folds else ""
    return [f"solvers:   {n_solvers}: a run has {of}{',' * (classes and folds)}{on}"]


def factor_lines(plan: Plan) -> list[str]:
    """Return two lines on banks of factors, if there are any."""
    banks = [bank for bank in plan.banks if bank.is_factored]
    if not banks:
        return []
    largest = max(banks, key=lambda bank: bank.n_kernels * bank.n_points**2)
    in_memory = factors_bytes(largest, parse_memory(plan.spec.memory))
    held = f" ({readable_bytes(in_memory)} in memory)" if in_memory < largest.n_bytes else ""
    methods = {run.method for run in plan.runs if run.bank == largest.id}
    rounds = [factor_rounds(largest, METHODS[name]) for name in methods]
    most, first, longest = max(one.most for one in rounds), rounds[0].first, rounds[0].longest
    passes = f"1 to {most} passes: factors may grow from {first} to {longest} columns"
    return [
        f"factors:   {readable_bytes(largest.n_bytes)} of a bank in each task at first{held}",
        f"           a solution takes {passes if most > 1 else 'one pass: no factor can grow'}",
    ]


FORECAST_COLUMNS = [field.name for field in fields(Forecast)]
UNKNOWN = (
    "No run of {methods} is recorded: by typical rates, which are a rough upper\n"
    "estimate, of which runs may take a tenth.  Run a split first, and plan the rest."
)
ESTIMATE = "An estimate: all work divided by the threads, or the nearest other limit."
ALL_RECORDED = "Nothing is foretold: all runs are recorded."
SHOWN = 3


def forecast_here(
    rounds: Rounds, store: Journal, workers: int, threads: int, storage: float | None = None
) -> tuple[tuple[Forecast, ...], str]:
    """Return the forecast of the runs without a record, and notes."""
    plan, resolved = rounds.expected, rounds.resolved
    if not without(plan.batches, store.states().keys()):
        return (), ALL_RECORDED
    rates = replace(TYPICAL, storage_bytes_per_second=storage or math.inf)
    known = recorded_costs(plan, store)
    costs = SweepCosts(plan, resolved.facts, rounds.memory_limit, known, rates)
    rows = tuple(forecasts(costs, workers, threads, store.states()))
    unknown = dict.fromkeys(run.key for run in plan.runs if solver_key(run) not in known)
    notes = [ESTIMATE, *[UNKNOWN.format(methods=truncate([*unknown], SHOWN))] * bool(unknown)]
    return rows, "\n".join(notes)


def _time(seconds: float) -> str:
    """Return a time with its unit."""
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.1f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.1f} h"


def forecast_table(rows: Sequence[Forecast]) -> RenderableType:
    """Return a forecast as a table for a terminal.

    ``memory`` is that of each worker, ``held h`` the hours of all threads from the beginning to the
    end.
    """
    columns = {
        "workers": [str(one.workers) for one in rows],
        "time": [_time(one.seconds) for one in rows],
        "efficiency": [f"{one.efficiency:.0%}" for one in rows],
        "CPU h": [_hours(one.processor_hours) for one in rows],
        "held h": [_hours(one.held_hours) for one in rows],
        "moved": [_bytes(one.bytes) for one in rows],
        "memory": [_bytes(one.memory_per_worker) for one in rows],
        "limit": [one.limit for one in rows],
    }
    table = plain_table([*columns], left=0, no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    return table


def _bytes(n_bytes: float) -> str:
    """Return bytes with three digits and a unit."""
    number, unit = readable_bytes(round(n_bytes)).split()
    return f"{number[:4].removesuffix('.')} {unit}"


def _hours(hours: float) -> str:
    """Return hours with two digits, or all before the point."""
    return f"{hours:.0f}" if hours >= 10 else f"{hours:.2g}"


WIDTH = 100  # of the text of a plan
BANK_HEADINGS = ("banks", "points", "kernels", "dtype", "backend", "disk", "runs")


@dataclass(frozen=True, eq=False, repr=False)
class SweepPlan:
    """Work of a sweep, before it is done.

    Printed, it is the text of ``mkldist plan``.  With a search, there are as many runs as may be.
    """

    plan: Plan  # every run, bank and batch; of a search, as many as there may be
    data: tuple[str, ...]  # lines about the data sets: what was taken, and how
    recorded: Recorded  # how many of the runs are recorded already
    n_workers: int  # that the plan is for
    costs: SweepCosts  # by typical rates
    # Passes that are expected, by data set and bank; with a search, those of its first rounds
    passes_by_bank: Mapping[tuple[str, str], int] = field(default_factory=dict)
    forecasts: tuple[Forecast, ...] = ()  # for rising numbers of workers, if one was asked for
    forecast_notes: str = ""  # sentences on the rates and on methods that no record times
    n_threads: int = 1  # of each worker
    # Classes of each data set that are learnt against the rest; 1 for two classes
    n_problems: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def make(
        cls,
        spec: SweepSpec,
        origin: Path,
        data_dirs: Sequence[Path],
        output: Path,
        given: Mapping[str, InputData] | None = None,
        *,
        workers: int | None = None,
        threads: int | None = None,
        storage: float | None = None,
        allow_code: bool = False,
    ) -> SweepPlan:
        """Plan a sweep for workers here or elsewhere; read its data and write nothing."""
        options = ConnectOptions(n_workers=default_workers())
        if workers or threads:
            workers, threads = workers or 1, threads or 1
            options = ConnectOptions(n_workers=workers, threads_per_worker=threads, elsewhere=True)
        options = options.of_execution(spec.execution)
        check_owner(OutputFolder(output), spec.name)
        files = FilesBefore.of(spec, data_dirs, origin.parent, given or {})
        rounds = sweep_rounds(spec, origin, data_dirs, options, given or {}, allow_code=allow_code)
        store = Journal(OutputFolder(output).records)
        rounds.replay(store)
        data = tuple(rounds.resolved.summary_lines(spec))
        recorded = recorded_runs(rounds.plan, output)
        n_again = len(lacking_runs(rounds.plan, store, output))  # as the sweep's command does
        recorded = replace(recorded, total=recorded.total - n_again)
        if recorded.total < len(rounds.plan.runs):
            changed = changed_lines(output, files.read(spec, rounds.resolved))
            recorded = replace(recorded, changed=tuple(changed))
        n_problems = {name: facts.n_problems for name, facts in rounds.resolved.facts.items()}
        plan = cls(
            rounds.most,
            data,
            recorded,
            options.n_workers or 1,
            SweepCosts(rounds.most, rounds.resolved.facts, rounds.memory_limit),
            rounds.passes_by_bank,
            n_problems=n_problems,
        )
        if not (workers and threads):
            return plan
        foretold, notes = forecast_here(rounds, store, workers, threads, storage)
        return replace(plan, n_threads=threads, forecasts=foretold, forecast_notes=notes)

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

        rows = [asdict(cost) for cost in size_costs(self.costs, self.passes_by_bank)]
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

    def _repr_html_(self) -> str:
        """Return the numbers, the banks and the forecasts for a notebook."""
        facts = {
            "data": "; ".join(" ".join(line.split()) for line in self.data),
            "runs": f"{self.n_runs}, {self.n_recorded} recorded, {self.n_failed} failed",
            "batches": self.n_batches,
            "solvers": self.n_solvers,
            "passes, expected": self.passes,
            "disk": readable_bytes(self.disk_bytes),
            "memory of a worker": readable_bytes(self.memory_per_worker),
        }
        tables = [self.banks, *([self.forecast] if self.forecasts else [])]
        return html_of(f"Plan of {self.plan.spec.name}", facts, *tables)

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
            yield size_table(size_costs(self.costs, self.passes_by_bank))
        yield Text("\n".join(("", *self._lines())), **unbroken)
        if self.forecasts:
            yield Text("")
            yield forecast_table(self.forecasts)
        if self.forecast_notes:
            yield Text(self.forecast_notes, **unbroken)

    def _table(self) -> RenderableType:
        from rich.text import Text

        table = plain_table(["data set", "bank", *BANK_HEADINGS], left=2, no_wrap=True)
        table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"
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
        yield f"{spec.name}: {self._runs} in {pluralize(self.n_batches, 'batch', 'batches')}"
        yield self._recorded()
        yield from (f"changed:   {line}" for line in self.recorded.changed)
        yield from default_lines(spec)
        yield from search_lines(self.plan)
        yield from solver_lines(self.plan, self.n_problems)
        kernels = pluralize(self.n_kernels, "Gram matrix", "Gram matrices")
        yield f"kernels:   {kernels} in {pluralize(self.n_banks, 'bank')}"
        graphs = {(run.dataset, run.split) for run in self.plan.runs if run.graph is not None}
        if graphs:
            yield f"graphs:    {len(graphs)} Laplacians, one for each split"
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
            f"{pluralize(self.n_workers, 'worker')}{threads}"
        )
        yield f"passes:    about {self.passes} over a bank, {spec.execution} execution"
        if spec.is_study and spec.search is None:
            yield from RULE

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
        return f"{most}{pluralize(self.n_runs, 'run')}"


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
        Bytes a second of the storage that these workers share; by default it is no limit.
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
    check_flags(allow_code=allow_code)
    check_count("workers", workers, 1, MOST_WORKERS)
    check_count("threads_per_worker", threads_per_worker, 1)
    check_speed("storage", storage)
    given = SweepInputs.of(spec, data, changes, output)
    folders = given_folders("data_dirs", data_dirs)
    with given.naming():
        return SweepPlan.make(
            given.spec, given.origin, folders, given.output,
            given.saved.data, workers=workers, threads=threads_per_worker, storage=storage,
            allow_code=allow_code,
        )  # fmt: skip
