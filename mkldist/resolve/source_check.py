"""Check that a method whose C another method gives can take it, and that the other can give it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mkldist.data.dataset import Dataset
from mkldist.errors import SpecError, nearest
from mkldist.methods.registry import METHODS
from mkldist.solvers.parameters import MethodGrid
from mkldist.solvers.solver_params import HingeParams
from mkldist.spec.model import MethodSpec, SweepSpec
from mkldist.spec.search import is_distribution
from mkldist.spec.source import FROM, GIVEN, is_from_method
from mkldist.spec.values import spelled

EXAMPLE = '{ from = "spicymkl" }'
GIVER = 'spicymkl with loss = "hinge" and regularizer = "block1"'


def check_taker(where: str, entry: MethodSpec, settings: Mapping[str, Any]) -> None:
    """Refuse values from another method where they cannot stand.

    Raises
    ------
    mkldist.errors.SpecError
        For another parameter than C, a method whose C means something else, a table of more keys,
        and a search of the other parameters.
    """
    for name, value in settings.items():
        if is_from_method(value) and name != GIVEN:
            raise SpecError(
                f"{where}.{name}", spelled(value), "a value", f"Another method may give {GIVEN}"
            )
    value, place = settings.get(GIVEN), f"{where}.{GIVEN}"
    if not is_from_method(value):
        _check_spelling(place, value)
        return
    if not issubclass(METHODS[entry.name].params, HingeParams):
        able = [name for name, method in METHODS.items() if issubclass(method.params, HingeParams)]
        raise SpecError(
            place,
            f"{spelled(value)} for {entry.name}",
            f"a method whose C weighs the hinge loss: {', '.join(able)}",
        )
    if value.keys() != {FROM} or not isinstance(value[FROM], str):
        raise SpecError(place, spelled(value), f"a table such as {EXAMPLE}")
    if any(map(is_distribution, settings.values())):
        raise SpecError(
            place,
            f"{spelled(value)} beside a distribution",
            "values or lists for the other parameters",
        )


def _check_spelling(place: str, value: object) -> None:
    """Refuse a table whose key is meant to be "from"."""
    for key in value if isinstance(value, dict) else ():
        if meant := nearest(key, [FROM]):
            raise SpecError(place, spelled(value), f"a table such as {EXAMPLE}", meant)


def source_entry(
    spec: SweepSpec, entry: MethodSpec, dataset: str, where: str, key: str
) -> MethodSpec:
    """Return the entry of the method that gives another its C.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    entry : MethodSpec
        The method that takes C.
    dataset : str
        Name of the data set; empty for none in particular.
    where : str
        Place of its C in the sweep file.
    key : str
        Label, or name, of the method that gives it.

    Raises
    ------
    mkldist.errors.SpecError
        If there is no such method, if its own C comes from another, or if it lacks a bank on which
        the other runs.
    """
    others = {method.key: method for method in spec.methods if method is not entry}
    if key not in others:
        raise SpecError(
            where,
            "its own method" if key == entry.key else f"the unknown method {key!r}",
            f"another of [[methods]]: {', '.join(others)}",
            nearest(key, others),
        )
    if is_from_method(others[key].settings_on(dataset).get(GIVEN)):
        raise SpecError(
            where, f"{key}, whose own C comes from a method", "a method with values of C"
        )
    for bank in spec.sized_banks:
        if entry.runs_on(bank) and not others[key].runs_on(bank):
            raise SpecError(
                where,
                f"{key}, which does not run on bank {bank.label!r} as {entry.key} does",
                "a method on the same banks",
                f"Add {bank.label!r} to the banks of {key}, or name the banks of {entry.key}",
            )
    return others[key]


def check_source(where: str, key: str, grid: MethodGrid) -> None:
    """Refuse a method whose solutions give no C.

    Parameters
    ----------
    where : str
        Place of the C that it is to give.
    key : str
        Its label, or name.
    grid : MethodGrid
        Its settings.

    Raises
    ------
    mkldist.errors.SpecError
        For a method whose settings are searched, or whose problem is not that of weights in the
        simplex with the hinge loss.
    """
    if grid.space is not None:
        raise SpecError(where, f"{key}, whose settings are searched", "a method with values of C")
    if not all(point.gives_C for point in grid.points):
        raise SpecError(where, f"{key}, whose solutions give no C", f"a {GIVER}, by its label")


def check_two_classes(grids: Mapping[str, MethodGrid], dataset: Dataset) -> None:
    """Refuse a C from another method for more than two classes, each of which would need its own.

    Parameters
    ----------
    grids : mapping of str to MethodGrid
        Settings of the methods on a data set, by their keys.
    dataset : Dataset
        The data set.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first method.
    """
    for key, grid in grids.items():
        if grid.source and dataset.multiclass:
            raise SpecError(
                f"methods.{key}.{GIVEN}",
                f"C from {grid.source} for the {len(dataset.multiclass)} classes of data set "
                f"{dataset.name!r}",
                "a data set of two classes",
                "Name two of them by classes = [...], or give values of C",
            )
