"""All methods by name.  To add one: a file with a ``METHOD``, and its line here."""

from __future__ import annotations

from mkldist.solvers import best_single, level, majority, simplemkl, uniform
from mkldist.solvers.base import Method

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        level.METHOD,
        simplemkl.METHOD,
        uniform.METHOD,
        best_single.METHOD,
        majority.METHOD,
    )
}
