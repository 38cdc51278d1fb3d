"""Final states of solvers that the next rung of a search may start from.

A worker keeps them in its memory, between batches, and never stores them.  A solver whose start is
not there, since another worker has it or since it had to make room, starts anew: its bounds are
valid in any case.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from mkldist.core.memory import KEPT_STATES_BYTES


class KeptStates:
    """States by name, those kept last; at most so many bytes.

    Parameters
    ----------
    limit : int
        Bytes of all states together.
    """

    def __init__(self, limit: int = KEPT_STATES_BYTES) -> None:
        self._limit, self._bytes = limit, 0
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, name: str, state: Any) -> None:
        """Keep a state; forget those that were kept first where there is no room."""
        n_bytes = bytes_of(state)
        with self._lock:
            self._forget(name)
            self._kept[name] = state, n_bytes
            self._bytes += n_bytes
            while self._bytes > self._limit:
                self._forget(next(iter(self._kept)))

    def take(self, name: str) -> Any:
        """Return a state and forget it; None if there is none of the name."""
        with self._lock:
            return self._forget(name)

    def _forget(self, name: str) -> Any:
        state, n_bytes = self._kept.pop(name, (None, 0))
        self._bytes -= n_bytes
        return state


def bytes_of(state: Any) -> int:
    """Return the bytes of the arrays within a state of a solver."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    parts: Iterable[Any] = ()
    if is_dataclass(state):
        parts = (getattr(state, part.name) for part in fields(state))
    elif isinstance(state, list | tuple):
        parts = state
    elif isinstance(state, dict):
        parts = state.values()
    elif type(state).__module__.startswith("mkldist."):
        parts = vars(state).values()
    return sum(bytes_of(part) for part in parts)


STATES = KeptStates()
"""States that this process keeps."""
