"""``mkldist plan``: print the work of a sweep without doing it."""

from __future__ import annotations

import click

from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.options import GivenSweep, sweep_options


@click.command("plan")
@sweep_options
@click.option("--workers", type=click.IntRange(min=1), help="Worker processes to plan for.")
@json_option(
    "name", "output", "n_runs", "n_recorded", "n_failed", "n_batches", "n_banks", "n_kernels",
    "n_solvers", "disk_bytes", "memory_per_worker", "passes", "workers", "banks", "sizes", "data",
)  # fmt: skip
def command(sweep: GivenSweep, workers: int | None, as_json: bool) -> None:
    """Print the data, runs, kernels, bytes, memory and passes of FILE; write nothing."""
    from mkldist.from_python.plans import SweepPlan
    from mkldist.run.places import output_path

    spec = sweep.load()
    with sweep.naming():
        output = sweep.results or output_path(spec)
        plan = SweepPlan.make(
            spec, sweep.file, sweep.data_dirs, output, workers, allow_code=sweep.allow_code
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
            }
        )
        return
    from rich.console import Console

    Console().print(plan, crop=False)
