"""Announcements of tasks to the coordinator while they run: runs recorded, and what is being done.

Workers of a cluster announce on a topic of Dask.  Threads of the coordinator's own process tell its
listener directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Event = Mapping[str, str]
Announce = Callable[[Event], None]

_listeners: dict[str, Announce] = {}


def build_key(bank: str, blocks: Sequence[int]) -> str:
    """Return the name by which a task that builds blocks announces itself.

    No two tasks in flight have a block in common, so that the first one will do.

    Examples
    --------
    >>> build_key("d41d8cd9", (3, 4))
    'd41d8cd9 from block 3'
    """
    return f"{bank} from block {blocks[0]}"


def listen(topic: str, listener: Announce) -> None:
    """Have tasks in threads of this process tell `listener` what they announce on a topic."""
    _listeners[topic] = listener


def stop_listening(topic: str) -> None:
    """Drop what tasks in threads of this process announce on a topic from now on."""
    _listeners.pop(topic, None)


def announcer(topic: str) -> Announce:
    """Return a function that announces events on a topic, or does nothing without one."""
    if not topic:
        return _drop
    if topic in _listeners:
        return lambda event: _listeners.get(topic, _drop)(event)
    from distributed import get_worker

    worker = get_worker()
    return lambda event: worker.log_event(topic, dict(event))


def _drop(event: Event) -> None:
    """Announce nothing."""
