"""How a sweep differs from another, in words: what was changed of a file before it ran."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from mkldist.spec.model import SweepSpec

NAMES = ("label", "name", "family")  # keys that tell entries of a list apart, the first that is set
NO_RESULT = ("description", "outputs", "wall_time")  # keys on which no result depends


def changes(file: SweepSpec, run: SweepSpec) -> list[str]:
    """Return what a sweep has other than its file, a phrase for each, where results depend on it.

    Parameters
    ----------
    file, run : SweepSpec
        The sweep of the file, and the one that ran.

    Returns
    -------
    list of str
        Such as ``"splits.repeats = 5, not 20"`` and ``"datasets: 7 of 10"``; empty if both are
        the same.
    """
    theirs, ours = (sweep.model_dump(mode="json", exclude={*NO_RESULT}) for sweep in (file, run))
    return list(_tables("", theirs, ours))


def _tables(place: str, file: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*file, *run)):
        yield from _values(f"{place}.{key}".lstrip("."), file.get(key), run.get(key))


def _values(place: str, file: Any, run: Any) -> Iterator[str]:
    """Yield how two values differ, by their parts where both have such."""
    if file == run:
        return
    if isinstance(file, dict) and isinstance(run, dict):
        yield from _tables(place, file, run)
    elif _is_named(file) and _is_named(run):
        yield from _entries(place, file, run)
    else:
        yield f"{place} = {json.dumps(run)}, not {json.dumps(file)}"


def _entries(
    place: str, file: Sequence[Mapping[str, Any]], run: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield how two lists of tables differ, entry by entry."""
    ours = {_name(entry): entry for entry in run}
    theirs = {_name(entry): entry for entry in file}
    if not ours.keys() >= theirs.keys():
        yield f"{place}: {len(ours.keys() & theirs.keys())} of {len(theirs)}"
    for name in sorted(ours.keys() - theirs.keys()):
        yield f"{place}: {name} besides"
    for name, entry in theirs.items():
        if name in ours:
            yield from _tables(f"{place}.{name}", entry, ours[name])


def _is_named(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    """Return True for a list of tables that have names."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(entry, dict) and _name(entry) for entry in value)
    )


def _name(entry: Mapping[str, Any]) -> str:
    return next((str(entry[key]) for key in NAMES if entry.get(key)), "")
