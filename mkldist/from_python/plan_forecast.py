"""The forecast of a plan: from its rounds and rates to the table that ``mkldist plan`` prints."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.counted import counted
from mkldist.data.listing import first_of
from mkldist.forecast.costs import TaskCosts, recorded_costs, solver_key
from mkldist.forecast.curve import Forecast, forecasts
from mkldist.forecast.rates import Rates, stored_rates
from mkldist.forecast.simulation import Crew
from mkldist.memory import readable_bytes
from mkldist.planning.batches import without
from mkldist.results.records import RecordStore
from mkldist.run.progress import duration
from mkldist.search.rounds import Rounds

if TYPE_CHECKING:
    from rich.console import RenderableType

FORECAST_COLUMNS = [field.name for field in fields(Forecast)]
MEASURED_NOW = "Rates of this machine were measured just now; 'mkldist doctor' stores them."
STORED = "Rates of this machine as 'mkldist doctor' measured them."
UNKNOWN = (
    "No run of {methods} is recorded: besides passes, a run counts as long as one\n"
    "of the Level method when these rates were measured.  It may take several times as long:\n"
    "run a split first."
)
ABANDONED = "Runs that fail because their workers die: {counts}."
ALL_RECORDED = "Nothing is foretold: all runs are recorded."
SHOWN = 3
WIDTH = 80  # of the table


def forecast_here(
    rounds: Rounds, store: RecordStore, crew: Crew, storage: float | None = None
) -> tuple[tuple[Forecast, ...], str]:
    """Return the forecast of a sweep by the rates of this machine, and notes on it.

    Parameters
    ----------
    rounds, store, crew
        As for :func:`forecast_of`.
    storage : float, optional
        Bytes a second of another storage.
    """
    if not without(rounds.expected.batches, store.ids().keys()):
        return (), ALL_RECORDED
    rates, said = rates_of_here(storage)
    rows, unknown = forecast_of(rounds, store, crew, rates)
    failed = [
        f"{row.abandoned} with {counted(row.workers, 'worker')}" for row in rows if row.abandoned
    ]
    notes = said, unknown, ABANDONED.format(counts=", ".join(failed)) if failed else ""
    return rows, "\n".join(filter(None, notes))


def rates_of_here(storage: float | None = None) -> tuple[Rates, str]:
    """Return the rates of this machine, and a sentence on where they are from.

    Parameters
    ----------
    storage : float, optional
        Bytes a second of another storage.
    """
    rates, said = stored_rates(), STORED
    if rates is None:
        rates, said = _measured(), MEASURED_NOW
    return (rates if storage is None else replace(rates, storage_bytes_per_second=storage)), said


def _measured() -> Rates:
    from mkldist.forecast.measuring import measured_rates

    with tempfile.TemporaryDirectory() as folder:
        return measured_rates(Path(folder))


def forecast_of(
    rounds: Rounds, store: RecordStore, crew: Crew, rates: Rates
) -> tuple[tuple[Forecast, ...], str]:
    """Return the forecast of the runs that are not recorded, for rising numbers of workers.

    With it comes a sentence on methods of which no run is recorded; it may be empty.

    Parameters
    ----------
    rounds : Rounds
        The sweep; of a search, as many rounds as there may be.
    store : RecordStore
        Its records, by which the code of the same methods is timed.
    crew : Crew
        The workers that are asked for.
    rates : Rates
        Rates of a machine.
    """
    plan, resolved = rounds.expected, rounds.resolved
    known = recorded_costs(plan, store)
    costs = TaskCosts(plan, resolved.facts, rounds.memory_limit, rates, known)
    unknown = dict.fromkeys(run.key for run in plan.runs if solver_key(run) not in known)
    said = UNKNOWN.format(methods=first_of([*unknown], SHOWN)) if unknown else ""
    return tuple(forecasts(costs, crew, store.ids())), said


def forecast_table(rows: Sequence[Forecast]) -> RenderableType:
    """Return a forecast as a table for a terminal.

    ``memory`` is that of each worker, ``held h`` the hours of all threads from the beginning to the
    end, and ``load`` the share of the time in which coordinator and scheduler are busy.  ``CPU h``
    is left out where a line would be too long for a narrow terminal.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    columns = {
        "workers": [str(one.workers) for one in rows],
        "time": [duration(one.seconds) for one in rows],
        "efficiency": [f"{one.efficiency:.0%}" for one in rows],
        "CPU h": [_hours(one.processor_hours) for one in rows],
        "held h": [_hours(one.held_hours) for one in rows],
        "moved": [_bytes(one.bytes) for one in rows],
        "memory": [_bytes(one.memory_per_worker) for one in rows],
        "load": [_share(one.scheduler_load) for one in rows],
        "limit": [one.limit for one in rows],
    }
    if sum(max(map(len, (head, *cells))) + 2 for head, cells in columns.items()) - 2 > WIDTH:
        del columns["CPU h"]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    return table


def _bytes(n_bytes: float) -> str:
    """Return bytes with three digits and a unit."""
    number, unit = readable_bytes(round(n_bytes)).split()
    return f"{number[:4].removesuffix('.')} {unit}"


def _share(share: float) -> str:
    """Return a share as a percentage, with a digit after the point if it is small."""
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _hours(hours: float) -> str:
    """Return hours with three digits, with two below one hour, or all before the point."""
    if hours >= 100:
        return f"{hours:.0f}"
    return f"{hours:.3g}" if hours >= 1 else f"{hours:.2g}"
