"""Study: the trials of one method on one bank, data set and split, round by round."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mkldist.search.adaptive import proposed
from mkldist.search.draws import Values, all_fresh
from mkldist.solvers.space import Space
from mkldist.spec.search import SearchSpec


def survivors(losses: Mapping[int, float], factor: int) -> list[int]:
    """Return the trials that go on: those of least loss, of equal ones the first.

    Parameters
    ----------
    losses : mapping of int to float
        Loss of each trial of a rung by its number; infinite if it failed: it never goes on.
    factor : int
        One of so many goes on, rounded up.

    Examples
    --------
    >>> survivors({0: 0.2, 1: 0.1, 2: 0.3, 3: 0.1}, 2)
    [1, 3]
    """
    best = sorted(losses, key=lambda trial: (losses[trial], trial))
    kept = best[: -(-len(losses) // factor)]
    return sorted(trial for trial in kept if math.isfinite(losses[trial]))


Ask = Callable[[Space, int, Sequence[tuple[Values, float]], int], list[Values]]
Loss = Callable[[int, int], float]
"""Loss of a trial on a rung, both by number; infinite if it failed."""


def drawn_batch(
    space: Space, seed: int, before: Sequence[tuple[Values, float]], n_trials: int
) -> list[Values]:
    """Return random settings in place of Optuna's, for a plan that knows no losses."""
    numbers = range(len(before), len(before) + n_trials)
    return list(all_fresh(space, seed, numbers, [values for values, _ in before]))


@dataclass(eq=False)
class Study:
    """Trials of one method on one bank, data set and split.

    Parameters
    ----------
    space : Space
        Space of the method's settings.
    search : SearchSpec
        The search.
    seed : int
        Its seed.
    ask : callable
        Proposes the batches of an adaptive search.

    Attributes
    ----------
    trials : list of mapping
        The setting of each trial so far.
    rungs : list of list of int
        Numbers of the trials on each rung so far; one rung without halving.
    """

    space: Space
    search: SearchSpec
    seed: int
    ask: Ask = proposed
    trials: list[Values] = field(default_factory=list)
    rungs: list[list[int]] = field(default_factory=list)

    def advance(self, loss: Loss) -> bool:
        """Propose the runs of the next round; return False if the study is complete."""
        if self.rungs and self.search.kind == "halving":
            return self._raise(loss)
        n_left = self.search.trials - len(self.trials)
        if self.search.kind == "adaptive":
            before = [(values, loss(number, 0)) for number, values in enumerate(self.trials)]
            new = self.ask(self.space, self.seed, before, min(n_left, self.search.batch))
        elif self.rungs:
            return False
        else:
            new = list(all_fresh(self.space, self.seed, range(n_left), ()))
        self.trials += new
        self.rungs = [list(range(len(self.trials)))]
        return bool(new)

    def _raise(self, loss: Loss) -> bool:
        """Let the best trials of the last rung go on to the next."""
        last = len(self.rungs) - 1
        if len(self.rungs) == self.search.rungs:
            return False
        losses = {trial: loss(trial, last) for trial in self.rungs[last]}
        self.rungs.append(survivors(losses, self.search.factor))
        return bool(self.rungs[-1])
