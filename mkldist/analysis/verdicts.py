"""Whether results bear out the conclusions of papers.

Which times decide is one rule for all conclusions.  They are those of a processor, passes
included, of sweeps that run isolated.  A time within 10 % of the bound that a conclusion draws
decides nothing; where runs had less than half of a processor, neither does one within a factor of
two.  Times and counts of runs that a limit of time ended are lower bounds, and decide only what
lower bounds can.  And no verdict rests on fewer than half of the data sets of a sweep's file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mkldist.analysis.conclusion import Conclusion, Means
from mkldist.analysis.kernel_numbers import paired_p_value
from mkldist.analysis.paired_losses import SIGNIFICANCE
from mkldist.analysis.pairing import Results
from mkldist.analysis.points import mcnemar_points
from mkldist.analysis.published_number import Published
from mkldist.analysis.split_values import (
    OF_PROCESSOR,
    OF_WALL,
    TIMES,
    any_cut_short,
    is_isolated,
    values_by_split,
)
from mkldist.results.rows import place_of
from mkldist.results.schema import DATASET_SERIES

POINTS = "mcnemar_points"
MARGIN = 1.1  # by which a time must differ from the bound that a conclusion draws
BUSY_MARGIN = 2.0  # the same, of runs that had less than half of a processor
Verdict = Literal["reproduced", "not reproduced", "not decided", "not testable"]


@dataclass(frozen=True)
class Case:
    """A data set on which a conclusion is tested.

    Parameters
    ----------
    dataset : str
        Its name; empty for the sum of all, the mean of their ratios, or a test of all.
    first, second : float
        Means over the splits, or points; of ratios, their mean and 1; of a test, p and its level.
    holds : bool or None
        True if they relate as the paper says; None if they cannot tell.
    """

    dataset: str
    first: float
    second: float
    holds: bool | None


@dataclass(frozen=True)
class Judged:
    """A conclusion with the figures that its verdict rests on.

    Parameters
    ----------
    conclusion : Conclusion
        What the paper says.
    verdict : str
        ``"reproduced"``, ``"not reproduced"``, ``"not decided"`` or ``"not testable"``.
    cases : tuple of Case
        Data sets with results of both methods, and one of all where it decides.
    note : str
        Why it is not testable, or what to know of the figures; may be empty.
    """

    conclusion: Conclusion
    verdict: Verdict
    cases: tuple[Case, ...] = ()
    note: str = ""


def judge(
    conclusion: Conclusion, results: Mapping[str, Results], datasets: Iterable[str] = ()
) -> Judged:
    """Hold a conclusion to results.

    Means over the splits with complete runs of both are compared data set by data set, without a
    test: the papers compare means.  Times count only where a sweep runs isolated.

    Parameters
    ----------
    conclusion : Conclusion
        What the paper says.
    results : mapping of str to Results
        Results by the name of their sweep.
    datasets : iterable of str
        Data sets of the sweep's file, of which results may have a part; none if unknown.  One of
        several training sizes counts once.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    is_test = bool(conclusion.experiment)
    reason = _reason(conclusion, results.get(conclusion.experiment)) if is_test else ""
    if reason or not is_test:
        reason = conclusion.untestable or reason
        return Judged(conclusion, "not testable", note=reason)
    own = results[conclusion.experiment]
    cases = _cases(conclusion, own)
    if not cases:
        methods = " and ".join((conclusion.first, *conclusion.others))
        said = f"no data set has results of {methods}"
        return Judged(conclusion, "not testable", note=said)
    series = _series(own)
    compared = len({series.get(case.dataset, case.dataset) for case in cases if case.dataset})
    n_all = sum(map(conclusion.covers, datasets))
    few = 2 * compared < n_all
    missing = max(0, n_all - compared)
    verdict: Verdict = "not decided" if few else _verdict(conclusion, cases, missing)
    if conclusion.untestable:
        verdict = "not testable"
    notes = [f"{compared} of {n_all} data sets"] * few + _notes(conclusion, own)
    return Judged(conclusion, verdict, tuple(cases), "; ".join(notes))


def _cases(conclusion: Conclusion, results: Results) -> list[Case]:
    """Return the figures of both methods on each data set, and one of all where it decides."""
    figures = (_points if conclusion.metric == POINTS else _means)(conclusion, results)
    if figures and conclusion.scope in ("total", "average"):
        figures[""] = _of_all(conclusion, list(figures.values()))
    margin = 1.0
    if conclusion.metric in TIMES:
        margin = BUSY_MARGIN if _share(results) < 0.5 else MARGIN
    cases = [
        Case(dataset, means.first, means.second, conclusion.holds(means, margin))
        for dataset, means in figures.items()
    ]
    if cases and conclusion.scope == "t-test":
        cases.append(_by_t_test(conclusion, list(figures.values())))
    return cases


def _by_t_test(conclusion: Conclusion, means: Sequence[Means]) -> Case:
    """Return p of the paired t-test over data sets, and whether the paper's relation holds by it.

    Methods are alike where the test finds no difference.  Lower bounds decide nothing.
    """
    both = np.array([(one.first, conclusion.factor * one.second) for one in means])
    is_known = len(both) > 1 and not np.isnan(both).any()
    p = paired_p_value(both) if is_known else math.nan
    if math.isnan(p) or any(one.first_grows or one.second_grows for one in means):
        return Case("", p, SIGNIFICANCE, None)
    differs, (first, second) = p < SIGNIFICANCE, both.mean(axis=0)
    found = "alike" if not differs else "less" if first < second else "more"
    return Case("", p, SIGNIFICANCE, found == conclusion.relation)


