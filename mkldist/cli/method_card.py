"""Description of a method for ``mkldist show``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from mkldist.solvers.base import Method
    from mkldist.solvers.solver_params import SolverParams

WIDTH = 80
_INDENT = 15
_COLUMN = 30
_GLUE = "\0"  # stands for a blank at which no line may break


def method_card(method: Method) -> Iterator[str]:
    """Yield the lines that describe a method, on one screen of 80 columns.

    Parameters
    ----------
    method : Method
        The method.
    """
    from mkldist.solvers.solver_params import SolverParams

    yield from _entry("problem", method.problem)
    yield from _entry("loss", method.loss)
    yield from _entry("regularizer", method.regularizer)
    yield from _entry("labels", _labels(method.params))
    if method.needs_laplacian:
        yield from _entry("graph", "needs its Laplacian")
    if method.joint_classes:
        yield from _entry("classes", 'may share weights: kernel_weights = "shared"')
    if method.weighs_points:
        yield from _entry("points", "may have weights, which multiply C")
    yield from _entry("reference", method.reference)
    fields = method.params.model_fields
    common = [name for name in SolverParams.model_fields if name in fields]
    own = [name for name in fields if name not in common]
    first = [name for name in method.hyperparameters if name in fields]
    if first:
        yield from _entry("parameters", f"* is a dimension of the results: {', '.join(first)}")
    for name in (*first, *(name for name in own if name not in first)):
        yield from _parameter(name, fields[name], marked=name in first)
    for name in common:
        yield from _parameter(name, fields[name], marked=False)


def _parameter(name: str, field: FieldInfo, *, marked: bool) -> Iterator[str]:
    from mkldist.solvers.targets import choices

    head = f"  {'*' if marked else ' '} {name} = {_default(field)}"
    text, words = field.description or "", choices(field.annotation)
    if not all(word in text for word in words):
        text += f" ({', '.join(words)})"
    bounds = _bounds(field)
    if bounds:
        text += f" ({bounds})"
    lines = [line.replace(_GLUE, " ") for line in textwrap.wrap(text, WIDTH - _COLUMN)]
    if len(head) < _COLUMN:
        yield f"{head:{_COLUMN}}{lines.pop(0) if lines else ''}".rstrip()
    else:
        yield head
    for line in lines:
        yield " " * _COLUMN + line


def _bounds(field: FieldInfo) -> str:
    """Return the bounds of a number."""
    signs = (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
    given = {
        name: getattr(limit, name)
        for limit in field.metadata
        for name, _ in signs
        if hasattr(limit, name)
    }
    return ", ".join(f"{sign}{_GLUE}{given[name]:g}" for name, sign in signs if name in given)


def _entry(name: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"  {name:{_INDENT - 2}}",
        subsequent_indent=" " * _INDENT,
        break_on_hyphens=False,
    )


def _labels(params: type[SolverParams]) -> str:
    """Return the kinds of labels that a method learns, with the losses for each."""
    from mkldist.solvers.targets import losses_by_target
    from mkldist.target import LEARNT

    parts = []
    for target, losses in losses_by_target(params).items():
        parts.append(LEARNT[target] + (f" ({', '.join(losses)})" if losses else ""))
    return "; ".join(parts)


def _default(field: FieldInfo) -> str:
    """Return a default as a sweep file spells it."""
    from mkldist.spec.values import spelled

    return "..." if field.is_required() else spelled(field.get_default(call_default_factory=True))
