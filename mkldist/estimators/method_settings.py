"""Parameters of an estimator's method, checked against what the estimator learns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from mkldist.errors import SpecError
from mkldist.in_memory.solve import known_method
from mkldist.methods.registry import METHODS, methods_for
from mkldist.solvers.base import Method
from mkldist.solvers.refusals import LEARNS_CLASSES_APART, ProblemFacts, one_of
from mkldist.solvers.targets import losses_by_target
from mkldist.solvers.validation import validate
from mkldist.target import LEARNT, Target


def method_settings(
    name: str, target: Target, tol: float, params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the parameters with which :func:`mkldist.solve` is called.

    Where the method has several losses and none is named, it gets the first that learns `target`,
    its default one if that does.

    Parameters
    ----------
    name : str
        The method.
    target : Target
        What the estimator learns.
    tol : float
        Relative duality gap.
    params : mapping, optional
        The user's parameters, which may also set another tolerance.

    Raises
    ------
    mkldist.errors.SpecError
        For an unknown method, one that learns something else, and parameters that are no mapping.
    """
    method = known_method(name)
    losses = losses_by_target(method.params)
    if target not in losses:
        able = [other for other, one in METHODS.items() if target in losses_by_target(one.params)]
        learnt = " or ".join(LEARNT[one] for one in losses)
        found = f"{name!r}, which learns {learnt}"
        raise SpecError("method", found, f"a method that learns {LEARNT[target]}: {one_of(able)}")
    if params is not None and not isinstance(params, Mapping):
        found = f"{params!r:.60}"
        raise SpecError("method_params", found, 'parameters by name, such as {"max_iter": 100}')
    given = {"tol": tol, **(params or {})}
    if not given.keys() <= method.params.model_fields.keys():
        validate(method.params, name, given)  # which refuses them by name
    if losses[target] and "loss" not in given:
        default = method.params.model_fields["loss"].default
        given["loss"] = default if default in losses[target] else losses[target][0]
    return given


def check_shares_weights(name: str) -> None:
    """Refuse a method whose classes cannot share kernel weights.

    Raises
    ------
    mkldist.errors.SpecError
        Naming those whose classes can.
    """
    if METHODS[name].joint_classes:
        return
    able = methods_for(ProblemFacts(laplacian=False, shared_weights=True))
    found = f"True for {name}, which {LEARNS_CLASSES_APART.reason}"
    raise SpecError("shared_weights", found, f"False, or one of the methods {one_of(able)}")


def regularised(method: Method, alpha: float, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the strength of the regulariser, unless they name one.

    A regulariser that has its own strength takes only the default, 1.

    Parameters
    ----------
    method : Method
        A method whose first hyperparameter is that strength: ``lam``, ``gamma_a``, or the ``C`` of
        block norms.
    alpha : float
        The strength.
    settings : mapping
        The other parameters.
    """
    name = method.hyperparameters[0]
    if alpha == 1.0 and _is_idle(method, name, settings):
        return dict(settings)
    return {name: float(alpha), **settings}


def _is_idle(method: Method, name: str, settings: Mapping[str, Any]) -> bool:
    """Return True if a parameter has no effect beside others, as C beside a regulariser's own."""
    other, values = method.params.effective_with.get(name, ("", ()))
    fields = method.params.model_fields
    return bool(other) and settings.get(other, fields[other].default) not in values


def positive(name: str, value: Any, *, or_zero: bool = False) -> float:
    """Return a parameter that is to be a finite number above 0, or 0 too where that is allowed.

    Raises
    ------
    mkldist.errors.SpecError
        For text, such as ``"1"``, and other values; by the name of the parameter.
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if math.isfinite(number) and (number > 0.0 or (or_zero and number == 0.0)):
        return number
    finite = "finite " if math.isinf(number) else ""
    expected = f"a {finite}number {'of at least' if or_zero else 'above'} 0"
    raise SpecError(name, f"{value!r:.60}", expected, _without_quotes(value))


def _without_quotes(value: Any) -> str:
    """Return the remedy for the text of a number, "" for anything else."""
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return ""
    return f"Give the number {value.strip()} without quotes" if math.isfinite(number) else ""


def with_penalty(method: Method, C: float, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with C, where a method without use for C takes only the default, 1.

    Parameters
    ----------
    method : Method
        The method.
    C : float
        The estimator's C; a C among the settings goes before it.
    settings : mapping
        The other parameters.

    Raises
    ------
    mkldist.errors.SpecError
        For a C that is no number above 0, and for another C than 1 where the method has none.
    """
    number = positive("C", C)
    has_C = "C" in method.params.model_fields
    if number == 1.0 and (not has_C or _is_idle(method, "C", settings)):
        return dict(settings)
    if has_C:
        return {"C": number, **settings}
    own = ", ".join(method.hyperparameters) or "none of its own"
    raise SpecError(
        "C",
        f"{C!r} for {method.name}, which has no C",
        "C=1.0, its default",
        f"Set the parameters of {method.name} by method_params: {own}",
    )
