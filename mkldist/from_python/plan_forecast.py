"""The forecast of a plan: from its rounds and rates to the table that ``mkldist plan`` prints."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.data.listing import first_of
from mkldist.forecast.costs import TaskCosts, recorded_costs, solver_key
from mkldist.forecast.curve import Forecast, forecasts
from mkldist.forecast.rates import Rates, stored_rates
from mkldist.forecast.simulation import Crew
from mkldist.memory import readable_bytes
from mkldist.results.records import RecordStore
from mkldist.run.progress import duration
from mkldist.search.rounds import Rounds

if TYPE_CHECKING:
    from rich.console import RenderableType

FORECAST_COLUMNS = [field.name for field in fields(Forecast)]
MEASURED_NOW = "Rates of this machine were measured just now; 'mkldist doctor' stores them."
STORED = "Rates of this machine as 'mkldist doctor' measured them."
UNKNOWN = (
    "\nNo run is recorded of {methods}: their code counts as that of\n"
    "the Level method, and may take several times as long.  Run a split first."
)
SHOWN = 3


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
    plan, resolved = rounds.most, rounds.resolved
    known = recorded_costs(plan, store)
    costs = TaskCosts(plan, resolved.facts, rounds.memory_limit, rates, known)
    unknown = dict.fromkeys(run.key for run in plan.runs if solver_key(run) not in known)
    said = UNKNOWN.format(methods=first_of([*unknown], SHOWN)) if unknown else ""
    return tuple(forecasts(costs, crew, store.ids())), said


def forecast_table(rows: Sequence[Forecast]) -> RenderableType:
    """Return a forecast as a table for a terminal; ``memory`` is that of each worker."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in (
        "workers", "time", "efficiency", "CPU h", "moved", "memory", "tasks/s", "limit",
    ):  # fmt: skip
        table.add_column(heading, justify="right", no_wrap=True)
    for one in rows:
        table.add_row(
            str(one.workers),
            duration(one.seconds),
            f"{one.efficiency:.0%}",
            _hours(one.processor_hours),
            readable_bytes(round(one.bytes)),
            readable_bytes(one.memory_per_worker),
            f"{one.tasks_per_second:.2g}",
            one.limit,
        )
    return table


def _hours(hours: float) -> str:
    """Return hours with three digits, or all that stand before the point."""
    return f"{hours:.3g}" if hours < 100 else f"{hours:.0f}"
