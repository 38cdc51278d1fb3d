"""Sentences of the page: the question of the sweep, its answer, and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mkldist.analysis.losses import without_gaps
from mkldist.analysis.summary import ROUNDING
from mkldist.core.wording import pluralize
from mkldist.report.answer import answer_sentences
from mkldist.report.facts import Facts
from mkldist.results.rows import hyperparameters
from mkldist.results.schema import DATASET_SERIES, SPLIT, RunState, metric_of
from mkldist.solvers.progress import SAMPLED, STATIONARITY, StopReason

if TYPE_CHECKING:
    import xarray as xr

MOST_NAMED = 3  # with more, their number stands for the names
UNSTABLE = 0.4  # Nogueira et al. call agreement beyond chance below it poor


def headline(facts: Facts, answers: pd.DataFrame) -> list[str]:
    """Return what was asked, what came out, and how far it is certified."""
    return [_asked(facts), *answer_sentences(facts, answers), _certified(facts)]


def _asked(facts: Facts) -> str:
    methods = list(dict.fromkeys(place["method"] for place, _ in facts.nodes))
    splits = sorted({node.sizes["split"] for _, node in facts.nodes})
    kernels = sorted(
        {int(node.ds["n_kernels"]) for _, node in facts.nodes if "n_kernels" in node.ds.coords}
    )
    done, planned = facts.count(RunState.COMPLETE), len(facts.runs)
    state = f"all {planned:,} runs" if done == planned else f"{done:,} of {planned:,} runs"
    return (
        f"The sweep compares {pluralize(len(methods), 'method')} on "
        f"{_data_sets(facts)} with {_span(kernels)} kernels and "
        f"{_span(splits)} split{'s' * (splits != [1])}; {state} are complete."
    )


def _data_sets(facts: Facts) -> str:
    """Return the data sets of a sweep, those of several sizes once with the number of sizes."""
    places = {p["dataset"]: str(n.attrs.get(DATASET_SERIES, p["dataset"])) for p, n in facts.nodes}
    sizes = Counter(places.values())
    if len(sizes) == len(places):
        return _named(facts.datasets, "data set")
    if len(sizes) > MOST_NAMED:
        return f"{len(sizes)} data sets in {len(places)} sizes"
    return _list([f"{name} in {n} sizes" if n > 1 else name for name, n in sizes.items()])


def _certified(facts: Facts) -> str:
    rows = facts.runs[facts.runs["state"] == RunState.COMPLETE.value]
    if rows.empty:
        return "No run has a certificate yet."
    met = rows[rows["stop_reason"] == StopReason.CONVERGED.value]
    which = "All" if len(met) == len(rows) else f"{len(met):,} of"
    names = {
        "gap": "certified duality gap",
        "exact_gap": "gap to the kernels of factors",
        STATIONARITY: "",
    }
    left = [
        f"a {words or name} of at most {_gap(largest)}"
        for name, words in names.items()
        if (largest := _largest(met, name)) is not None
    ]
    said = f"{which} {len(rows):,} complete runs reached their tolerance"
    said += f", with {', '.join(left)}" * bool(left)
    if SAMPLED in met and (sampled := int(met[SAMPLED].notna().sum())):
        said += f"; {pluralize(sampled, 'gap')} of these are estimated by a sample of the points"
    failed = facts.count(RunState.FAILED)
    return f"{said}; {pluralize(failed, 'run')} failed." if failed else f"{said}."


@dataclass(frozen=True)
class Caution:
    """One thing to beware of."""

    title: str  # What it is, in a few words
    advice: str  # What it means, and what to do
    cases: tuple[str, ...] = ()  # Where it was found, if in several places

    @property
    def text(self) -> str:
        """The first few cases, how many there are, and the advice, in one line."""
        if not self.cases:
            return self.advice
        left = len(self.cases) - MOST_NAMED
        more = f"; {left} more of {len(self.cases)}" if left > 0 else ""
        return f"{'; '.join(self.cases[:MOST_NAMED])}{more}. {self.advice}"


def alike(title: str, cases: Iterable[str], advice: str) -> Iterator[Caution]:
    """Yield one warning for all cases of a kind, if there are any."""
    if found := tuple(cases):
        yield Caution(title, advice, found)


def cautions(facts: Facts) -> list[Caution]:
    """Return what a reader has to beware of."""
    return [
        *_unfinished(facts),
        *_lacking(facts),
        *_on_test_parts(facts),
        *_edges(facts),
        *_above_tolerance(facts),
        *_unstable(facts),
        *shared_times(facts),
    ]


def _unfinished(facts: Facts) -> Iterator[Caution]:
    waiting, failed = facts.count(RunState.WAITING), facts.count(RunState.FAILED)
    if waiting:
        yield Caution(
            "Unfinished",
            f"{waiting:,} of {len(facts.runs):,} runs are not recorded yet. Means are over the "
            f"runs that are.",
        )
    if failed:
        yield Caution("Failed runs", f"{pluralize(failed, 'run')} failed; why stands below.")


def _lacking(facts: Facts) -> Iterator[Caution]:
    """Yield a warning of methods that lack a split that another method has."""
    lacking = {
        one.dataset: [str(n) for n in one.losses if n not in without_gaps(one.losses)]
        for one in facts.compared
    }
    cases = [f"{_list(names)} on {dataset}" for dataset, names in lacking.items() if names]
    yield from alike("Splits missing", cases, "Means of fewer splits are not compared with others.")


def _on_test_parts(facts: Facts) -> Iterator[Caution]:
    several = any(facts.axis(dataset) for dataset in facts.datasets)
    if several and not facts.validated:
        yield Caution(
            "Settings chosen on the test parts",
            "The sweep has no inner folds ([selection]). Each method is shown at the setting of "
            "least loss on the test parts, which flatters methods with many settings.",
        )


def _edges(facts: Facts) -> Iterator[Caution]:
    """Yield a warning for each method whose best value lies at the edge of its grid."""
    found: dict[str, list[str]] = {}
    for where, dataset in (_edges_on_folds if facts.validated else _edges_on_test_parts)(facts):
        found.setdefault(where, []).append(dataset)
    cases = [f"{where}, on {_named(datasets, 'data set')}" for where, datasets in found.items()]
    yield from alike("Best value at the edge of its grid", cases, "Extend the grid beyond it.")


def _edges_on_folds(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the edges that most splits select on inner folds, and their data sets."""
    for row in facts.ranked:
        if row["edge"]:
            yield f"{facts.name_of(row)}: {row['edge']}", row["dataset"]


