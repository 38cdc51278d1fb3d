"""A campaign of faults: which, in which order, from a seed."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice, repeat
from pathlib import Path

import numpy as np

from tests.chaos.flips import damaged, finished, kinds
from tests.chaos.media import fail, media, start_twice, two_at_once
from tests.chaos.outcomes import Outcome
from tests.chaos.scene import undisturbed
from tests.chaos.schedulers import kill_scheduler, short_lives
from tests.chaos.strikes import SIGNALS, TARGETS, exhaust, interrupt, kill, pause

Fault = Callable[..., Outcome]
"""Of a folder, the undisturbed sweep, and a generator `rng`."""


@dataclass(frozen=True)
class Campaign:
    """Numbers of faults of each sort, and the seed of all that is random in them."""

    seed: int
    kills: int = 0
    pauses: int = 0
    signals: int = 0
    exhausted: int = 0  # workers without memory
    media: int = 0  # that fail
    pairs: int = 0  # of coordinators at once
    starts: int = 0  # of a second coordinator, later
    schedulers: int = 0  # that are killed
    lives: int = 0  # sweeps on short-lived workers
    flips: int = 0  # damaged files
    exchanges: int = 0  # pairs of files that change places

    def outcomes(self, folder: Path) -> Iterator[Outcome]:
        """Do the faults one after the other, and yield what each did."""
        faults = list(self._faults())
        if faults:
            clean = undisturbed(folder / "undisturbed")
            for number, fault in enumerate(faults):
                place = folder / str(number)
                rng = np.random.default_rng((self.seed, number))
                outcome = fault(place, clean, rng=rng)
                yield outcome
                if outcome.is_good:
                    shutil.rmtree(place, ignore_errors=True)
        if self.flips or self.exchanges:
            yield from self._damaged(folder / "flips")

    def _faults(self) -> Iterator[Fault]:
        """Yield the faults of running sweeps, the kinds of each sort in turn."""
        for target in islice(cycle(TARGETS), self.kills):
            yield partial(kill, target=target)
        for target in islice(cycle(TARGETS), self.pauses):
            yield partial(pause, target=target)
        ways = [(name, times) for times in (1, 2) for name in SIGNALS]
        for name, times in islice(cycle(ways), self.signals):
            yield partial(interrupt, name=name, times=times)
        for kind in islice(cycle(media()), self.media):
            yield partial(fail, kind=kind)
        yield from repeat(exhaust, self.exhausted)
        yield from repeat(two_at_once, self.pairs)
        yield from repeat(start_twice, self.starts)
        yield from repeat(kill_scheduler, self.schedulers)
        yield from repeat(short_lives, self.lives)

    def _damaged(self, folder: Path) -> Iterator[Outcome]:
        made = finished(folder)
        of_kind = kinds(made.folder)
        pairs = [kind for kind, files in of_kind.items() if len(files) > 1]
        strikes = [(kind, False) for kind in islice(cycle(of_kind), self.flips)]
        strikes += [(kind, True) for kind in islice(cycle(pairs), self.exchanges)]
        for number, (kind, exchange) in enumerate(strikes):
            place, rng = folder / str(number), np.random.default_rng((self.seed, 1, number))
            outcome = damaged(place, made, kind, rng, exchange=exchange)
            yield outcome
            if outcome.is_good:
                shutil.rmtree(place, ignore_errors=True)
