"""Conclusions of papers as data: what is compared, by how much, and on which data sets."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError, model_validator

from mkldist.spec.kinds import Model
from mkldist.spec.load import document_of
from mkldist.spec.mistakes import location_of, most_telling, spec_error


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


class Conclusion(Model):
    """Conclusion of a paper on two methods, or on one at two settings."""

    paper: str = Field(description="Who says it, where.")
    words: str = Field(description="What it says.")
    experiment: str = Field("", description="Name of the sweep that tests it.")
    metric: str = Field(
        "",
        description="A variable of one number a run; mcnemar_points: those of Do et al. (2009); "
        "processor_seconds: processor time, that of passes included; weight_change: by how much "
        "the five largest kernel weights change in an iteration.",
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
        if self.wins and self.scope != "every":
            raise ValueError(f"found wins beside scope = {self.scope!r}; expected one of them")
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
            grow, others = means.first_grows, means.second_grows
            if means.first < means.second:
                grow, others = others, grow
            if found is False:
                return None if others else found  # the lower one may come nearer
            return None if grow or others else found
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


class _File(Model):
    conclusions: tuple[Conclusion, ...] = Field(strict=False)


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
