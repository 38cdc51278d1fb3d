"""Conclusions of papers as data, and whether results bear them out.

Which times decide is one rule for all conclusions.  They are those of a processor, passes
included, of sweeps that run isolated.  A time within 10 % of the bound that a conclusion draws
decides nothing; where runs had less than half of a processor, neither does one within a factor of
two.  And no verdict rests on fewer than half of the data sets of a sweep's file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from mkldist.analysis.pairing import Results
from mkldist.analysis.pooled_points import mcnemar_points
from mkldist.analysis.published import Published, values_by_split
from mkldist.arrays import Floats
from mkldist.results.rows import place_of
from mkldist.results.schema import DATASET_SERIES
from mkldist.spec.kinds import Model
from mkldist.spec.load import document_of
from mkldist.spec.mistakes import location_of, most_telling, spec_error

PROCESSOR = "processor_seconds"
"""Processor time of a run, that of its share of the passes included."""
OF_PROCESSOR = ("cpu_seconds", "pass_cpu_seconds")
OF_WALL = ("own_seconds", "pass_seconds")
TIMES = frozenset(("seconds", "wall_seconds", PROCESSOR, *OF_PROCESSOR, *OF_WALL))
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
    first: str = Field("", description="METHOD or BANK/METHOD.")
    relation: Literal["less", "more", "alike"] = Field(
        "less", description="How the mean of `first` relates to that of `second`."
    )
    second: str = Field("", description="METHOD or BANK/METHOD.")
    setting: str = Field("", description="Hyperparameters of both, C=100; empty for the chosen.")
    second_setting: str = Field("", description="Hyperparameters of `second` where they differ.")
    factor: float = Field(1.0, gt=0.0, description="The mean of `second` counts this many times.")
    within: float = Field(0.0, ge=0.0, description="Difference up to which means are alike.")
    scope: Literal["every", "most", "total"] = Field(
        "every", description="Data sets on which it must hold; total: it holds of their sums."
    )
    untestable: str = Field("", description="Why no sweep can test it.")

    @model_validator(mode="after")
    def _is_whole(self) -> Conclusion:
        """Refuse a conclusion that names neither a test nor why there is none."""
        named = [self.experiment, self.metric, self.first, self.second]
        if bool(self.untestable) == any(named) or (any(named) and not all(named)):
            message = "experiment, metric, first and second, or untestable alone"
            raise ValueError(f"found a part of a test; expected {message}")
        return self

    def holds(self, first: float, second: float, margin: float = 1.0) -> bool | None:
        """Return True if two means relate as the paper says; None if they are too near to tell.

        Parameters
        ----------
        first, second : float
            The means.
        margin : float
            Factor by which means that are not alike have to differ from the bound.
        """
        if self.relation == "alike":
            return abs(first - second) <= self.within
        bound = self.factor * second
        if margin > 1.0 and bound / margin < first < bound * margin:
            return None
        return first < bound if self.relation == "less" else first > bound


class _File(Model):
    conclusions: tuple[Conclusion, ...] = Field(strict=False)


@dataclass(frozen=True)
class Case:
    """A data set on which a conclusion is tested.

    Parameters
    ----------
    dataset : str
        Its name; empty for the sum of all.
    first, second : float
        Means over the splits, or points.
    holds : bool or None
        True if they relate as the paper says; None if they are too near to tell.
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
        Data sets with results of both methods, and their sum where it decides.
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


