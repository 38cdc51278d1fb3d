"""Random settings of a space, each a function of the seed and the number of its trial alone.

A trial draws a parameter of one name alike for every method, data set and split, so that these
are compared at equal settings.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any

from mkldist.identity import content_id
from mkldist.solvers.space import Space

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
