"""Make grids of the settings of a sweep's methods, on each of its data sets."""

from __future__ import annotations

from mkldist.errors import SpecError, nearest
from mkldist.methods.registry import METHODS
from mkldist.resolve.method_check import check_method
from mkldist.resolve.search_check import with_dims
from mkldist.resolve.source_check import check_source, check_taker, source_entry
from mkldist.solvers.parameters import ENTRY_KEYS, MethodGrid, expand, searched, taking_C
from mkldist.spec.foreign import meant
from mkldist.spec.model import MethodSpec, SweepSpec
from mkldist.spec.search import is_distribution
from mkldist.spec.source import FROM, GIVEN, is_from_method


def resolve_methods(spec: SweepSpec) -> dict[str, dict[str, MethodGrid]]:
    """Return the grid of every method, by data set and the method's key; no data are read.

    Data sets on which a method has no parameters of their own share its grid.

    Raises
    ------
    mkldist.errors.SpecError
        For unknown methods, parameters and data sets, and for values that a method does not take.
    """
    names = [dataset.name for dataset in spec.datasets]
    for entry in spec.methods:
        _check_names(entry, names)
        check_method(spec, f"methods.{entry.key}", entry)
    grids: dict[str, dict[str, MethodGrid]] = {name: {} for name in names}
    for entry in spec.methods:
        everywhere = _grid(spec, entry)
        for name in names:
            differs = name in entry.on or everywhere.source
            grids[name][entry.key] = _grid(spec, entry, name) if differs else everywhere
    return grids


def _check_names(entry: MethodSpec, datasets: list[str]) -> None:
    """Refuse an unknown method, unknown data sets, and what differs on no single data set."""
    where = f"methods.{entry.key}"
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
            if key in ("name", *ENTRY_KEYS):
                raise SpecError(
                    f"{where}.on.{name}.{key}",
                    "a key of the whole entry",
                    f"parameters of {entry.name}",
                    f"Move it above, out of on.{name}",
                )


def _grid(spec: SweepSpec, entry: MethodSpec, dataset: str = "") -> MethodGrid:
    """Return the settings of a method on a data set, or those that hold where it has no table."""
    where = f"methods.{entry.key}.on.{dataset}" if dataset in entry.on else f"methods.{entry.key}"
    method, settings = METHODS[entry.name], entry.settings_on(dataset)
    check_taker(where, entry, settings)
    if is_from_method(given := settings.get(GIVEN)):
        place, key = f"{where}.{GIVEN}", given[FROM]
        of_source = _grid(spec, source_entry(spec, entry, dataset, place, key), dataset)
        check_source(place, key, of_source)
        return taking_C(method, where, settings, spec.tol, key, of_source)
    if not any(map(is_distribution, settings.values())):
        return expand(method, where, settings, spec.tol)
    space = searched(method, where, settings, spec.tol)
    return with_dims(space, spec.search, where) if spec.search else space
