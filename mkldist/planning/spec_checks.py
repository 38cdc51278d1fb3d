"""Checks that read no data: the grids of a sweep's methods, its search, and code of the user.

A method says itself what it refuses (:meth:`mkldist.solvers.base.Method.refuses`).  The checks
state the facts of the sweep file, ask, and name the place of the mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.errors import SpecError, nearest
from mkldist.kernel_functions.custom import search_first
from mkldist.methods.components import imported_by
from mkldist.methods.registry import METHODS, methods_for
from mkldist.solvers.base import ProblemFacts, one_of
from mkldist.solvers.grids import ENTRY_KEYS, MethodGrid, expand, searched, taking_C
from mkldist.solvers.solver_params import HingeParams
from mkldist.spec.kinds import LINKED, TRIAL, spelled
from mkldist.spec.model import (
    FROM,
    MethodSpec,
    SearchSpec,
    SweepSpec,
    is_distribution,
    is_from_method,
)


def check_code(spec: SweepSpec, folder: Path, *, allowed: bool) -> str:
    """Let the user's functions be imported from the folder of a sweep file, if that is allowed.

    Returns the folder, absolute; an empty text if the sweep has no such function.
    """
    functions = ((f"{place}.function", function) for place, function in code_of(spec))
    found = [*functions, *_code_of_methods(spec)]
    check_allowed(found, allowed=allowed)
    if not found:
        return ""
    search_first(str(folder.absolute()))
    return str(folder.absolute())


def check_allowed(code: Iterable[tuple[str, str]], *, allowed: bool) -> None:
    """Refuse the first of some places and names of code, unless code is allowed."""
    for place, function in code:
        if not allowed:
            raise SpecError(
                place,
                f"{function!r}, code that would run on this machine and on all workers",
                "what mkldist has, or --allow-code",
                "Repeat the command with --allow-code if you trust this code",
            )


def code_of(spec: SweepSpec) -> Iterator[tuple[str, str]]:
    """Yield place and name of every kernel function that a sweep would import."""
    for bank in spec.banks:
        for number, function in bank.imported.items():
            yield f"banks.{bank.label}.kernels[{number}]", function


def _code_of_methods(spec: SweepSpec) -> Iterator[tuple[str, str]]:
    """Yield place and name of all that regularisers of a sweep would import, but those at hand."""
    for entry in spec.methods:
        for settings in (entry.settings, *entry.on.values()):
            yield from code_of_settings(f"methods.{entry.key}", settings)


def code_of_settings(where: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield place and name of all that parameters of a method would import."""
    for parameter, given in settings.items():
        for value in given if isinstance(given, list) else [given]:
            yield from ((f"{where}.{parameter}", name) for name in imported_by(value))


def code_lines(spec: SweepSpec) -> Iterator[str]:
    """Yield a line on each function whose code a sweep runs."""
    found = (*code_of(spec), *_code_of_methods(spec))
    for function in dict.fromkeys(function for _, function in found):
        yield f"runs code that is not mkldist's: {function}"


LOOSEST = 0.3  # tolerance of the first rung by default
DIGITS = 3  # of a level between the first and the last
EXAMPLE_RANGE = '{ low = 0.01, high = 1000, scale = "log" }'


