"""Study: the trials of one method on one bank, data set and split, round by round.

Random settings are a function of the seed and the number of their trial alone: a trial draws a
parameter of one name alike for every method, data set and split, so that these are compared at
equal settings.  Adaptive ones are proposed by Optuna's tree-structured Parzen estimator, in
batches, as a function of the seed and of the trials before.  Optuna keeps nothing between two
batches: every one begins with a study made of these trials.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mkldist.core.identity import content_id
from mkldist.solvers.space import Space, Span
from mkldist.spec.model import SearchSpec

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution


Values = Mapping[str, Any]
Setting = frozenset[tuple[str, Any]]
HEX_DIGITS = 13  # 52 bits, as many as a share in [0, 1) can hold
ATTEMPTS = 1000  # to draw a setting that no other trial has


def drawn(space: Space, seed: int, trial: int, attempt: int = 0) -> Values:
    """Return the setting that a trial draws.

    Parameters
    ----------
    space : Space
        The space.
    seed : int
        Seed of the search.
    trial : int
        Number of the trial, from 0.
    attempt : int, optional
        Number of the draw, from 0.
    """

    def share(name: str) -> float:
        digits = content_id(seed=seed, parameter=name, trial=trial, attempt=attempt)[:HEX_DIGITS]
        return float(int(digits, 16)) / 16.0**HEX_DIGITS

    return space.at({name: share(name) for name in space.names})


def fresh(space: Space, seed: int, trial: int, taken: Collection[Setting]) -> Values | None:
    """Return the first setting that a trial draws and no other has; None if there is none left.

    Parameters
    ----------
    space, seed, trial
        As for :func:`drawn`.
    taken : collection of Setting
        Settings of other trials, by :func:`setting`.
    """
    draws = (drawn(space, seed, trial, attempt) for attempt in range(ATTEMPTS))
    return next((values for values in draws if setting(values) not in taken), None)


def all_fresh(
    space: Space, seed: int, trials: Iterable[int], taken: Iterable[Values]
) -> Iterator[Values]:
    """Yield a new setting for each of some trials; stop where none is left.

    Parameters
    ----------
    space, seed
        As for :func:`drawn`.
    trials : iterable of int
        Numbers of the trials.
    taken : iterable of mapping
        Settings of other trials.
    """
    tried = {setting(values) for values in taken}
    for trial in trials:
        values = fresh(space, seed, trial, tried)
        if values is None:
            return
        tried.add(setting(values))
        yield values


def setting(values: Values) -> Setting:
    """Return the values as a member of sets; lists and dicts are told apart by how they print."""
    return frozenset(
        (name, value if isinstance(value, Hashable) else repr(value))
        for name, value in values.items()
    )


STARTUP = 10  # batches that begin before as many trials are drawn at random


def proposed(
    space: Space, seed: int, before: Sequence[tuple[Values, float]], n_trials: int
) -> list[Values]:
    """Return the settings of the next trials, none of them tried before.

    Parameters
    ----------
    space : Space
        The space.
    seed : int
        Seed of the search.
    before : sequence of (mapping, float)
        Settings and losses of all trials before, in order; infinite for a failed trial.
    n_trials : int
        Number of trials to propose; fewer are returned where no setting is left.
    """
    first, taken = len(before), [values for values, _ in before]
    if first < STARTUP:
        return list(all_fresh(space, seed, range(first, first + n_trials), taken))
    found: list[Values] = []
    tried = {setting(values) for values in taken}
    for values in _asked(space, seed, before, n_trials):
        if setting(values) in tried:  # parameters of few values: Optuna may repeat itself
            drawn = fresh(space, seed, first + len(found), tried)
            if drawn is None:
                break
            values = drawn
        tried.add(setting(values))
        found.append(values)
    return found


def _asked(
    space: Space, seed: int, before: Sequence[tuple[Values, float]], n_trials: int
) -> Iterator[Values]:
    """Yield as many settings as Optuna is asked for; each takes those before as running."""
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study = _study(space, seed, before)
            for _ in range(n_trials):
                yield _exact(space, study.ask(_distributions(space)).params)
    finally:
        optuna.logging.set_verbosity(verbosity)


def _study(space: Space, seed: int, before: Sequence[tuple[Values, float]]) -> optuna.Study:
    """Return a study in memory that holds the trials before."""
    import optuna

    sampler = optuna.samplers.TPESampler(
        seed=int(content_id(seed=seed, trial=len(before))[:8], 16),
        n_startup_trials=1,
        multivariate=True,
        constant_liar=True,
    )
    study = optuna.create_study(sampler=sampler)
    distributions = _distributions(space)
    for values, loss in before:
        failed = not math.isfinite(loss)
        trial = optuna.trial.create_trial(
            state=optuna.trial.TrialState.FAIL if failed else optuna.trial.TrialState.COMPLETE,
            params={name: _asked_for(space, name, value) for name, value in values.items()},
            distributions=distributions,
            value=None if failed else loss,
        )
        study.add_trial(trial)
    return study


def _distributions(space: Space) -> dict[str, BaseDistribution]:
    """Return Optuna's distributions of a space; a choice is one of its positions."""
    import optuna.distributions as of

    def spanned(span: Span) -> BaseDistribution:
        if span.whole:
            return of.IntDistribution(int(span.low), int(span.high), log=span.log)
        return of.FloatDistribution(span.low, span.high, log=span.log)

    choices = {
        name: of.CategoricalDistribution(range(len(values)))
        for name, values in space.choices.items()
    }
    return {**{name: spanned(span) for name, span in space.spans.items()}, **choices}


def _asked_for(space: Space, name: str, value: Any) -> Any:
    """Return a parameter's value as Optuna knows it."""
    return space.choices[name].index(value) if name in space.choices else value


def _exact(space: Space, params: Values) -> Values:
    """Return the setting that stands for Optuna's values."""
    return {
        name: space.choices[name][params[name]]
        if name in space.choices
        else space.spans[name].exactly(params[name])
        for name in space.names
    }


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