def _edges_on_test_parts(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the edges of least mean loss on the test parts, and their data sets."""
    for compared in facts.compared:
        for place, node in facts.members(compared.dataset):
            method = facts.name_of(place)
            setting = compared.settings.get(method, {})
            for name in hyperparameters(node):
                values = node.ds[name].to_numpy()
                if values.dtype.kind not in "fiu" or len(values) < 3 or name not in setting:
                    continue
                if _is_tied(node, compared.loss, name):
                    continue
                ends = {float(values.min()): "least", float(values.max()): "greatest"}
                if setting[name] in ends:
                    end = f"{name} = {setting[name]:g}, the {ends[setting[name]]} of {len(values)}"
                    yield f"{method}: {end}", compared.dataset


def _is_tied(node: xr.DataTree, loss: str, name: str) -> bool:
    """Return True if several values of a hyperparameter have the least mean loss."""
    means = metric_of(node).loss(node.ds[loss].mean(SPLIT))
    least = means.min([dim for dim in means.dims if dim != name])
    return int((least <= least.min() * ROUNDING).sum()) > 1


def _above_tolerance(facts: Facts) -> Iterator[Caution]:
    rows = facts.runs[facts.runs["state"] == RunState.COMPLETE.value]
    if rows.empty:
        return
    early = rows[rows["stop_reason"] != StopReason.CONVERGED.value]
    cases = []
    for method, some in early.groupby("method", sort=False):
        reasons = ", ".join(
            f"{reason} ({count})" for reason, count in some["stop_reason"].value_counts().items()
        )
        left = [
            f", {name.replace('_', ' ')} {_gap(largest)} at most"
            for name in ("gap", "exact_gap", STATIONARITY)
            if (largest := _largest(some, name)) is not None
        ]
        cases.append(f"{method}: {pluralize(len(some), 'run')}, {reasons}{''.join(left)}")
    yield from alike("Stopped before the tolerance", cases, "Their results are not proven optimal.")


def _largest(rows: pd.DataFrame, name: str) -> float | None:
    """Return the largest value of a column; None where no row has one."""
    known = rows[name].dropna().to_numpy(float) if name in rows else np.empty(0)
    return float(known.max()) if len(known) else None


def _unstable(facts: Facts) -> Iterator[Caution]:
    """Yield a warning for each method that selects other kernels in other splits."""
    rows = facts.stability
    known = rows["stability_high"].notna()
    judged = rows["stability_high"].where(known, rows["stability"])
    low = rows[judged < UNSTABLE].assign(known=known)
    cases = []
    for (method, bank), some in low.groupby(["method", "bank"], sort=False):
        on = f" on {bank}" if facts.several_banks else ""
        values = sorted({f"{value:.2f}" for value in some["stability"]}, key=float)
        span = values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"
        few = "" if some["known"].all() else ", few splits give it no interval"
        cases.append(f"{method}{on}: {span} on {_named(some['dataset'].tolist(), 'data set')}{few}")
    yield from alike(
        "Selection unstable",
        cases,
        "The kernels selected differ between splits (stability 1 is equal, 0 is chance). Read "
        "single weights with care, sums over widths or features rather.",
    )


def shared_times(facts: Facts) -> Iterator[Caution]:
    """Yield a warning if runs shared the passes over the bank."""
    if facts.spec.get("execution") != "isolated":
        yield Caution(
            "Times shared, not isolated",
            "Runs shared the passes over a bank, and a run's seconds hold its share of them. Set "
            'execution = "isolated" for times to compare.',
        )


def _gap(value: float) -> str:
    return f"{value:.1e}" if value and np.isfinite(value) else f"{value:g}"


def _named(names: list[str], noun: str) -> str:
    return f"{len(names)} {noun}s" if len(names) > MOST_NAMED else _list(names)


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _span(values: list[int]) -> str:
    if not values:
        return "no"
    return f"{values[0]:,}" if len(values) == 1 else f"{values[0]:,} to {values[-1]:,}"