def check_search(spec: SweepSpec) -> None:
    """Refuse a search that cannot be done, and distributions without a search."""
    places = [
        f"{where}.{name}"
        for entry in spec.methods
        for where, settings in (
            (f"methods.{entry.key}", entry.settings),
            *((f"methods.{entry.key}.on.{name}", own) for name, own in entry.on.items()),
        )
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
            f"a method with one, such as C = {EXAMPLE_RANGE}",
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


def _with_dims(grid: MethodGrid, search: SearchSpec, where: str) -> MethodGrid:
    """Return the space of a method with the dims that its trials have in the results."""
    dims: dict[str, list[object]] = {TRIAL: list(range(search.trials))}
    if search.kind == "halving":
        if grid.space is not None and "tol" in grid.space.names:
            raise SpecError(
                f"{where}.tol",
                "several tolerances, which the rungs of [search] vary too",
                "one, that of the last rung",
            )
        first, last = search.first or LOOSEST, grid.points[0].tol
        if first <= last:
            raise SpecError(
                "search.first",
                f"{first:g}" if search.first else f"{first:g} by default",
                f"a tolerance above {last:g}, that of {where}",
                "Set first, or a smaller tol",
            )
        levels = np.geomspace(first, last, search.rungs)[:-1]
        dims["tol"] = [*(float(f"{level:.{DIGITS}g}") for level in levels), last]
    return replace(grid, dims=dims)


EXAMPLE_SOURCE = '{ from = "spicymkl" }'
GIVER = 'spicymkl with loss = "hinge" and regularizer = "block1"'


def _check_source_of_C(where: str, entry: MethodSpec, settings: Mapping[str, Any]) -> None:
    """Refuse values from another method where they cannot stand."""
    for name, value in settings.items():
        if is_from_method(value) and name != LINKED:
            raise SpecError(
                f"{where}.{name}", spelled(value), "a value", f"Another method may give {LINKED}"
            )
    value, place = settings.get(LINKED), f"{where}.{LINKED}"
    if not is_from_method(value):
        for key in value if isinstance(value, dict) else ():
            if hint := nearest(key, [FROM]):
                raise SpecError(place, spelled(value), f"a table such as {EXAMPLE_SOURCE}", hint)
        return
    if not issubclass(METHODS[entry.name].params, HingeParams):
        able = [name for name, method in METHODS.items() if issubclass(method.params, HingeParams)]
        raise SpecError(
            place,
            f"{spelled(value)} for {entry.name}",
            f"a method whose C weighs the hinge loss: {', '.join(able)}",
        )
    if value.keys() != {FROM} or not isinstance(value[FROM], str):
        raise SpecError(place, spelled(value), f"a table such as {EXAMPLE_SOURCE}")
    if any(map(is_distribution, settings.values())):
        raise SpecError(
            place,
            f"{spelled(value)} beside a distribution",
            "values or lists for the other parameters",
        )


def _source_entry(
    spec: SweepSpec, entry: MethodSpec, dataset: str, where: str, key: str
) -> MethodSpec:
    """Return the entry of the method that gives another its C."""
    others = {method.key: method for method in spec.methods if method is not entry}
    if key not in others:
        raise SpecError(
            where,
            "its own method" if key == entry.key else f"the unknown method {key!r}",
            f"another of [[methods]]: {', '.join(others)}",
            nearest(key, others),
        )
    if is_from_method(others[key].settings_on(dataset).get(LINKED)):
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


def check_method(spec: SweepSpec, where: str, entry: MethodSpec) -> None:
    """Refuse a method that lacks a graph, or can neither weigh points nor share kernel weights."""
    method = METHODS[entry.name]
    for dataset in spec.datasets:
        has_graph = spec.graph_of(dataset) is not None
        refusal = None if has_graph else method.refuses(ProblemFacts(laplacian=False))
        if refusal is not None:
            raise SpecError(
                f"{where}.name",
                f"{entry.name}, which {refusal.reason}, but data set {dataset.name!r} has none",
                "a table [graph], or graph = {...} under each data set",
                "An empty [graph] joins each point to its 10 nearest neighbours",
            )
        weighted = [key for key in ("class_weight", "weights") if getattr(dataset, key) is not None]
        problem = ProblemFacts(weighted=bool(weighted))
        refusal = method.refuses(problem)
        if refusal is not None:
            raise SpecError(
                f"{where}.name",
                f"{entry.name}, which {refusal.reason}, but data set {dataset.name!r} has "
                f"{weighted[0]}",
                f"{refusal.others}: {one_of(methods_for(problem))}",
                f"Or remove the method, or {weighted[0]}",
            )
    problem = ProblemFacts(shared_weights=entry.kernel_weights == "shared")
    refusal = method.refuses(problem)
    if refusal is not None:
        raise SpecError(
            f"{where}.kernel_weights",
            f'"shared" for {entry.name}, which {refusal.reason}',
            f"{refusal.others}: {one_of(methods_for(problem))}",
            'Or remove it: kernel_weights = "per-class" is for every method',
        )


def check_graph_has_use(spec: SweepSpec) -> None:
    """Refuse graphs in a sweep whose methods all refuse one."""
    problem = ProblemFacts(laplacian=True)
    refusals = [METHODS[entry.name].refuses(problem) for entry in spec.methods]
    given = ["graph"] if spec.graph else []
    given += [f"datasets.{entry.name}.graph" for entry in spec.datasets if entry.graph]
    if given and all(refusals):
        [refusal, *_] = filter(None, refusals)
        raise SpecError(
            given[0],
            "a graph, which no method of this sweep uses",
            f"{refusal.expected}, or {refusal.others}: {one_of(methods_for(problem))}",
            "Remove it, or add such a method",
        )


def check_banks(spec: SweepSpec) -> None:
    """Refuse methods on banks that are not there, and banks on which no method runs."""
    names = list(dict.fromkeys(n for bank in spec.sized_banks for n in (bank.series, bank.label)))
    for entry in spec.methods:
        for name in entry.banks or ():
            if name not in names:
                raise SpecError(
                    f"methods.{entry.key}.banks",
                    f"the unknown bank {name!r}",
                    f"names of [[banks]]: {', '.join(names)}",
                    nearest(name, names),
                )
    for bank in spec.sized_banks:
        if not any(entry.runs_on(bank) for entry in spec.methods):
            raise SpecError(
                f"banks.{bank.label}",
                "a bank on which no method runs",
                f"a method without banks, or one whose banks hold {bank.label!r}",
                "Remove it, or add it to the banks of a method",
            )


def resolve_methods(spec: SweepSpec) -> dict[str, dict[str, MethodGrid]]:
    """Return the grid of every method, by data set and the method's key; no data are read.

    Data sets on which a method has no parameters of their own share its grid.
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
            nearest(entry.name, METHODS),
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
    _check_source_of_C(where, entry, settings)
    if is_from_method(given := settings.get(LINKED)):
        place, key = f"{where}.{LINKED}", given[FROM]
        of_source = _grid(spec, _source_entry(spec, entry, dataset, place, key), dataset)
        if of_source.space is not None:
            found = f"{key}, whose settings are searched"
            raise SpecError(place, found, "a method with values of C")
        if not all(point.gives_C for point in of_source.points):
            raise SpecError(place, f"{key}, whose solutions give no C", f"a {GIVER}, by its label")
        return taking_C(method, where, settings, spec.tol, key, of_source)
    if not any(map(is_distribution, settings.values())):
        return expand(method, where, settings, spec.tol)
    space = searched(method, where, settings, spec.tol)
    return _with_dims(space, spec.search, where) if spec.search else space
