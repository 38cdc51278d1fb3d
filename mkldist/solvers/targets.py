"""Which labels a method learns, and by which of its losses."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from mkldist.solvers.base import Method, SolverParams
from mkldist.target import Target

LEARNT = {
    Target.CLASSES: "two classes",
    Target.VALUES: "real values",
    Target.ONE_CLASS: "one class",
    Target.PARTIAL: "two classes from partly labelled points",
}
"""What a method learns, in words."""


def losses_by_target(params: type[SolverParams]) -> dict[Target, list[str]]:
    """Return what a method's labels may be, with the losses that decide it.

    Parameters
    ----------
    params : type
        The method's parameter class; a parameter ``loss`` of several values decides, if there is
        one.

    Returns
    -------
    dict of Target to list of str
        The values of ``loss`` for each; an empty list where there is nothing to choose.

    Examples
    --------
    >>> from mkldist.methods.wrapper.level import METHOD
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
    """Return whether a method is given points without a label besides the labelled ones."""
    return Target.PARTIAL in losses_by_target(method.params)


def choices(annotation: Any) -> list[str]:
    """Return the texts among which the annotation of a parameter chooses; none if it does not."""
    if get_origin(annotation) is Literal:
        return [word for word in get_args(annotation) if isinstance(word, str)]
    return [word for part in get_args(annotation) for word in choices(part)]
