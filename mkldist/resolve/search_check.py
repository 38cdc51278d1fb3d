"""Check that a search has something to draw and something to compare by, and lay out its rungs."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from mkldist.errors import SpecError
from mkldist.solvers.parameters import MethodGrid
from mkldist.spec.model import MethodSpec, SweepSpec
from mkldist.spec.search import SearchSpec, is_distribution
from mkldist.spec.trial import TRIAL

LOOSEST = 0.3  # tolerance of the first rung by default
DIGITS = 3  # of a level between the first and the last
EXAMPLE = '{ low = 0.01, high = 1000, scale = "log" }'


def check_search(spec: SweepSpec) -> None:
    """Refuse a search that cannot be done, and distributions without a search.

    Raises
    ------
    mkldist.errors.SpecError
        For a distribution without ``[search]``; for ``[search]`` without a distribution, without
        ``[selection]``, or adaptive without Optuna.
    """
    places = [
        f"{where}.{name}"
        for entry in spec.methods
        for where, settings in _tables(entry).items()
        for name, value in settings.items()
        if is_distribution(value)
    ]
    if spec.search is None:
        if places:
            raise SpecError(
                places[0],
                "a distribution without [search]",
                "a value, a list or a series such as { start = 1, stop = 100, num = 3 }",
                'Add [search] with kind = "random" and trials, and [selection]',
            )
        return
    if not places:
        raise SpecError(
            "search",
            "no parameter with a distribution",
            f"a method with one, such as C = {EXAMPLE}",
            "Remove [search] to run all settings of the lists",
        )
    if spec.inner_folds is None:
        raise SpecError(
            "search",
            "[search] without inner folds",
            "[selection], whose inner folds give the scores that a search compares; "
            "test labels never do",
            "Add [selection]; an empty one has 5 folds",
        )
    if spec.search.kind == "adaptive" and find_spec("optuna") is None:
        raise SpecError(
            "search.kind",
            '"adaptive" without Optuna',
            "the package optuna",
            "pip install 'mkldist[search]' installs it; kind = \"random\" needs no package",
        )


def _tables(entry: MethodSpec) -> dict[str, dict[str, Any]]:
    """Return the tables of parameters of an entry, its own and those on data sets, by place."""
    where = f"methods.{entry.key}"
    return {where: entry.settings} | {f"{where}.on.{name}": own for name, own in entry.on.items()}


def with_dims(grid: MethodGrid, search: SearchSpec, where: str) -> MethodGrid:
    """Return the space of a method with the dims that its trials have in the results.

    Parameters
    ----------
    grid : MethodGrid
        The space.
    search : SearchSpec
        The search.
    where : str
        Place of the method in the sweep file, for messages.

    Raises
    ------
    mkldist.errors.SpecError
        If the rungs and the method both vary the tolerance, or the first rung's is not looser.
    """
    dims: dict[str, list[object]] = {TRIAL: list(range(search.trials))}
    if search.rung_dim == "tol":
        if grid.space is not None and "tol" in grid.space.names:
            raise SpecError(
                f"{where}.tol",
                "several tolerances, which the rungs of [search] vary too",
                "one, that of the last rung",
                'Remove it, or set resource = "training-size" under [search]',
            )
        dims["tol"] = list(_tolerances(search, where, grid.points[0].tol))
    elif search.rung_dim is not None:
        dims[search.rung_dim] = [*smaller_shares(search), 1.0]
    return replace(grid, dims=dims)


def smaller_shares(search: SearchSpec | None) -> list[float]:
    """Return the shares of the training rows on all rungs of a search but the last; often none.

    Examples
    --------
    >>> smaller_shares(SearchSpec(kind="halving", trials=9, resource="training-size"))
    [0.111, 0.333]
    """
    if search is None or search.rung_dim != "training_fraction":
        return []
    return _levels(search.first or float(search.factor) ** (1 - search.rungs), 1.0, search.rungs)


def n_asked(n_splits: int, search: SearchSpec | None) -> int:
    """Return how many of the splits of a data set, the first ones, the sweep asks for.

    The others repeat them with fewer training rows.

    Examples
    --------
    >>> n_asked(6, SearchSpec(kind="halving", trials=9, resource="training-size"))
    2
    """
    return n_splits // (1 + len(smaller_shares(search)))


def _tolerances(search: SearchSpec, where: str, tol: float) -> list[float]:
    """Return the tolerances of the rungs, down to that of the method."""
    first = search.first or LOOSEST
    if first <= tol:
        raise SpecError(
            "search.first",
            f"{first:g}" if search.first else f"{first:g} by default",
            f"a tolerance above {tol:g}, that of {where}",
            "Set first, or a smaller tol",
        )
    return [*_levels(first, tol, search.rungs), tol]


def _levels(first: float, last: float, rungs: int) -> list[float]:
    """Return the levels of all rungs but the last, in equal ratios."""
    return [float(f"{level:.{DIGITS}g}") for level in np.geomspace(first, last, rungs)[:-1]]
