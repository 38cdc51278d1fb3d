"""Labels that each method learns, by the losses that decide it."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from mkldist.core.arrays import Target
from mkldist.solvers.base import Method
from mkldist.solvers.solver_params import SolverParams


def losses_by_target(params: type[SolverParams]) -> dict[Target, list[str]]:
    """Return the kinds of labels that a method learns, each with the losses that learn it.

    Parameters
    ----------
    params : type
        The method's parameter class.  Its parameter ``loss`` decides, if it has one that chooses
        among several values.

    Returns
    -------
    dict of Target to list of str
        Values of ``loss`` for each kind; an empty list where there is nothing to choose.

    Examples
    --------
    >>> from mkldist.methods.level import METHOD
    >>> losses_by_target(METHOD.params)
    {<Target.CLASSES: 'classes'>: []}
    """
    default = params.model_construct()
    field = params.model_fields.get("loss")
    losses = [] if field is None else choices(field.annotation)
    if not losses:
        return {default.target: []}
    found: dict[Target, list[str]] = {}
    for loss in losses:
        target = default.model_copy(update={"loss": loss}).target
        found.setdefault(target, []).append(loss)
    return found


def learns_unlabelled(method: Method) -> bool:
    """Return True if a method also learns from points without a label."""
    return Target.PARTIAL in losses_by_target(method.params)


def choices(annotation: Any) -> list[str]:
    """Return the texts in the ``Literal`` of a parameter's annotation; none if it has none."""
    if get_origin(annotation) is Literal:
        return [word for word in get_args(annotation) if isinstance(word, str)]
    return [word for part in get_args(annotation) for word in choices(part)]
