"""Grids and search spaces of the parameters of methods, from a user's words.

Each point of a grid is validated once, here.  A worker builds the parameters of a run anew from
the run's plain settings (:func:`mkldist.solvers.solver_params.plain_settings`), because these, and
not objects, are recorded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from mkldist.errors import SpecError
from mkldist.solvers.base import PATH_OF_C, Method
from mkldist.solvers.solver_params import (
    SolverParams,
    check_effect,
    check_names,
    plain_settings,
    validate,
)
from mkldist.spec.banks import Range
from mkldist.spec.kinds import LINKED, SOURCE_PREFIX, check_fits, spelled
from mkldist.spec.load import spec_error
from mkldist.spec.model import Distribution, MethodSpec, is_distribution

DIGITS = 6  # of a drawn value: tables can show it, and every machine's logarithm gives the same


@dataclass(frozen=True)
class Span:
    """Values between two bounds, both included."""

    low: float  # the bounds
    high: float
    log: bool = False  # True if values are uniform in their logarithm
    whole: bool = False  # true for whole numbers

    @classmethod
    def of(cls, distribution: Distribution, annotation: Any) -> Span:
        """Return the span of a distribution for a parameter of some type."""
        low, high = distribution.low, distribution.high
        whole = int in _members(annotation) and low == int(low) and high == int(high)
        return cls(low, high, distribution.scale == "log", whole)

    @property
    def ends(self) -> list[float]:
        """The bounds as values of the parameter."""
        return [self.exactly(self.low), self.exactly(self.high)]

    def exactly(self, value: float) -> float:
        """Return a value of the span near a number: whole, or rounded to six digits."""
        if not self.whole:
            value = float(f"{value:.{DIGITS}g}")
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else float(value)

    def at(self, share: float) -> float:
        """Return the quantile of a share in [0, 1).

        >>> Span(0.01, 100, log=True).at(0.5), Span(1, 3, whole=True).at(0.99)
        (1.0, 3)
        """
        margin = 0.5 if self.whole else 0.0
        low, high = self.low - margin, self.high + margin
        if not self.log:
            return self.exactly(low + share * (high - low))
        return self.exactly(math.exp(math.log(low) + share * (math.log(high) - math.log(low))))


@dataclass(frozen=True)
class Space:
    """Settings of a method that differ in some parameters."""

    spans: Mapping[str, Span]  # parameters with a distribution
    choices: Mapping[str, list[Any]]  # parameters with a list, of which each value is as likely
    fixed: Mapping[str, Any]  # values of other parameters

    @property
    def names(self) -> list[str]:
        """Names of the parameters that differ."""
        return [*self.spans, *self.choices]

    def at(self, shares: Mapping[str, float]) -> dict[str, Any]:
        """Return the values of the parameters that differ, at shares in [0, 1)."""
        values = {name: span.at(shares[name]) for name, span in self.spans.items()}
        picked = {name: some[int(shares[name] * len(some))] for name, some in self.choices.items()}
        return {**values, **picked}


def _members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


POINT_BYTES = 2000  # of the parameters of a method at a point of a grid
PATH = "path"  # stands for PATH_OF_C
ENTRY_KEYS = [key for key in MethodSpec.model_fields if key != "name"]
"""Keys of an entry of ``[[methods]]`` besides the parameters of its method."""


@dataclass(frozen=True)
class MethodGrid:
    """All settings at which one entry of ``[[methods]]`` runs its method."""

    method: Method
    # Values of the parameters that vary, and of the method's hyperparameters
    dims: dict[str, list[Any]]
    # Cartesian product of `dims`, the last dimension running fastest.  Of a space: its corners
    points: tuple[SolverParams, ...]
    space: Space | None = None  # space in which a search looks for settings, in place of the grid
    # Key of the method whose solutions give C, which the points then lack; empty for none
    source: str = ""
    # True for ``C = "path"``: each solver starts from the solution at the last C, if it can
    is_path: bool = False

    @property
    def is_open(self) -> bool:
        """True if records of other runs decide on settings."""
        return self.space is not None or bool(self.source)

    @property
    def run_parameters(self) -> list[str]:
        """Parameters of which every run has a value of its own, and which are no dims."""
        if self.source:
            return [LINKED]
        varied = () if self.space is None else (*self.method.hyperparameters, *self.space.names)
        return [name for name in dict.fromkeys(varied) if name not in self.dims]

    @cached_property
    def settings(self) -> tuple[dict[str, Any], ...]:
        """The points as plain values, see :func:`mkldist.solvers.solver_params.plain_settings`."""
        return tuple(plain_settings(point) for point in self.points)

    def plain_settings_at(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plain settings of a point of the space, `values` besides its fixed ones."""
        fixed = {} if self.space is None else self.space.fixed
        params = validate(self.method.params, self.method.name, {**fixed, **values})
        return plain_settings(params)


