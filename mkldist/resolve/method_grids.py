"""Make grids of the settings of a sweep's methods, on each of its data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mkldist.errors import SpecError, nearest
from mkldist.methods.registry import METHODS
from mkldist.resolve.method_check import check_method
from mkldist.resolve.search_check import with_dims
from mkldist.solvers.parameters import ENTRY_KEYS, MethodGrid, expand, searched
from mkldist.spec.foreign import meant
from mkldist.spec.model import MethodSpec, SweepSpec
from mkldist.spec.search import is_distribution


def resolve_methods(spec: SweepSpec) -> dict[str, dict[str, MethodGrid]]:
    """Return the grid of every method, by data set and the method's key; no data are read.

    Data sets on which a method has no parameters of their own share its grid.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.

    Raises
    ------
    mkldist.errors.SpecError
        For unknown methods, parameters and data sets, and for values that a method does not take.
    """
    names = [dataset.name for dataset in spec.datasets]
    grids: dict[str, dict[str, MethodGrid]] = {name: {} for name in names}
    for entry in spec.methods:
        where = f"methods.{entry.key}"
        _check_names(entry, where, names)
        check_method(spec, where, entry)
        everywhere = _grid(spec, entry, where, entry.settings)
        for name in names:
            grids[name][entry.key] = everywhere
            if name in entry.on:
                place, settings = f"{where}.on.{name}", entry.settings_on(name)
                grids[name][entry.key] = _grid(spec, entry, place, settings)
    return grids


def _check_names(entry: MethodSpec, where: str, datasets: list[str]) -> None:
    """Refuse an unknown method, unknown data sets, and what differs on no single data set."""
    if entry.name not in METHODS:
        raise SpecError(
            f"{where}.name",
            f"the unknown method {entry.name!r}",
            f"one of {', '.join(METHODS)}",
            nearest(entry.name, METHODS) or meant(entry.name),
        )
    for name, own in entry.on.items():
        if name not in datasets:
            raise SpecError(
                f"{where}.on.{name}",
                f"the unknown data set {name!r}",
                f"names of [[datasets]]: {', '.join(datasets)}",
                nearest(name, datasets),
            )
        for key in own:
            if key in ENTRY_KEYS:
                raise SpecError(
                    f"{where}.on.{name}.{key}",
                    "a key of the whole entry",
                    f"parameters of {entry.name}",
                    f"Move it above, out of on.{name}",
                )


def _grid(
    spec: SweepSpec, entry: MethodSpec, where: str, settings: Mapping[str, Any]
) -> MethodGrid:
    """Return the grid of some settings of a method, or the space of its trials."""
    is_searched = any(map(is_distribution, settings.values()))
    made = (searched if is_searched else expand)(METHODS[entry.name], where, settings, spec.tol)
    return with_dims(made, spec.search, where) if spec.search and is_searched else made
