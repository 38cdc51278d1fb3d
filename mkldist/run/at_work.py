"""Tell other processes which runs and banks the workers of a sweep are at work on."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from mkldist.methods.registry import METHODS
from mkldist.planning.model import RunPlan
from mkldist.results.notes import AtWork, put_together, remove_work_note, write_work_note
from mkldist.run.bank_refs import BankKey
from mkldist.run.work_items import BatchItem, BuildItem, Item

EVERY_SECONDS = 1.0  # least time between two notes


class WorkTeller:
    """Writer of the note of what is being done.

    Parameters
    ----------
    folder : Path
        The output folder.
    banks : collection of BankKey
        The banks of the sweep.
    """

    def __init__(self, folder: Path, banks: Collection[BankKey]) -> None:
        self._folder = folder
        self._banks = {key.id: f"{key.dataset}/{key.label}" for key in banks}
        self._several = len({key.label for key in banks}) > 1
        self._told: list[AtWork] = []
        self._last = float("-inf")

    def tell(
        self,
        begun: Iterable[tuple[Item, float]],
        stages: Mapping[str, str],
        recorded: Collection[str],
    ) -> None:
        """Write the note if it has changed and the last one is old enough.

        Parameters
        ----------
        begun : iterable of (BuildItem or BatchItem, float)
            Tasks in flight, and when they began, in seconds since the epoch.
        stages : mapping of str to str
            What tasks are doing, by their keys.
        recorded : collection of str
            Ids of runs that are recorded already.
        """
        now = time.monotonic()
        if now - self._last < EVERY_SECONDS:
            return
        self._last = now
        at_work = put_together(
            one for item, at in begun for one in self._of(item, at, stages, recorded)
        )
        if at_work != self._told:
            self._told = at_work
            write_work_note(self._folder, at_work)

    def end(self) -> None:
        """Remove the note."""
        remove_work_note(self._folder)

    def _of(
        self, item: Item, since: float, stages: Mapping[str, str], recorded: Collection[str]
    ) -> Iterator[AtWork]:
        """Yield what a task is at work on."""
        if isinstance(item, BuildItem):
            yield AtWork(self._banks.get(item.bank, item.bank), "building the bank", since)
            return
        yield from self._of_batch(item, since, stages.get(item.key, "starting"), recorded)

    def _of_batch(
        self, item: BatchItem, since: float, doing: str, recorded: Collection[str]
    ) -> Iterator[AtWork]:
        """Yield the runs of a batch that are not recorded, method by method."""
        by_method: dict[str, list[RunPlan]] = {}
        for run in item.runs:
            if run.id not in recorded:
                by_method.setdefault(run.key, []).append(run)
        for key, runs in by_method.items():
            first = runs[0]
            bank = [first.bank_label] if self._several else []
            names = [name for name in METHODS[first.method].hyperparameters if name in first.params]
            yield AtWork(
                "/".join([first.dataset, *bank, key]),
                doing,
                since,
                len(runs),
                tuple(sorted({run.asked_split for run in runs})),
                {name: list(dict.fromkeys(run.params[name] for run in runs)) for name in names},
            )
