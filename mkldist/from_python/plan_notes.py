"""Lines of a plan's text on its search, its graphs, and values of C that mean opposite things."""

from __future__ import annotations

from collections.abc import Iterator

from mkldist.methods.registry import METHODS
from mkldist.planning.model import Plan
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
