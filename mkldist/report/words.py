"""What a sweep asked, what came out, and what a reader has to beware of, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mkldist.analysis.comparison import Compared
from mkldist.report.facts import LOSS_WORDS, Facts, records
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
    splits = sorted({node.sizes["split"] for _, node in facts.nodes})
    kernels = sorted(
        {int(node.ds["n_kernels"]) for _, node in facts.nodes if "n_kernels" in node.ds.coords}
    )
    done, planned = facts.count(RunState.COMPLETE), facts.status.n_runs
    state = f"all {planned:,} runs" if done == planned else f"{done:,} of {planned:,} runs"
    return (
        f"The sweep compares {_number(len(methods), 'method')} on "
        f"{_named(facts.datasets, 'data set')} with {_span(kernels)} kernels and "
        f"{_span(splits)} split{'s' * (splits != [1])}; {state} are complete."
    )


def _came_out(facts: Facts) -> str:
    if not facts.compared:
        return "No run is complete yet, so there is nothing to compare."
    how = (
        "at settings selected by validation"
        if facts.validated
        else "at the setting of least loss on the test parts"
    )
    if len(facts.compared) == 1:
        (compared,) = facts.compared
        best, loss = _best(compared), facts.loss(compared.dataset)
        value = _loss(float(compared.losses[best].mean()), loss)
        return (
            f"On {compared.dataset}, {best} has the least {LOSS_WORDS[loss]}, {value} on average, "
            f"{how}{_rivals(facts, compared, best)}."
        )
    wins: dict[str, int] = {}
    for compared in facts.compared:
        wins[_best(compared)] = wins.get(_best(compared), 0) + 1
    ordered = sorted(wins, key=lambda name: -wins[name])
    said = _list([f"{name} on {wins[name]}" for name in ordered])
    return f"Of {len(facts.compared)} data sets, the least mean loss is that of {said}, {how}."


def _rivals(facts: Facts, compared: Compared, best: str) -> str:
    """Return how the best method's lead fares in the corrected test."""
    pairs = facts.pairs[facts.pairs["dataset"] == compared.dataset]
    against = [
        (row["second"] if row["first"] == best else row["first"], row["p_holm"])
        for row in records(pairs)
        if best in (row["first"], row["second"])
    ]
    close = [name for name, p_holm in against if p_holm > SIGNIFICANCE]
    if not against:
        return ""
    if not close:
        return "; its lead over every other method is significant by the corrected t-test"
    return f"; the corrected t-test does not tell it from {_list(close)}"


def _certified(facts: Facts) -> str:
    rows = facts.runs[facts.runs["state"] == RunState.COMPLETE.value]
    if rows.empty or "gap" not in rows or not rows["gap"].notna().any():
        return "No run has a certificate yet."
    met = rows[rows["stop_reason"] == StopReason.CONVERGED.value]
    which = "All" if len(met) == len(rows) else f"{len(met):,} of"
    said = f"{which} {len(rows):,} complete runs reached their tolerance"
    if len(met):
        said += f", with a certified duality gap of at most {_gap(float(met['gap'].max()))}"
    failed = facts.count(RunState.FAILED)
    return f"{said}; {_number(failed, 'run')} failed." if failed else f"{said}."


@dataclass(frozen=True)
class Caution:
    """One thing to beware of."""

    title: str
    text: str


def cautions(facts: Facts) -> list[Caution]:
    """Return what a reader has to beware of."""
    return [
        *_unfinished(facts),
        *_on_test_parts(facts),
        *_edges(facts),
        *_above_tolerance(facts),
        *_unstable(facts),
        *_shared_times(facts),
    ]


def _unfinished(facts: Facts) -> Iterator[Caution]:
    waiting, failed = facts.count(RunState.WAITING), facts.count(RunState.FAILED)
    if waiting:
        yield Caution(
            "Unfinished",
            f"{waiting} of {facts.status.n_runs} runs are not recorded yet. Means are over the "
            f"runs that are.",
        )
    if failed:
        yield Caution("Failed runs", f"{failed} runs failed; their reasons are below.")


def _on_test_parts(facts: Facts) -> Iterator[Caution]:
    several = any(facts.axis(dataset) for dataset in facts.datasets)
    if several and not facts.validated:
        yield Caution(
            "Settings chosen on the test parts",
            "The sweep has no [selection]. Each method is shown at the setting of least loss on "
            "the test parts, which flatters methods with many settings.",
        )


def _edges(facts: Facts) -> Iterator[Caution]:
    """Yield a warning for each method whose best value lies at the edge of its grid."""
    found: dict[str, list[str]] = {}
    for compared in facts.compared:
        for place, node in facts.members(compared.dataset):
            setting = compared.settings.get(place["method"], {})
            for name in hyperparameters(node):
                values = node.ds[name].to_numpy()
                if values.dtype.kind not in "fiu" or len(values) < 3 or name not in setting:
                    continue
                ends = {float(values.min()): "least", float(values.max()): "greatest"}
                if setting[name] in ends:
                    where = (
                        f"{name} = {setting[name]:g}, the {ends[setting[name]]} of {len(values)}"
                    )
                    found.setdefault(f"{place['method']}: {where}", []).append(compared.dataset)
    for where, datasets in found.items():
        yield Caution(
            "Best value at the edge of its grid",
            f"{where}, on {_list(datasets)}. Extend the grid beyond it.",
        )


def _above_tolerance(facts: Facts) -> Iterator[Caution]:
    rows = facts.runs[facts.runs["state"] == RunState.COMPLETE.value]
    if rows.empty:
        return
    early = rows[rows["stop_reason"] != StopReason.CONVERGED.value]
    for method, some in early.groupby("method", sort=False):
        reasons = ", ".join(
            f"{reason} ({count})" for reason, count in some["stop_reason"].value_counts().items()
        )
        yield Caution(
            "Gap above tol",
            f"{method}: {_number(len(some), 'run')} stopped before the tolerance: {reasons}. The "
            f"gap is {_gap(float(some['gap'].max()))} at most.",
        )


def _unstable(facts: Facts) -> Iterator[Caution]:
    for row in records(facts.stability):
        if row["stability"] < UNSTABLE:
            yield Caution(
                "Selection unstable",
                f"{row['dataset']}, {row['method']}: the kernels selected differ between splits "
                f"(stability {row['stability']:.2f}; 1 is equal, 0 is chance). Read single weights "
                f"with care, sums over widths or features rather.",
            )


def _shared_times(facts: Facts) -> Iterator[Caution]:
    if facts.spec.get("execution") != "isolated":
        yield Caution(
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
