"""Conclusions of papers as data, and whether results bear them out.

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
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, ValidationError, model_validator

from mkldist.analysis.kernel_numbers import paired_p_value
from mkldist.analysis.paired_losses import SIGNIFICANCE
from mkldist.analysis.pairing import Results
from mkldist.analysis.pooled_points import mcnemar_points
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
from mkldist.spec.kinds import Model
from mkldist.spec.load import document_of
from mkldist.spec.mistakes import location_of, most_telling, spec_error

POINTS = "mcnemar_points"
MARGIN = 1.1  # by which a time must differ from the bound that a conclusion draws
BUSY_MARGIN = 2.0  # the same, of runs that had less than half of a processor
Verdict = Literal["reproduced", "not reproduced", "not decided", "not testable"]


class Conclusion(Model):
    """Conclusion of a paper on two methods, or on one at two settings."""

    paper: str = Field(description="Who says it, where.")
    words: str = Field(description="What it says.")
    experiment: str = Field("", description="Name of the sweep that tests it.")
    metric: str = Field(
        "",
        description="A variable of one number a run; mcnemar_points: those of Do et al. (2009); "
        "processor_seconds: processor time, that of passes included.",
    )
    second_metric: str = Field("", description="Metric of `second` where it differs.")
    first: str = Field("", description="METHOD or BANK/METHOD.")
    relation: Literal["less", "more", "alike"] = Field(
        "less", description="How the mean of `first` relates to that of `second`."
    )
    second: str = Field("", description="METHOD or BANK/METHOD.")
    rivals: tuple[str, ...] = Field(
        (), strict=False, description="In place of `second`: methods of which the best counts."
    )
    first_over: str = Field("", description="The mean of `first` is divided by this method's.")
    second_over: str = Field("", description="The mean of `second` is divided by this method's.")
    setting: str = Field("", description="Hyperparameters of both, C=100; empty for the chosen.")
    second_setting: str = Field("", description="Hyperparameters of `second` where they differ.")
    factor: float = Field(1.0, gt=0.0, description="The mean of `second` counts this many times.")
    within: float = Field(0.0, ge=0.0, description="Difference up to which means are alike.")
    within_factor: float = Field(1.0, ge=1.0, description="Ratio up to which means are alike.")
    scope: Literal["every", "most", "total", "average", "t-test"] = Field(
        "every",
        description="Data sets on which it must hold; total: it holds of their sums; average: it "
        "holds of the mean of their ratios; t-test: by the paired t-test over them, at 0.05.",
    )
    wins: int = Field(
        0, ge=0, description="In place of `scope`: data sets on which it must hold, at least."
    )
    datasets: tuple[str, ...] = Field(
        (), strict=False, description="Data sets that it is about, * for any; empty for all."
    )
    ending: str = Field("", description="It is about data sets whose names end so.")
    second_ending: str = Field("", description="Ending of the name of the data set of `second`.")
    untestable: str = Field(
        "", description="Why no sweep can test it; beside a test, why this one decides nothing."
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Conclusion:
        """Refuse a conclusion that names neither a test nor why there is none."""
        one = bool(self.second) != bool(self.rivals)
        named = [bool(self.experiment), bool(self.metric), bool(self.first), one]
        if not all(named) and (any(named) or not self.untestable):
            message = "experiment, metric, first and second, or untestable alone"
            raise ValueError(f"found a part of a test; expected {message}")
        return self

    @property
    def is_summed(self) -> bool:
        """Return True if one figure of all data sets decides."""
        return self.scope in ("total", "average", "t-test")

    @property
    def others(self) -> tuple[str, ...]:
        """Return the methods that `first` is held to."""
        return self.rivals or (self.second,)

    def covers(self, dataset: str) -> bool:
        """Return True if it is about a data set; several sizes of one go by one name."""
        known = not self.datasets or any(fnmatchcase(dataset, name) for name in self.datasets)
        return known and dataset.endswith(self.ending)

    def holds(self, means: Means, margin: float = 1.0) -> bool | None:
        """Return True if two means relate as the paper says; None if they cannot tell.

        They cannot where they are too near to each other, or not known.

        Parameters
        ----------
        means : Means
            The means.
        margin : float
            Factor by which means have to differ from the bound, unless they are alike by their
            difference.
        """
        found = self._compare(means.first, means.second, margin)
        if self.relation == "alike":
            return None if means.first_grows or means.second_grows else found
        # A mean that grows may turn what holds now, or what does not.
        turns_less, turns_more = means.second_grows, means.first_grows
        may_turn = turns_less if (found is False) == (self.relation == "less") else turns_more
        return None if may_turn else found

    def _compare(self, first: float, second: float, margin: float) -> bool | None:
        """Return True if two numbers relate as the paper says."""
        if math.isnan(first) or math.isnan(second):
            return None
        if self.relation == "alike" and self.within_factor == 1.0:
            return abs(first - second) <= self.within
        if self.relation == "alike":
            low, high = sorted((first, second))
            return _is_less(high, self.within_factor * low, margin)
        less = _is_less(first, self.factor * second, margin)
        return less if self.relation == "less" or less is None else first > self.factor * second


def _is_less(value: float, bound: float, margin: float) -> bool | None:
    """Return True if a value is below a bound; None if it is within a factor above 1 of it."""
    if margin > 1.0 and bound / margin < value < bound * margin:
        return None
    return value < bound


class Means(NamedTuple):
    """Means of the two methods of a conclusion, or their points.

    Parameters
    ----------
    first, second : float
        The means.
    first_grows, second_grows : bool
        True if a limit of time ended a run, so that the mean is a lower bound.
    """

    first: float
    second: float
    first_grows: bool = False
    second_grows: bool = False


class _File(Model):
    conclusions: tuple[Conclusion, ...] = Field(strict=False)


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


def read_conclusions(path: Path) -> tuple[Conclusion, ...]:
    """Read conclusions of papers from a TOML file with a list ``[[conclusions]]``.

    Raises
    ------
    mkldist.errors.SpecError
        If the file is missing or is not TOML, or a key or value is wrong.
    """
    try:
        return _File.model_validate(document_of(path)).conclusions
    except ValidationError as error:
        first = most_telling(error.errors())
        number = next((part + 1 for part in location_of(first) if isinstance(part, int)), 0)
        where = f"{path}, conclusion {number}" if number else str(path)
        raise spec_error(first, where, _File) from None


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
    verdict: Verdict = "not decided" if few else _verdict(conclusion, cases)
    if conclusion.untestable:
        verdict = "not testable"
    notes = [conclusion.untestable] * bool(conclusion.untestable)
    notes += [f"{compared} of {n_all} data sets"] * few + _notes(conclusion, own)
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
    tested = [_by_t_test(conclusion, cases)] if cases and conclusion.scope == "t-test" else []
    return [*cases, *tested]


def _by_t_test(conclusion: Conclusion, cases: Sequence[Case]) -> Case:
    """Return p of the paired t-test over data sets, and whether the paper's relation holds by it.

    Methods are alike where the test finds no difference.
    """
    both = np.array([(case.first, conclusion.factor * case.second) for case in cases])
    is_known = len(both) > 1 and not np.isnan(both).any()
    p = paired_p_value(both) if is_known else math.nan
    if math.isnan(p):
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


def _verdict(conclusion: Conclusion, cases: Sequence[Case]) -> Verdict:
    """Return whether a conclusion holds on as many data sets as it says, if these can tell."""
    if conclusion.is_summed:
        cases = cases[-1:]
    needed = len(cases) // 2 + 1 if conclusion.scope == "most" else len(cases)
    needed = conclusion.wins or needed
    held = sum(case.holds is True for case in cases)
    failed = sum(case.holds is False for case in cases)
    if held >= needed:
        return "reproduced"
    return "not reproduced" if len(cases) - failed < needed else "not decided"


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
            found[dataset.removesuffix(conclusion.ending)] = best(
                unknown or known, key=lambda pair: pair.second
            )
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