def _of_all(conclusion: Conclusion, means: Sequence[Means]) -> Means:
    """Return the sums over all data sets, or the mean of their ratios and 1."""
    firsts, seconds, first_grows, second_grows = zip(*means, strict=True)
    if conclusion.scope == "total":
        first, second = math.fsum(firsts), math.fsum(seconds)
    else:
        first, second = math.fsum(map(_ratio, firsts, seconds)) / len(means), 1.0
    return Means(first, second, any(first_grows), any(second_grows))


def _reason(conclusion: Conclusion, results: Results | None) -> str:
    """Return why results cannot test a conclusion, empty if they may."""
    if results is None:
        return f"{conclusion.experiment} was not run"
    if conclusion.metric in TIMES and not is_isolated(results):
        return f"runs of {conclusion.experiment} share passes, so that their times do not compare"
    return ""


def _verdict(conclusion: Conclusion, cases: Sequence[Case], missing: int = 0) -> Verdict:
    """Return whether a conclusion holds on as many data sets as it says, if these can tell.

    Of data sets that are missing any may hold where the paper counts them.
    """
    if conclusion.is_summed:
        cases = cases[-1:]
    needed = len(cases) // 2 + 1 if conclusion.scope == "most" else len(cases)
    needed = conclusion.wins or needed
    held = sum(case.holds is True for case in cases)
    failed = sum(case.holds is False for case in cases)
    if held >= needed:
        return "reproduced"
    open_ = len(cases) - failed + (missing if conclusion.wins else 0)
    return "not reproduced" if open_ < needed else "not decided"


def _series(results: Results) -> dict[str, str]:
    """Return the data set of each size of it, by name."""
    return {place_of(node)["dataset"]: str(node.attrs[DATASET_SERIES]) for node in results.nodes()}


def _means(conclusion: Conclusion, results: Results) -> dict[str, Means]:
    """Return the means of both methods on each data set, the best of several rivals."""
    best = max if conclusion.relation == "more" else min
    found = {}
    for dataset, series in _series(results).items():
        if not conclusion.covers(series):
            continue
        pairs = [_pair(conclusion, results, dataset, other) for other in conclusion.others]
        known = [pair for pair in pairs if pair]
        if len(known) == len(pairs):
            unknown = [pair for pair in known if math.isnan(pair.second)]
            chosen = best(unknown or known, key=lambda pair: pair.second)
            if conclusion.relation == "more":  # any rival that grows may become the largest
                chosen = chosen._replace(second_grows=any(pair.second_grows for pair in known))
            found[dataset.removesuffix(conclusion.ending)] = chosen
    return found


def _pair(conclusion: Conclusion, results: Results, dataset: str, other: str) -> Means | None:
    """Return the means of two methods over the splits with runs of both; None if none has."""
    second = conclusion.second_setting or conclusion.setting
    ending = conclusion.second_ending or conclusion.ending
    place = dataset.removesuffix(conclusion.ending) + ending
    one = (conclusion.metric, dataset, conclusion.setting)
    two = (conclusion.second_metric or conclusion.metric, place, second)
    asked = [(conclusion.first, *one), (other, *two)]
    if conclusion.first_over:
        asked.append((conclusion.first_over, *one))
    if conclusion.second_over:
        asked.append((conclusion.second_over, *two))
    rows = [_row(conclusion, *each) for each in asked]
    values = [values_by_split(results, row) for row in rows]
    known = [one for one in values if not isinstance(one, str)]
    if len(known) < len(values) or len({len(one) for one in known}) > 1:
        return None
    both = ~np.isnan(known).any(axis=0)
    if not both.any():
        return None
    first, last, *over = (float(value[both].mean()) for value in known)
    first = _ratio(first, over.pop(0) if conclusion.first_over else 1.0)
    last = _ratio(last, over[0] if over else 1.0)
    grow = [any_cut_short(results, row) for row in rows]
    return Means(first, last, *(grows or any(grow[2:]) for grows in grow[:2]))


def _ratio(one: float, other: float) -> float:
    """Return how many times one number is another; NaN if the other is 0."""
    return one / other if other else math.nan


def _row(conclusion: Conclusion, method: str, metric: str, dataset: str, setting: str) -> Published:
    """Return what to look up in results, as a published number without a value."""
    return Published(
        conclusion.experiment, dataset, method, setting, metric, math.nan, math.nan,
        conclusion.paper,
    )  # fmt: skip


def _points(conclusion: Conclusion, results: Results) -> dict[str, Means]:
    """Return the points of the methods on each data set that has some of all, the best rival's."""
    names = conclusion.first, *conclusion.others
    table = mcnemar_points(results, names).reindex(columns=names).dropna()
    best = max if conclusion.relation == "more" else min
    series = _series(results)
    return {
        str(dataset): Means(float(first), float(best(others)))
        for dataset, first, *others in table.itertuples(name=None)
        if conclusion.covers(series.get(str(dataset), str(dataset)))
    }


def _notes(conclusion: Conclusion, results: Results) -> list[str]:
    """Return which share of a processor timed runs had."""
    share = _share(results) if conclusion.metric in TIMES else math.nan
    return [] if math.isnan(share) else [f"runs had {share:.0%} of a processor"]


def _share(results: Results) -> float:
    """Return the processor time of all runs by their time, passes included; NaN without any."""
    processor, wall = (
        sum(float(node[name].sum()) for node in results.nodes() for name in names)
        for names in (OF_PROCESSOR, OF_WALL)
    )
    return processor / wall if wall > 0.0 else math.nan
