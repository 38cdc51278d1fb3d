"""Lines of a plan on its search, solvers, graphs, factors, shards, and opposite values of C."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mkldist.counted import counted
from mkldist.forecast.rates import stored_rates
from mkldist.gram.factored_kernels import limits_of
from mkldist.memory import FLOAT_BYTES, readable_bytes
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import factors_bytes
from mkldist.planning.factor_growth import factor_rounds
from mkldist.planning.model import BankPlan, Plan
from mkldist.planning.shard_traffic import shard_traffic
from mkldist.resolve.memory_limit import parse_memory
from mkldist.run.small_work import RECOMPUTED_BYTES_A_SECOND, certificate_bytes
from mkldist.spec.graph import GraphTable


def search_lines(plan: Plan) -> list[str]:
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


def solver_lines(plan: Plan, n_problems: Mapping[str, int]) -> list[str]:
    """Return a line on the solvers, if runs have more than one.

    Parameters
    ----------
    plan : Plan
        The plan.
    n_problems : mapping of str to int
        Classes of each data set that are learnt against the rest; 1 for two classes.
    """
    n_solvers = sum(run.n_jobs for run in plan.runs)
    if n_solvers == len(plan.runs):
        return []
    classes = any(n_problems[r.dataset] > 1 and not r.shared_weights for r in plan.runs)
    folds = any(run.selection for run in plan.runs)
    of = "one for each class" if classes else "one"
    on = " on each inner fold and on the whole training part" if folds else ""
    return [f"solvers:   {n_solvers}: a run has {of}{',' * (classes and folds)}{on}"]


def graph_lines(plan: Plan) -> list[str]:
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


def factor_lines(plan: Plan) -> list[str]:
    """Return three lines on banks of factors, if there are any."""
    banks = [bank for bank in plan.banks if bank.is_factored]
    if not banks:
        return []
    largest = max(banks, key=certificate_bytes)
    certified, of_byte = certificate_bytes(largest), _seconds_of_byte()
    first = largest.n_kernels * limits_of(largest.spec).first(largest.n_points)
    built = of_byte * FLOAT_BYTES * largest.n_points * first
    in_memory = factors_bytes(largest, parse_memory(plan.spec.memory))
    held = f" ({readable_bytes(in_memory)} in memory)" if in_memory < largest.n_bytes else ""
    return [
        f"factors:   {readable_bytes(largest.n_bytes)} of a bank in each task at first{held}, "
        f"built by {counted(largest.n_kernels, 'task')} at most in about {built:.2g} s",
        f"           a pass over the kernels for each certificate computes at most "
        f"{readable_bytes(round(certified))}, in about "
        f"{of_byte * certified:.2g} s",
        f"           {_rounds_of(plan, largest)}",
    ]


def _rounds_of(plan: Plan, bank: BankPlan) -> str:
    """Return how many passes over the kernels a solution on a bank of factors takes."""
    methods = {run.method for run in plan.runs if run.bank == bank.id}
    rounds = [factor_rounds(bank, METHODS[name]) for name in sorted(methods)]
    most, usual = max(one.most for one in rounds), sorted({one.usual for one in rounds})
    if most == 1:
        return "a solution takes one such pass: no factor can grow"
    return (
        f"a solution takes 1 to {most} such passes, about {_span(usual)}: factors may grow "
        f"from {rounds[0].first} to {rounds[0].longest} columns"
    )


def _span(numbers: list[int]) -> str:
    """Return the least and the largest of rising numbers, or the only one."""
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _seconds_of_byte() -> float:
    """Return the time to compute a byte of kernel values: as measured here, else a typical one."""
    rates = stored_rates()
    if rates is None:
        return 1.0 / RECOMPUTED_BYTES_A_SECOND
    return (rates.kernel_value_seconds + rates.pass_value_seconds) / FLOAT_BYTES


def shard_lines(plan: Plan, n_workers: int) -> Iterator[str]:
    """Yield two lines on the shards of each bank that workers hold together."""
    limit = parse_memory(plan.spec.memory)
    sharded = {(bank.dataset, bank.spec.label): bank for bank in plan.banks if bank.sharded}
    for (dataset, label), bank in sharded.items():
        of = shard_traffic(bank, limit, n_workers)
        largest, of_pass, of_sum = map(
            readable_bytes, (of.largest_bytes, of.pass_bytes, of.sum_bytes)
        )
        yield f"shards:    {of.n_shards} of up to {largest} for {label} of {dataset}"
        yield f"           {of_pass} move for a vector of a pass, {of_sum} for a sum of all kernels"


def opposite_lines(plan: Plan) -> Iterator[str]:
    """Yield a note if a C that weighs the loss and one that weighs the regulariser share values."""
    values: dict[bool, set[float]] = {True: set(), False: set()}
    names: dict[bool, dict[str, None]] = {True: {}, False: {}}
    for run in plan.runs:
        if "C" in run.params:
            smooths = "C" in METHODS[run.method].params.weigh_regularizer
            values[smooths].add(run.params["C"])
            names[smooths][run.key] = None
    if values[True] & values[False]:
        yield (
            f"note:      C of {', '.join(names[True])} weighs the regulariser, so that a larger C "
            f"is smoother; C of {', '.join(names[False])} weighs the loss, so that it fits closer"
        )
