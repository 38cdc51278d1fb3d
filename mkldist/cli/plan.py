"""``mkldist plan``: print the work of a sweep without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mkldist.cli.options import GivenSweep, sweep_options

if TYPE_CHECKING:
    from rich.table import Table

    from mkldist.plan.model import Plan
    from mkldist.results.recorded import Recorded
    from mkldist.spec.graph import GraphTable


@click.command("plan")
@sweep_options
@click.option("--workers", type=click.IntRange(min=1), help="Worker processes to plan for.")
def command(sweep: GivenSweep, workers: int | None) -> None:
    """Print the data, runs, kernels, bytes, memory and passes of FILE; write nothing."""
    from rich.console import Console

    from mkldist.results.output import OutputFolder
    from mkldist.results.recorded import recorded_runs
    from mkldist.results.records import RecordStore
    from mkldist.run.cluster import ConnectOptions, default_workers
    from mkldist.run.places import output_path
    from mkldist.run.sweep_setup import sweep_rounds

    spec = sweep.load()
    n_workers = workers or default_workers()
    with sweep.naming():
        options = ConnectOptions(n_workers=n_workers)
        rounds = sweep_rounds(spec, sweep.file, sweep.data_dirs, options)
    path = sweep.results or output_path(spec)
    rounds.replay(RecordStore(OutputFolder(path).records))
    recorded = recorded_runs(rounds.plan, path)
    console = Console()
    for line in (*rounds.resolved.account_lines(spec), ""):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    console.print(_banks(rounds.most))
    for line in _lines(rounds.most, n_workers, recorded):
        console.print(line, highlight=False, soft_wrap=True)


def _banks(plan: Plan) -> Table:
    """Return a table of the banks, with one row for those of a data set."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("data set", overflow="fold")
    table.add_column("bank", overflow="fold")
    for heading in ("banks", "points", "kernels", "dtype", "backend", "disk", "runs"):
        table.add_column(heading, justify="right", no_wrap=True)
    runs: dict[tuple[str, str], int] = {}
    for run in plan.runs:
        place = run.dataset, run.bank_label
        runs[place] = runs.get(place, 0) + 1
    for (dataset, label), n_runs in runs.items():
        banks = [b for b in plan.banks if (b.dataset, b.spec.label) == (dataset, label)]
        table.add_row(
            dataset,
            label,
            f"{len(banks)}",
            f"{max(b.n_points for b in banks)}",
            f"{banks[0].n_kernels}",
            banks[0].dtype,
            banks[0].backend,
            readable_bytes(sum(b.n_bytes for b in banks if b.stored)),
            f"{n_runs}",
        )
    return table


def _lines(plan: Plan, n_workers: int, recorded: Recorded) -> list[str]:
    kept = "" if plan.spec.outputs.keep_banks else ", each bank deleted when its runs are recorded"
    kernels = sum(bank.n_kernels for bank in plan.banks)
    return [
        f"\n{plan.spec.name}: {_most(plan)}{len(plan.runs)} runs in {len(plan.batches)} batches",
        _recorded(recorded, f"{_most(plan)}{len(plan.runs)}"),
        *_search(plan),
        *_solvers(plan),
        f"kernels:   {kernels} Gram matrices in {len(plan.banks)} banks",
        *_graphs(plan),
        f"disk:      {readable_bytes(plan.bank_bytes)} of Gram matrices{kept}",
        f"memory:    {readable_bytes(plan.memory_per_worker)} per worker at its peak, "
        f"{n_workers} workers",
        f"passes:    about {plan.estimated_passes} over a bank, {plan.spec.execution} execution",
    ]


def _most(plan: Plan) -> str:
    """Return the words in front of a number of runs that a search may not reach."""
    return "at most " if plan.spec.search is not None else ""


def _search(plan: Plan) -> list[str]:
    """Return a line on the trials of a search, if there is one."""
    search = plan.spec.search
    if search is None:
        return []
    how = {"random": "random", "adaptive": f"adaptive in batches of {search.batch}"}
    grows = "tolerance" if search.resource == "tol" else "share of the training rows"
    halving = f"{search.rungs} rungs of {grows}, one of {search.factor} goes on"
    return [
        f"search:    {search.trials} trials of each method on each split, "
        f"{how.get(search.kind, halving)}; least validation error wins"
    ]


def _recorded(recorded: Recorded, n_runs: str) -> str:
    """Return a line on the runs that need not be done any more."""
    failed = f", {recorded.failed} of them failed" if recorded.failed else ""
    place = f" in {recorded.path}" if recorded.total or recorded.others else ""
    others = f", and {recorded.others} that are not in this plan" if recorded.others else ""
    return f"recorded:  {recorded.total} of {n_runs} runs{place}{failed}{others}"


def _solvers(plan: Plan) -> list[str]:
    """Return a line on the solvers if a run has several."""
    n_solvers = sum(run.n_jobs for run in plan.runs)
    if n_solvers == len(plan.runs):
        return []
    return [f"solvers:   {n_solvers}: a run has one for each class and inner fold"]


def _graphs(plan: Plan) -> list[str]:
    """Return a line on the graphs, if there are any."""
    graphs = {(run.dataset, run.split) for run in plan.runs if run.graph is not None}
    if not graphs:
        return []
    words = {_words(run.graph) for run in plan.runs if run.graph is not None}
    return [f"graphs:    {len(graphs)} Laplacians, one for each split: {'; '.join(sorted(words))}"]


def _words(graph: GraphTable) -> str:
    """Return a graph in words."""
    joined = f"{graph.neighbours} neighbours"
    if graph.kind == "epsilon":
        joined = f"all within {graph.epsilon:g}"
    features = "raw" if graph.of_raw_features else "preprocessed"
    power = f" to the power {graph.power}" if graph.power > 1 else ""
    return f"{joined}, {graph.distance}, {features} features, {graph.laplacian}{power}"


def readable_bytes(n_bytes: int) -> str:
    """Return bytes with a unit.

    Examples
    --------
    >>> readable_bytes(900), readable_bytes(75_000), readable_bytes(3 * 2**30)
    ('900 B', '73.24 kiB', '3.00 GiB')
    """
    for power, unit in reversed(list(enumerate(("kiB", "MiB", "GiB", "TiB", "PiB"), 1))):
        if n_bytes >= 0.9 * 1024**power:
            return f"{n_bytes / 1024**power:.2f} {unit}"
    return f"{n_bytes} B"
