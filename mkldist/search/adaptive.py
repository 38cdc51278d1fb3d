"""Settings that Optuna's tree-structured Parzen estimator proposes, in batches.

The proposals are a function of the seed and of the trials before.  Optuna keeps nothing between
two batches: every one begins with a study made of these trials.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mkldist.identity import content_id
from mkldist.search.draws import Values, all_fresh, fresh, setting
from mkldist.solvers.space import Space, Span

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

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


def _study(space: Space, seed: int, before: Sequence[tuple[Values, float]]) -> Study:
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
