"""Note of what a sweep is at work on, for ``mkldist status`` in other processes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mkldist.checked_json import json_value
from mkldist.durable import write_file

NOTE = ".work.json"


@dataclass(frozen=True)
class AtWork:
    """Runs of one method, or blocks of one bank, that workers are at work on.

    Parameters
    ----------
    place : str
        Node of the runs in the results, or data set and bank.
    doing : str
        What is being done, such as ``"solving"``.
    since : float
        When it began, in seconds since the epoch.
    n_runs : int
        Number of runs; 0 for a bank.
    splits : tuple of int
        Their splits.
    params : mapping of str to sequence
        Their hyperparameters, and the values of each.
    """

    place: str
    doing: str
    since: float
    n_runs: int = 0
    splits: tuple[int, ...] = ()
    params: Mapping[str, Sequence[Any]] | None = None


def write_work_note(folder: Path, at_work: Iterable[AtWork]) -> None:
    """Write the note of an output folder, unless the folder refuses it: nothing depends on it."""
    with suppress(OSError):
        text = json.dumps([asdict(one) for one in at_work])
        write_file(folder / NOTE, [text.encode()], durable=False)


def remove_work_note(folder: Path) -> None:
    """Remove the note of an output folder."""
    with suppress(OSError):
        (folder / NOTE).unlink(missing_ok=True)


def read_work_note(folder: Path) -> list[AtWork]:
    """Return what a sweep was at work on when it last said so, by place and stage.

    Runs of one method in several tasks are put together.

    Parameters
    ----------
    folder : Path
        The output folder.
    """
    with suppress(OSError, ValueError, TypeError, KeyError):
        note = json_value((folder / NOTE).read_bytes())
        return put_together(AtWork(**{**one, "splits": tuple(one["splits"])}) for one in note)
    return []


def put_together(at_work: Iterable[AtWork]) -> list[AtWork]:
    """Return one entry for each place and stage."""
    together: dict[tuple[str, str], AtWork] = {}
    for one in at_work:
        key = one.place, one.doing
        other = together.get(key)
        if other is None:
            together[key] = one
            continue
        names = dict.fromkeys([*(other.params or {}), *(one.params or {})])
        together[key] = AtWork(
            *key,
            min(one.since, other.since),
            one.n_runs + other.n_runs,
            tuple(sorted({*one.splits, *other.splits})),
            {
                name: _union((other.params or {}).get(name, ()), (one.params or {}).get(name, ()))
                for name in names
            },
        )
    return sorted(together.values(), key=lambda one: (one.n_runs == 0, one.place, one.doing))


def _union(values: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return values without repetition; numbers in their order."""
    found = [*values, *(value for value in others if value not in values)]
    numbers = all(isinstance(value, int | float) for value in found)
    return sorted(found) if numbers else found
