"""What a wrong input must not do: hang, take much memory, write elsewhere, or reach the network."""

import resource
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CPU_SECONDS = 10.0
SECONDS = 300.0
"""Longest time that a case may wait: long, because other work may take the processors meanwhile."""
BYTES = 2**30
"""Memory that a case may take beyond what the process has, far above the plan of any case."""
WRITES = ("w", "a", "x", "+")
MAKES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.symlink", "os.link")


class HangsError(BaseException):
    """Raised in a case that takes too long; no handler of errors catches it."""


@dataclass
class Watch:
    """What happens in the process while a case runs."""

    folder: Path | None = None  # the only folder where the case may write; None while no case runs
    seen: list[str] = field(default_factory=list)  # what it did elsewhere
    is_heard: bool = False  # true once the process reports to it

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note a write elsewhere, and forbid the network and other processes."""
        if self.folder is None:
            return
        if event in ("socket.connect", "subprocess.Popen", "os.system", "os.exec"):
            self.seen.append(f"{event} {arguments!r:.200}")
            raise PermissionError(f"{event} in a test of wrong inputs")
        if event == "open" and any(letter in str(arguments[1] or "") for letter in WRITES):
            self._note(event, arguments[0])
        elif event in MAKES:
            for path in arguments[: 1 + (event == "os.rename")]:
                self._note(event, path)

    def _note(self, event: str, path: Any) -> None:
        if isinstance(path, str | bytes) or hasattr(path, "__fspath__"):
            text = path.decode(errors="replace") if isinstance(path, bytes) else str(path)
            where = Path(text).absolute()
            allowed = (self.folder, Path("/dev/null"), Path("/proc"))
            shared = where.parent == Path("/dev/shm")  # memory of processes; files lie deeper
            known = shared or any(where.is_relative_to(a) for a in allowed)
            if "__pycache__" not in text and not known:
                self.seen.append(f"{event} {where}")


_WATCH = Watch()


@contextmanager
def guarded(folder: Path) -> Iterator[list[str]]:
    """Limit time and memory in the context, and yield the list of what is done outside `folder`."""
    if not _WATCH.is_heard:
        sys.addaudithook(_WATCH.hear)  # which stays until the process ends
        _WATCH.is_heard = True
    _WATCH.folder, _WATCH.seen = folder, []
    memory = resource.getrlimit(resource.RLIMIT_AS)
    clocks = {
        signal.SIGPROF: (signal.ITIMER_PROF, CPU_SECONDS),
        signal.SIGALRM: (signal.ITIMER_REAL, SECONDS),
    }
    handlers = {sign: signal.signal(sign, _hangs) for sign in clocks}
    for clock, seconds in clocks.values():
        signal.setitimer(clock, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (_size() + BYTES, memory[1]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield _WATCH.seen
    finally:
        resource.setrlimit(resource.RLIMIT_AS, memory)
        for clock, _ in clocks.values():
            signal.setitimer(clock, 0.0)
        for sign, handler in handlers.items():
            signal.signal(sign, handler)
        _WATCH.folder = None


def _hangs(sign: int, _: object) -> None:
    took = f"{CPU_SECONDS:g} seconds of processor"
    raise HangsError(f"no end after {took if sign == signal.SIGPROF else f'{SECONDS:g} seconds'}")


def _size() -> int:
    """Return the bytes of this process's address space."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