def judge(conclusion: Conclusion, results: Mapping[str, Results], n_datasets: int = 0) -> Judged:
    """Hold a conclusion to results.

    Means over the splits with complete runs of both are compared data set by data set, without a
    test: the papers compare means.  Times count only where a sweep runs isolated.

    Parameters
    ----------
    conclusion : Conclusion
        What the paper says.
    results : mapping of str to Results
        Results by the name of their sweep.
    n_datasets : int
        Number of data sets of the sweep's file, of which results may have a part; 0 if unknown.
        One of several training sizes counts once.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    reason = conclusion.untestable or _reason(conclusion, results.get(conclusion.experiment))
    if reason:
        return Judged(conclusion, "not testable", note=reason)
    own = results[conclusion.experiment]
    cases = _cases(conclusion, own)
    if not cases:
        said = f"no data set has results of {conclusion.first} and {conclusion.second}"
        return Judged(conclusion, "not testable", note=said)
    compared = len({_series(own).get(case.dataset) for case in cases if case.dataset})
    few = 2 * compared < n_datasets
    verdict: Verdict = "not decided" if few else _verdict(conclusion, cases)
    notes = [f"{compared} of {n_datasets} data sets"] * few + _notes(conclusion, own)
    return Judged(conclusion, verdict, tuple(cases), "; ".join(notes))


def _cases(conclusion: Conclusion, results: Results) -> list[Case]:
    """Return the figures of both methods on each data set, and their sums where these decide."""
    figures = (_points if conclusion.metric == POINTS else _means)(conclusion, results)
    if figures and conclusion.scope == "total":
        first, second = zip(*figures.values(), strict=True)
        figures[""] = math.fsum(first), math.fsum(second)
    margin = 1.0
    if conclusion.metric in TIMES:
        margin = BUSY_MARGIN if _share(results) < 0.5 else MARGIN
    return [
        Case(dataset, first, second, conclusion.holds(first, second, margin))
        for dataset, (first, second) in figures.items()
    ]


def _reason(conclusion: Conclusion, results: Results | None) -> str:
    """Return why results cannot test a conclusion, empty if they may."""
    if results is None:
        return f"{conclusion.experiment} was not run"
    if conclusion.metric in TIMES and _execution(results) != "isolated":
        return f"runs of {conclusion.experiment} share passes, so that their times do not compare"
    return ""


def _execution(results: Results) -> str:
    return str(json.loads(str(results.tree.attrs["spec"])).get("execution", ""))


def _verdict(conclusion: Conclusion, cases: Sequence[Case]) -> Verdict:
    """Return whether a conclusion holds on as many data sets as it says, if these can tell."""
    if conclusion.scope == "total":
        cases = cases[-1:]
    needed = len(cases) // 2 + 1 if conclusion.scope == "most" else len(cases)
    held = sum(case.holds is True for case in cases)
    failed = sum(case.holds is False for case in cases)
    if held >= needed:
        return "reproduced"
    return "not reproduced" if len(cases) - failed < needed else "not decided"


def _series(results: Results) -> dict[str, str]:
    """Return the data set of each size of it, by name."""
    return {place_of(node)["dataset"]: str(node.attrs[DATASET_SERIES]) for node in results.nodes()}


def _means(conclusion: Conclusion, results: Results) -> dict[str, tuple[float, float]]:
    """Return the means of both methods on each data set, over the splits with runs of both."""
    methods = conclusion.first, conclusion.second
    settings = conclusion.setting, conclusion.second_setting or conclusion.setting
    found = {}
    for dataset in _series(results):
        rows = [
            _row(conclusion, dataset, method, setting)
            for method, setting in zip(methods, settings, strict=True)
        ]
        first, second = (_values(results, row) for row in rows)
        if first is None or second is None:
            continue
        both = ~np.isnan(first) & ~np.isnan(second)
        if both.any():
            found[dataset] = float(first[both].mean()), float(second[both].mean())
    return found


def _row(conclusion: Conclusion, dataset: str, method: str, setting: str) -> Published:
    """Return what to look up in results, as a published number without a value."""
    return Published(
        conclusion.experiment, dataset, method, setting, conclusion.metric, math.nan, math.nan,
        conclusion.paper,
    )  # fmt: skip


def _values(results: Results, row: Published) -> Floats | None:
    """Return a metric on each split, NaN without a complete run; None if results lack it."""
    total: Floats | None = None
    for name in OF_PROCESSOR if row.metric == PROCESSOR else (row.metric,):
        values = values_by_split(results, replace(row, metric=name))
        if isinstance(values, str):
            return None
        total = values if total is None else total + values
    return total


def _points(conclusion: Conclusion, results: Results) -> dict[str, tuple[float, float]]:
    """Return the points of both methods on each data set that has some of both."""
    names = conclusion.first, conclusion.second
    table = mcnemar_points(results, names).reindex(columns=names).dropna()
    rows = table.itertuples(name=None)
    return {str(dataset): (float(first), float(second)) for dataset, first, second in rows}


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
