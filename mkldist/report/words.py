"""What a sweep asked, what came out, and what a reader has to beware of, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mkldist.analysis.comparison import Compared, compare_methods
from mkldist.report.facts import LOSS_WORDS, Facts
from mkldist.results.rows import hyperparameters
from mkldist.results.state import RunState
from mkldist.solvers.base import StopReason

UNSTABLE = 0.4  # Nogueira et al. call agreement beyond chance below it poor
SIGNIFICANCE = 0.05


def headline(facts: Facts) -> list[str]:
    """Return three sentences: what was asked, what came out, and how far it is certified."""
    return [_asked(facts), _came_out(facts), _certified(facts)]


def _asked(facts: Facts) -> str:
    methods = list(dict.fromkeys(place["method"] for place, _ in facts.nodes))
    n_splits = [node.sizes["split"] for _, node in facts.nodes]
    kernels = sorted({int(node.ds["n_kernels"]) for _, node in facts.nodes if "n_kernels" in node.ds.coords})
    done, planned = facts.count(RunState.COMPLETE), facts.status.n_runs
    state = f"all {planned} runs are complete" if done == planned else f"{done} of {planned} runs are complete"
    return (
        f"The sweep compares {_number(len(methods), 'method')} on "
        f"{_named(facts.datasets, 'data set')} with {_span(kernels)} kernels and "
        f"{_span(sorted(set(n_splits)))} split{'s' * (max(n_splits, default=0) != 1)}; {state}."
    )


def _came_out(facts: Facts) -> str:
    if not facts.compared:
        return "No run is complete yet, so there is nothing to compare."
    how = "at settings selected by validation" if facts.validated else "at the setting of least loss on the test parts"
    first = facts.compared[0]
    if len(facts.compared) == 1:
        best, loss = _best(first), LOSS_WORDS[facts.loss(first.dataset)]
        value = _loss(float(first.losses[best].mean()), facts.loss(first.dataset))
        return f"On {first.dataset}, {best} has the least {loss}, {value} on average, {how}{_rivals(facts, first, best)}."
    wins: dict[str, int] = {}
    for compared in facts.compared:
        best = _best(compared)
        wins[best] = wins.get(best, 0) + 1
    ordered = sorted(wins, key=lambda name: -wins[name])
    said = ", ".join(f"{name} on {wins[name]}" for name in ordered)
    return f"Of {len(facts.compared)} data sets, the least mean loss is that of {said}, {how}."


def _rivals(facts: Facts, compared: Compared, best: str) -> str:
    """Return how the best method's lead fares in the corrected test."""
    table = compare_methods(facts.tree)
    pairs = table[(table["dataset"] == compared.dataset) & ((table["first"] == best) | (table["second"] == best))]
    if pairs.empty:
        return ""
    close = [row.second if row.first == best else row.first for row in pairs.itertuples() if row.p_holm > SIGNIFICANCE]
    if not close:
        return "; its lead over every other method is significant by the corrected t-test"
    return f"; the corrected t-test does not tell it from {_list(close)}"


def _certified(facts: Facts) -> str:
    rows = facts.runs[facts.runs["state"] == RunState.COMPLETE.value]
    if rows.empty or "gap" not in rows or not rows["gap"].notna().any():
        return "No run has a certificate yet."
    early = rows[rows["stop_reason"] != StopReason.CONVERGED.value]
    failed = facts.count(RunState.FAILED)
    largest = float(rows["gap"].max())
    said = (
        f"All {len(rows)} complete runs reached their tolerance"
        if early.empty
        else f"{len(rows) - len(early)} of {len(rows)} complete runs reached their tolerance"
    )
    end = f"; {failed} run{'s' * (failed != 1)} failed" if failed else ""
    return f"{said}, and the largest certified duality gap is {_gap(largest)}{end}."


@dataclass(frozen=True)
class Warning_:
    """One thing to beware of."""

    title: str
    text: str


def warnings_of(facts: Facts, stability: pd.DataFrame) -> list[Warning_]:
    """Return what a reader has to beware of.

    Parameters
    ----------
    facts : Facts
        Of the sweep.
    stability : DataFrame
        Of :func:`mkldist.analysis.kernel_selection.selection_table`.
    """
    return [
        *_unfinished(facts),
        *_on_test_parts(facts),
        *_edges(facts),
        *_above_tolerance(facts),
        *_unstable(stability),
        *_shared_times(facts),
    ]


