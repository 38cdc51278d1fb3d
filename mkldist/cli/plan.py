"""``mkldist plan``: print the work of a sweep without doing it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.options import SweepInputs, sweep_options, threads_option
from mkldist.core.consoles import standard_output
from mkldist.spec.checks import MOST_WORKERS

if TYPE_CHECKING:
    from mkldist.run.forecast import Crew


def _finite(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    """Refuse infinity and NaN, which ranges of numbers let through."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.")
    return value


@click.command("plan")
@sweep_options
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    help="Workers to plan for, here or on a cluster; foretells time, bytes, memory and limits.",
)
@threads_option("Tasks that each of these workers does at the same time; by default 1.")
@click.option(
    "--stragglers",
    type=click.FloatRange(0, 1),
    callback=_finite,
    help="Share of these workers that take three times as long; by default 0.",
)
@click.option(
    "--deaths",
    type=click.FloatRange(min=0),
    callback=_finite,
    help="Expected deaths of each of these workers in an hour; by default 0.",
)
@click.option(
    "--storage",
    metavar="BYTES",
    help="Bytes a second of the storage that these workers share; by default as this disk.",
)
@click.option("--seed", type=int, help="Seed of stragglers and deaths; by default 0.")
@json_option(
    "name", "output", "n_runs", "n_recorded", "n_failed", "n_batches", "n_banks", "n_kernels",
    "n_solvers", "disk_bytes", "memory_per_worker", "passes", "workers", "banks", "sizes", "data",
    "forecast",
)  # fmt: skip
def command(
    sweep: SweepInputs,
    workers: int | None,
    threads_per_worker: int | None,
    stragglers: float | None,
    deaths: float | None,
    storage: str | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Print the data, runs, kernels, bytes, memory and passes of FILE; write nothing.

    With --workers, also foretell what these and other numbers of workers take, by the rates that
    'mkldist doctor' measured on this machine and a simulation of the work queue.
    """
    from mkldist.from_python.plans import SweepPlan
    from mkldist.planning.costs import parse_memory
    from mkldist.run.paths import output_path

    crew = None
    if workers or threads_per_worker:
        threads = threads_per_worker or 1
        crew = _crew(workers or 1, threads, stragglers or 0.0, deaths or 0.0, seed or 0)
    else:
        _refuse_without_workers(
            {"--stragglers": stragglers, "--deaths": deaths, "--storage": storage, "--seed": seed}
        )
    spec = sweep.load()
    with sweep.naming():
        output = sweep.results or output_path(spec)
        plan = SweepPlan.make(
            spec,
            sweep.file,
            sweep.data_dirs,
            output,
            crew,
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

    standard_output().print(plan, crop=False)


def _crew(workers: int, threads: int, stragglers: float, deaths: float, seed: int) -> Crew:
    """Return the workers that the options ask for."""
    from mkldist.run.forecast import Crew

    return Crew(workers, threads, stragglers=stragglers, deaths_per_hour=deaths, seed=seed)


def _refuse_without_workers(options: Mapping[str, object]) -> None:
    """Refuse options of a forecast where none is asked for."""
    from mkldist.errors import InputError

    for option, value in options.items():
        if value is not None:
            expected = "--workers or --threads-per-worker beside it"
            raise InputError(option, f"{value} without --workers", expected)
