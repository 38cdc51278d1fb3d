"""Values of a method's parameters, validated one by one and for their effect.

The models of sweep files, whose words the messages need, are imported where there is a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from mkldist.errors import SpecError
from mkldist.solvers.solver_params import SolverParams
from mkldist.spec.values import spelled


def check_names(
    params: type[SolverParams], where: str, names: Iterable[str], others: Sequence[str] = ()
) -> None:
    """Refuse names that are neither parameters nor among `others`."""
    for name in names:
        if name not in params.model_fields:
            from mkldist.spec.mistakes import unknown_key

            known = [*params.model_fields, *others]
            raise unknown_key(f"{where}.{name}", "parameter", name, known)


def validate(params: type[SolverParams], where: str, values: Mapping[str, Any]) -> SolverParams:
    """Return `values` as the parameters of a method.

    Parameters
    ----------
    params : type
        The method's parameter class.
    where : str
        Place of the values, for messages.
    values : mapping
        Values by name.

    Raises
    ------
    mkldist.errors.SpecError
        For an unknown name, a wrong type or a value out of range.
    """
    check_names(params, where, values)
    try:
        return params.model_validate(dict(values), strict=True)
    except ValidationError as error:
        from mkldist.spec.mistakes import expected, spec_error

        first = error.errors()[0]
        place = ".".join([where, *(str(part) for part in first["loc"][:1])])
        if first["type"] in ("value_error", "literal_error"):
            raise spec_error(first, place, params) from None
        raise SpecError(place, spelled(first["input"]), expected(first)) from None


def check_effect(
    where: str, given: Mapping[str, Any], points: Sequence[SolverParams], hint: str = ""
) -> None:
    """Refuse parameters that were given but have no effect.

    A parameter of one value must have an effect at one point of a grid at least.  A parameter
    that varies must have one at every point, because runs would be repeated at the others.

    Parameters
    ----------
    where : str
        Place of the parameters, for messages.
    given : mapping
        Values or lists of values by name, as the user gave them.
    points : sequence of SolverParams
        All settings made of them.
    hint : str, optional
        Advice for a parameter that has an effect at some points only.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first parameter without effect, and the value that takes its effect away.
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
            f"{name} with {other} = {found}, where it has no effect",
            f"{other} = {' or '.join(map(spelled, values))}, or no {name}",
            hint if len(idle) < len(points) else "",
        )
