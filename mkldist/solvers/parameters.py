"""Parameters of methods: from what a user wrote to validated values and grids of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from mkldist.errors import SpecError
from mkldist.solvers.base import Method, SolverParams
from mkldist.spec.banks import Range
from mkldist.spec.mistakes import expected, spec_error, unknown_key
from mkldist.spec.model import MethodSpec
from mkldist.spec.values import spelled

ENTRY_KEYS = [key for key in MethodSpec.model_fields if key != "name"]
"""What an entry of ``[[methods]]`` may say besides the parameters of its method."""


@dataclass(frozen=True)
class MethodGrid:
    """Every setting that one entry of ``[[methods]]`` asks for.

    Parameters
    ----------
    method : str
        Name in the registry.
    dims : dict of str to list
        Values of the parameters that vary, or that are the method's hyperparameters.
    points : tuple of SolverParams
        The Cartesian product, the last dimension running fastest.
    """

    method: str
    dims: dict[str, list[Any]]
    points: tuple[SolverParams, ...]


def _series(where: str, table: dict[str, Any]) -> list[float]:
    """Return the numbers of ``{start, stop, num[, scale]}`` or ``{base, exponents}``."""
    try:
        return list(Range.model_validate(table).values())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join([where, *map(str, first["loc"])])
        raise spec_error(first, place, Range) from None


def _check_names(
    params: type[SolverParams], where: str, names: Iterable[str], others: Sequence[str] = ()
) -> None:
    """Refuse names that are no parameters, naming `others` that may stand there too."""
    for name in names:
        if name not in params.model_fields:
            known = [*params.model_fields, *others]
            raise unknown_key(f"{where}.{name}", "parameter", name, known)


def validate(params: type[SolverParams], where: str, values: Mapping[str, Any]) -> SolverParams:
    """Return `values` as the parameters of a method.

    Parameters
    ----------
    params : type
        The method's parameter class.
    where : str
        What the values belong to, for messages.
    values : mapping
        Values by name.

    Raises
    ------
    mkldist.errors.SpecError
        For an unknown name, a wrong type or a value out of range.
    """
    _check_names(params, where, values)
    try:
        return params.model_validate(dict(values), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join([where, *(str(part) for part in first["loc"][:1])])
        if first["type"] in ("value_error", "literal_error"):
            raise spec_error(first, place, params) from None
        raise SpecError(place, f"found {spelled(first['input'])}", expected(first)) from None


def check_effect(
    where: str, given: Mapping[str, Any], points: Sequence[SolverParams], hint: str = ""
) -> None:
    """Refuse parameters that were given but change nothing.

    A parameter of one value has to matter at some point of a grid; one that varies at every
    point, because runs would be done twice where it does not.

    Parameters
    ----------
    where : str
        What the parameters belong to, for messages.
    given : mapping
        Values or lists of values by name, as the user gave them.
    points : sequence of SolverParams
        All settings made of them.
    hint : str, optional
        What to do about a parameter that matters at some points only.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first parameter without effect, and the value that leaves it without.
    """
    for name, value in given.items():
        idle = [point for point in points if not point.has_effect(name)]
        varies = isinstance(value, list) and len(value) > 1
        if not idle or (len(idle) < len(points) and not varies):
            continue
        other, values = idle[0].effective_with[name]
        found = spelled(getattr(idle[0], other))
        raise SpecError(
            f"{where}.{name}",
            f"{name} has no effect with {other} = {found}",
            f"{other} = {' or '.join(map(spelled, values))}, or no {name}",
            hint if len(idle) < len(points) else "",
        )


def expand(
    method: Method, where: str, settings: Mapping[str, Any], tol: float | None
) -> MethodGrid:
    """Return the grid of a method's settings.

    Parameters
    ----------
    method : Method
        The method.
    where : str
        Its place in the sweep file, for messages.
    settings : mapping
        Values, lists of values, or tables that stand for a series of numbers, by parameter.
    tol : float or None
        Tolerance where `settings` name none.

    Raises
    ------
    mkldist.errors.SpecError
        For an empty list, a value given twice, or values that the method does not take.
    """
    given = dict(settings)
    if tol is not None:
        given.setdefault("tol", tol)
    _check_names(method.params, where, given, ENTRY_KEYS)
    dims: dict[str, list[Any]] = {}
    for name, value in given.items():
        if isinstance(value, dict):
            value = _series(f"{where}.{name}", value)
        if not isinstance(value, list):
            continue
        if not value:
            raise SpecError(f"{where}.{name}", "found an empty list", "at least one value")
        for one in value:
            validate(method.params, where, {name: one})
        dims[name] = value
    fixed = {name: value for name, value in given.items() if name not in dims}
    first = validate(method.params, where, fixed | {name: v[0] for name, v in dims.items()})
    for name in method.hyperparameters:
        dims.setdefault(name, [getattr(first, name)])
    ordered = {name: dims[name] for name in (*method.hyperparameters, *dims) if name in dims}
    points = tuple(
        validate(method.params, where, fixed | dict(zip(ordered, values, strict=True)))
        for values in itertools.product(*ordered.values())
    )
    check_effect(
        where,
        given | dims,
        points,
        "Give the others an entry of [[methods]] with a label of its own",
    )
    values_of = {name: [getattr(p, name) for p in points] for name in ordered}
    for name, series in ordered.items():
        distinct = list(dict.fromkeys(values_of[name]))
        if len(distinct) < len(series):
            raise SpecError(f"{where}.{name}", f"found {spelled(series)}", "every value once")
        ordered[name] = distinct
    return MethodGrid(method.name, ordered, points)
