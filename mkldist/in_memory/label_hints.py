"""What to do about labels that a method does not learn."""

from __future__ import annotations

from collections.abc import Sequence

from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Method
from mkldist.solvers.refusals import one_of
from mkldist.solvers.targets import learns_unlabelled, losses_by_target
from mkldist.target import Target

FEW = 20  # whole numbers: as many may be classes


def label_hint(method: Method, distinct: Sequence[float], target: Target) -> str:
    """Return what to do about labels, "" where that is not known.

    Parameters
    ----------
    method : Method
        The method, which refused them.
    distinct : sequence of float
        The distinct labels, in order.
    target : Target
        What the method learns with its settings.

    Examples
    --------
    >>> label_hint(METHODS["level"], [0.0, 1.0], Target.CLASSES)
    'Write np.where(y == 1, 1, -1)'
    >>> label_hint(METHODS["spicymkl"], [0.3, 0.5, 2.1], Target.CLASSES)
    'For real values, set loss="squared"'
    """
    if target not in (Target.CLASSES, Target.PARTIAL) or len(distinct) < 2:
        return ""
    if len(distinct) == 2:
        return f"Write np.where(y == {distinct[1]:g}, 1, -1)"
    if set(distinct) == {-1.0, 0.0, 1.0}:
        able = [name for name, other in METHODS.items() if learns_unlabelled(other)]
        return f"If 0 marks points without a label, call {one_of(able)}"
    if all(label.is_integer() for label in distinct) and len(distinct) <= FEW:
        one = f"y == {distinct[-1]:g}"
        return f"Call it for each class, as by np.where({one}, 1, -1); {_for_values(method)}"
    hint = _for_values(method)
    return f"{hint[0].upper()}{hint[1:]}"


def _for_values(method: Method) -> str:
    """Return which method, or which loss of this one, learns real values."""
    own = losses_by_target(method.params).get(Target.VALUES)
    if own:
        return f'for real values, set loss="{own[0]}"'
    able = {name: losses_by_target(other.params) for name, other in METHODS.items()}
    names = [name for name, losses in able.items() if Target.VALUES in losses]
    return f'for real values, call {one_of(names)} with loss="{able[names[0]][Target.VALUES][0]}"'
