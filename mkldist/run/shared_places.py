"""Folders and stores that workers share with this process, tried from both sides.

A place counts as shared with a worker if the worker reads there what this process wrote, and this
process what the worker wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mkldist.errors import MkldistError
from mkldist.worker.shared_place import NO_LOCK, NOT_READ_BACK, SharedPlace
from mkldist.worker.surroundings import Surroundings, answer_name, look_around

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class TriedPlaces:
    """What workers find where they run.

    Parameters
    ----------
    found : mapping of str to Surroundings
        What each worker that answered finds.
    wrong : mapping of str to mapping of str to str
        What is wrong with each place for each of these workers, by the names of both; empty texts
        where nothing is.
    refused : mapping of str to MkldistError
        Places in which this process cannot write, by name; workers have not tried them.
    failed : mapping of str to BaseException
        Errors of the workers that answered with one.
    """

    found: Mapping[str, Surroundings]
    wrong: Mapping[str, Mapping[str, str]]
    refused: Mapping[str, MkldistError]
    failed: Mapping[str, BaseException] = field(default_factory=dict)

    def is_shared(self, place: str, worker: str) -> bool:
        """Return True if a worker can use a place; locks are for coordinators alone."""
        return place in self.wrong and self.wrong[place][worker] in ("", NO_LOCK)


def try_places(client: Client, places: Mapping[str, str], workers: Collection[str]) -> TriedPlaces:
    """Have workers with the same packages look around, and try places from both sides."""
    shared, refused = dict[str, SharedPlace](), dict[str, MkldistError]()
    with ExitStack() as stack:
        for name, root in places.items():
            try:
                place = SharedPlace.of(root)
                stack.enter_context(place.asked())
            except MkldistError as error:
                refused[name] = error
            else:
                shared[name] = place
        asked = tuple(shared.values())
        told = client.run(look_around, asked, workers=sorted(workers), on_error="return")
        found = {worker: one for worker, one in told.items() if isinstance(one, Surroundings)}
        failed = {worker: one for worker, one in told.items() if isinstance(one, BaseException)}
        wrong = {name: _wrong(place, found) for name, place in shared.items()}
    return TriedPlaces(found, wrong, refused, failed)


def _wrong(place: SharedPlace, found: Mapping[str, Surroundings]) -> dict[str, str]:
    """Return what is wrong with a place for each worker; empty where nothing is."""
    wrong = {worker: one.wrong[place.root] for worker, one in found.items()}
    for worker, said in wrong.items():
        if not said and not place.is_answered(answer_name(worker)):
            wrong[worker] = NOT_READ_BACK
    return wrong