def _unfinished(facts: Facts) -> Iterator[Warning_]:
    waiting, failed = facts.count(RunState.WAITING), facts.count(RunState.FAILED)
    if waiting:
        yield Warning_(
            "Unfinished",
            f"{waiting} of {facts.status.n_runs} runs are not recorded yet. Means are over the "
            f"runs that are.",
        )
    if failed:
        yield Warning_("Failed runs", f"{failed} runs failed; their reasons are below.")


def _on_test_parts(facts: Facts) -> Iterator[Warning_]:
    several = any(facts.axis(dataset) for dataset in facts.datasets)
    if several and not facts.validated:
        yield Warning_(
            "Settings chosen on the test parts",
            "The sweep has no [selection]. Each method is shown at the setting of least loss on "
            "the test parts, which flatters methods with many settings.",
        )


def _edges(facts: Facts) -> Iterator[Warning_]:
    """Yield a warning for each best value that lies at the edge of its grid."""
    for compared in facts.compared:
        for place, node in facts.members(compared.dataset):
            setting = compared.settings.get(place["method"], {})
            for name in hyperparameters(node):
                values = node.ds[name].to_numpy()
                if values.dtype.kind not in "fiu" or len(values) < 3 or name not in setting:
                    continue
                low, high = float(values.min()), float(values.max())
                if setting[name] in (low, high):
                    end = "least" if setting[name] == low else "greatest"
                    yield Warning_(
                        "Best value at the edge of its grid",
                        f"{compared.dataset}, {place['method']}: {name} = {setting[name]:g} is the "
                        f"{end} of {len(values)} values. Extend the grid beyond it.",
                    )


def _above_tolerance(facts: Facts) -> Iterator[Warning_]:
    rows = facts.runs[facts.runs["state"] == RunState.COMPLETE.value]
    if rows.empty:
        return
    early = rows[rows["stop_reason"] != StopReason.CONVERGED.value]
    for method, some in early.groupby("method", sort=False):
        reasons = ", ".join(f"{reason} ({count})" for reason, count in some["stop_reason"].value_counts().items())
        yield Warning_(
            "Gap above tol",
            f"{method}: {len(some)} run{'s' * (len(some) != 1)} stopped before the tolerance: {reasons}. The gap "
            f"is {_gap(float(some['gap'].max()))} at most.",
        )


def _unstable(stability: pd.DataFrame) -> Iterator[Warning_]:
    for row in stability.itertuples(index=False):
        if row.stability < UNSTABLE:
            yield Warning_(
                "Selection unstable",
                f"{row.dataset}, {row.method}: the kernels selected differ between splits "
                f"(stability {row.stability:.2f}; 1 is equal, 0 is chance). Read single weights "
                f"with care, sums over widths or features rather.",
            )


def _shared_times(facts: Facts) -> Iterator[Warning_]:
    if facts.spec.get("execution") != "isolated":
        yield Warning_(
            "Times shared, not isolated",
            "Runs shared the passes over a bank, and a run's seconds hold its share of them. Set "
            'execution = "isolated" for times to compare.',
        )


def _best(compared: Compared) -> str:
    return str(compared.losses.mean().idxmin())


def _loss(value: float, loss: str) -> str:
    return f"{100 * value:.2f} %" if loss.endswith("error") else f"{value:.4g}"


def _gap(value: float) -> str:
    return f"{value:.1e}" if value and np.isfinite(value) else f"{value:g}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _named(names: list[str], noun: str) -> str:
    return f"{len(names)} {noun}s" if len(names) > 3 else _list(names)


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _span(values: list[int]) -> str:
    if not values:
        return "no"
    return f"{values[0]:,}" if len(values) == 1 else f"{values[0]:,} to {values[-1]:,}"


def settings_text(setting: dict[str, Any]) -> str:
    """Return hyperparameters as words, such as ``C = 10, p = 2``."""
    return ", ".join(f"{name} = {value:g}" if isinstance(value, int | float) else f"{name} = {value}"
                     for name, value in setting.items())  # fmt: skip