def _check_number(series: Collection[Sequence[Any]], where: str) -> None:
    """Refuse more points of a grid than memory holds."""
    check_fits(math.prod(map(len, series)), POINT_BYTES, where, "settings", "Give fewer values")


TableT = TypeVar("TableT", bound=BaseModel)


def _read(model: type[TableT], where: str, table: dict[str, Any]) -> TableT:
    """Return a table that stands for values of a parameter."""
    try:
        return model.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join([where, *map(str, first["loc"])])
        raise spec_error(first, place, model) from None


def expand(
    method: Method, where: str, settings: Mapping[str, Any], tol: float | None
) -> MethodGrid:
    """Return the grid of a method's settings, the entry `where` of a sweep file.

    `settings` has by parameter a value, a list of values, or a table that stands for a series of
    numbers; `tol` is the tolerance where they name none.  A SpecError tells of an empty list, a
    value given twice, or values that the method does not take.
    """
    given = dict(settings)
    if tol is not None:
        given.setdefault("tol", tol)
    check_names(method.params, where, given, ENTRY_KEYS)
    series = _varying(where, given)
    names = [name for name in method.hyperparameters if name in series]
    names += [name for name in series if name not in names]
    _check_number(series.values(), where)
    points = tuple(
        validate(method.params, where, given | dict(zip(names, values, strict=True)))
        for values in itertools.product(*(series[name] for name in names))
    )
    check_effect(
        where,
        given | series,
        points,
        "Give the others an entry of [[methods]] with a label of its own",
    )
    plain = [point.model_dump() for point in points]
    dims = {
        name: list(dict.fromkeys(values[name] for values in plain))
        for name in dict.fromkeys((*method.hyperparameters, *names))
    }
    for name in names:
        if len(dims[name]) < len(series[name]):
            raise SpecError(f"{where}.{name}", spelled(series[name]), "every value once")
    return MethodGrid(method, dims, points, is_path=settings.get(LINKED) == PATH)


def searched(
    method: Method, where: str, settings: Mapping[str, Any], tol: float | None
) -> MethodGrid:
    """Return the space of a method's settings, some of which are distributions.

    Lists and series of numbers are choices there.  A SpecError tells of a distribution that is not
    well-formed, and of values that the method does not take.
    """
    given = dict(settings)
    if tol is not None:
        given.setdefault("tol", tol)
    check_names(method.params, where, given, ENTRY_KEYS)
    fields = method.params.model_fields
    spans = {
        name: Span.of(_read(Distribution, f"{where}.{name}", value), fields[name].annotation)
        for name, value in given.items()
        if is_distribution(value)
    }
    rest = {name: value for name, value in given.items() if name not in spans}
    choices = _varying(where, rest)
    for name, values in choices.items():
        if len(set(map(repr, values))) < len(values):
            raise SpecError(f"{where}.{name}", spelled(values), "every value once")
    fixed = {name: value for name, value in rest.items() if name not in choices}
    ends = {**{name: span.ends for name, span in spans.items()}, **choices}
    _check_number(ends.values(), where)
    points = tuple(
        validate(method.params, where, {**fixed, **dict(zip(ends, values, strict=True))})
        for values in itertools.product(*ends.values())
    )
    check_effect(where, {**fixed, **ends}, points, "Give it an entry of [[methods]] of its own")
    return MethodGrid(method, {}, points, Space(spans, choices, fixed))


def taking_C(
    method: Method,
    where: str,
    settings: Mapping[str, Any],
    tol: float | None,
    source: str,
    of_source: MethodGrid,
) -> MethodGrid:
    """Return the grid of a method whose C the method of key `source` gives; its dims are both's."""
    others = {name: value for name, value in settings.items() if name != LINKED}
    own = expand(method, where, others, tol)
    dims = {f"{SOURCE_PREFIX}{name}": values for name, values in of_source.dims.items()}
    dims |= {name: values for name, values in own.dims.items() if name != LINKED}
    return MethodGrid(method, dims, own.points, source=source)


def _varying(where: str, given: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the lists of values by parameter, tables and ``C = "path"`` replaced by numbers."""
    found: dict[str, list[Any]] = {}
    for name, value in given.items():
        if isinstance(value, dict):
            values: Any = list(_read(Range, f"{where}.{name}", value).values())
        elif name == LINKED and value == PATH:
            values = list(PATH_OF_C)
        elif name == LINKED and isinstance(value, str):
            expected = 'a number, a list or series of numbers, or "path"'
            raise SpecError(f"{where}.{name}", spelled(value), expected)
        else:
            values = value
        if not isinstance(values, list):
            continue
        if not values:
            raise SpecError(f"{where}.{name}", "an empty list", "at least one value")
        found[name] = values
    return found
