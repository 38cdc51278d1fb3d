"""``mkldist plan``: print the work of a sweep without doing it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.options import GivenSweep, sweep_options
from mkldist.errors import SpecError
from mkldist.forecast import MOST_WORKERS

if TYPE_CHECKING:
    from mkldist.forecast.simulation import Crew

OF_WORKERS = ("stragglers", "deaths", "storage", "seed")  # options that say nothing without workers


def _finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuse infinity and NaN, which ranges of numbers let through."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.")
    return value


@click.command("plan")
@sweep_options
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    help="Workers to plan for, here or on a cluster; foretells time, bytes, memory and limits.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Tasks that each of these workers does at the same time; by default 1.",
)
@click.option(
    "--stragglers",
    type=click.FloatRange(0, 1),
    callback=_finite,
    default=0.0,
    help="Share of these workers that take three times as long; by default 0.",
)
@click.option(
    "--deaths",
    type=click.FloatRange(min=0),
    callback=_finite,
    default=0.0,
    help="Expected deaths of each of these workers in an hour; by default 0.",
)
@click.option(
    "--storage",
    metavar="BYTES",
    help="Bytes a second of the storage that these workers share; by default as this disk.",
)
@click.option("--seed", type=int, default=0, help="Seed of stragglers and deaths; by default 0.")
@json_option(
    "name", "output", "n_runs", "n_recorded", "n_failed", "n_batches", "n_banks", "n_kernels",
    "n_solvers", "disk_bytes", "memory_per_worker", "passes", "workers", "banks", "sizes", "data",
    "forecast",
)  # fmt: skip
def command(
    sweep: GivenSweep,
    workers: int | None,
    threads: int | None,
    storage: str | None,
    as_json: bool,
    **fates: Any,
) -> None:
    """Print the data, runs, kernels, bytes, memory and passes of FILE; write nothing.

    With --workers, also foretell what these and other numbers of workers take, by the rates that
    'mkldist doctor' measured on this machine and a simulation of the work queue.
    """
    _check_use(workers is not None or threads is not None)
    from mkldist.from_python.plans import SweepPlan
    from mkldist.resolve.memory_limit import parse_memory
    from mkldist.run.places import output_path

    spec = sweep.load()
    with sweep.naming():
        output = sweep.results or output_path(spec)
        plan = SweepPlan.make(
            spec,
            sweep.file,
            sweep.data_dirs,
            output,
            _crew(workers, threads, fates),
            storage=parse_memory(storage, "--storage"),
            allow_code=sweep.allow_code,
        )
    if as_json:
        print_json(
            {
                "name": spec.name,
                "output": output,
                "n_runs": plan.n_runs,
                "n_recorded": plan.n_recorded,
                "n_failed": plan.n_failed,
                "n_batches": plan.n_batches,
                "n_banks": plan.n_banks,
                "n_kernels": plan.n_kernels,
                "n_solvers": plan.n_solvers,
                "disk_bytes": plan.disk_bytes,
                "memory_per_worker": plan.memory_per_worker,
                "passes": plan.passes,
                "workers": plan.n_workers,
                "banks": plan.banks.to_dict("records"),
                "sizes": plan.sizes.to_dict("records"),
                "data": plan.data,
                "forecast": plan.forecasts,
            }
        )
        return
    from rich.console import Console

    Console().print(plan, crop=False)


def _check_use(has_workers: bool) -> None:
    """Refuse options of workers where no worker is asked for.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first.
    """
    context = click.get_current_context()
    for name in OF_WORKERS:
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and not has_workers:
            raise SpecError(f"--{name}", "no --workers", "their number too: it is about them")


def _crew(workers: int | None, threads: int | None, fates: Mapping[str, Any]) -> Crew | None:
    """Return the workers that the options ask for; None if they say nothing of workers."""
    from mkldist.forecast.simulation import Crew

    if workers is None and threads is None:
        return None
    return Crew(
        workers or 1,
        threads or 1,
        stragglers=fates["stragglers"],
        deaths_per_hour=fates["deaths"],
        seed=fates["seed"],
    )
