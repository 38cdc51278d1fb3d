"""Conclusions of papers as data, and whether results bear them out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from mkldist.analysis.pairing import Results
from mkldist.analysis.pooled_points import mcnemar_points
from mkldist.analysis.published import Published, our_values
from mkldist.spec.kinds import Model
from mkldist.spec.load import document_of
from mkldist.spec.mistakes import location_of, most_telling, spec_error

TIMES = frozenset(
    ("seconds", "cpu_seconds", "wall_seconds", "own_seconds", "pass_seconds", "pass_cpu_seconds")
)
POINTS = "mcnemar_points"
Verdict = Literal["reproduced", "not reproduced", "not testable"]


class Conclusion(Model):
    """Conclusion of a paper on two methods, or on one at two settings."""

    paper: str = Field(description="Who says it, where.")
    words: str = Field(description="What it says.")
    experiment: str = Field("", description="Name of the sweep that tests it.")
    metric: str = Field(
        "", description="A variable of one number a run; mcnemar_points: those of Do et al. (2009)."
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

    def holds(self, first: float, second: float) -> bool:
        """Return True if two means relate as the paper says."""
        if self.relation == "alike":
            return abs(first - second) <= self.within
        scaled = self.factor * second
        return first < scaled if self.relation == "less" else first > scaled


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
    holds : bool
        True if they relate as the paper says.
    """

    dataset: str
    first: float
    second: float
    holds: bool


@dataclass(frozen=True)
class Judged:
    """A conclusion with the figures that its verdict rests on.

    Parameters
    ----------
    conclusion : Conclusion
        What the paper says.
    verdict : str
        ``"reproduced"``, ``"not reproduced"`` or ``"not testable"``.
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


def judge(conclusion: Conclusion, results: Mapping[str, Results]) -> Judged:
    """Hold a conclusion to results.

    Means over the splits are compared data set by data set, without a test: the papers compare
    means.  Times count only where a sweep runs isolated.

    Parameters
    ----------
    conclusion : Conclusion
        What the paper says.
    results : mapping of str to Results
        Results by the name of their sweep.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    reason = conclusion.untestable or _reason(conclusion, results.get(conclusion.experiment))
    if reason:
        return Judged(conclusion, "not testable", note=reason)
    own = results[conclusion.experiment]
    figures = _points if conclusion.metric == POINTS else _means
    cases = [
        Case(dataset, first, second, conclusion.holds(first, second))
        for dataset, (first, second) in figures(conclusion, own).items()
    ]
    if not cases:
        said = f"no data set has results of {conclusion.first} and {conclusion.second}"
        return Judged(conclusion, "not testable", note=said)
    if conclusion.scope == "total":
        sums = sum(case.first for case in cases), sum(case.second for case in cases)
        cases.append(Case("", *sums, conclusion.holds(*sums)))
    verdict: Verdict = "reproduced" if _decided(conclusion, cases) else "not reproduced"
    return Judged(conclusion, verdict, tuple(cases), _note(conclusion, own))


def _reason(conclusion: Conclusion, results: Results | None) -> str:
    """Return why results cannot test a conclusion, empty if they may."""
    if results is None:
        return f"{conclusion.experiment} was not run"
    if conclusion.metric in TIMES and _execution(results) != "isolated":
        return f"runs of {conclusion.experiment} share passes, so that their times do not compare"
    return ""


def _execution(results: Results) -> str:
    return str(json.loads(str(results.tree.attrs["spec"])).get("execution", ""))


def _decided(conclusion: Conclusion, cases: Sequence[Case]) -> bool:
    """Return True if a conclusion holds on as many data sets as it says."""
    if conclusion.scope == "total":
        return cases[-1].holds
    held = sum(case.holds for case in cases)
    return held == len(cases) if conclusion.scope == "every" else 2 * held > len(cases)


def _datasets(results: Results) -> Iterable[str]:
    return dict.fromkeys(place["dataset"] for place in results.places())


def _means(conclusion: Conclusion, results: Results) -> dict[str, tuple[float, float]]:
    """Return the means of both methods on each data set that has complete runs of both."""
    settings = conclusion.setting, conclusion.second_setting or conclusion.setting
    found = {}
    for dataset in _datasets(results):
        means = [
            _mean(results, _row(conclusion, dataset, method, setting))
            for method, setting in zip((conclusion.first, conclusion.second), settings, strict=True)
        ]
        if not any(map(math.isnan, means)):
            found[dataset] = means[0], means[1]
    return found


def _row(conclusion: Conclusion, dataset: str, method: str, setting: str) -> Published:
    """Return what to look up in results, as a published number without a value."""
    return Published(
        conclusion.experiment, dataset, method, setting, conclusion.metric, math.nan, math.nan,
        conclusion.paper,
    )  # fmt: skip


def _mean(results: Results, row: Published) -> float:
    values = our_values(results, row)
    return math.nan if isinstance(values, str) else float(values.mean())


def _points(conclusion: Conclusion, results: Results) -> dict[str, tuple[float, float]]:
    """Return the points of both methods on each data set that has some of both."""
    names = conclusion.first, conclusion.second
    table = mcnemar_points(results, names).reindex(columns=names).dropna()
    return {str(dataset): (row[names[0]], row[names[1]]) for dataset, row in table.iterrows()}


def _note(conclusion: Conclusion, results: Results) -> str:
    """Return which share of a processor timed runs had; empty for other metrics."""
    if conclusion.metric not in TIMES:
        return ""
    nodes = results.nodes()
    cpu, wall = (
        sum(float(node[name].sum()) for node in nodes) for name in ("cpu_seconds", "wall_seconds")
    )
    share = cpu / wall if wall > 0.0 else math.nan
    return f"runs had {share:.0%} of a processor" if share < 1.0 else ""
