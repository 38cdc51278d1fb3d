"""What tasks and the coordinator use of Dask's scheduler to reach each other, in this process."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest


class SchedulerInMemory:
    """A scheduler, and its client at the same time."""

    def __init__(self) -> None:
        self.queues: dict[str, list[Any]] = defaultdict(list)
        self.marks: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}
        self.n_open = 0
        self.status = "running"

    def set_metadata(self, keys: list[str], value: Any) -> None:
        place = self.marks
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = value

    def get_metadata(self, keys: list[str], default: Any) -> Any:
        place: Any = self.marks
        for key in keys:
            if key not in place:
                return default
            place = place[key]
        return place

    def publish_dataset(self, content: bytes, *, name: str, override: bool) -> None:
        assert override  # a killed coordinator may have left one
        self.files[name] = content

    def unpublish_dataset(self, name: str) -> None:
        del self.files[name]

    def get_dataset(self, name: str, default: Any) -> Any:
        return self.files.get(name, default)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> SchedulerInMemory:
        """Have tasks of this process reach it."""
        scheduler = self

        class Queue:
            def __init__(self, name: str, client: Any, maxsize: int) -> None:
                assert (client, maxsize > 0) == (scheduler, True)
                self._waiting = scheduler.queues[name]
                scheduler.n_open += 1

            def put(self, message: Any, timeout: float) -> None:
                self._waiting.append(message)

            def get(self, *, batch: bool) -> list[Any]:
                taken, self._waiting[:] = list(self._waiting), []
                return taken

            def close(self) -> None:
                scheduler.n_open -= 1

        monkeypatch.setattr("distributed.Queue", Queue)
        monkeypatch.setattr("distributed.get_client", lambda: scheduler)
        return self
