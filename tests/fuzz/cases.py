"""Numbered cases of wrong inputs, and what is wrong with how one was met."""

import traceback
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mkldist.errors import MkldistError
from tests.fuzz.guard import HangsError, guarded
from tests.fuzz.inputs import Kind, kinds

WEIGHTS = {"sweep file": 8, "record": 1, "forged record": 1, "results": 1, "notes": 1}


@dataclass(frozen=True)
class Fault:
    """A case that was not met by the right values or an error of mkldist."""

    kind: str  # kind of the input
    number: int  # number of the case, which with the seed makes it again
    said: str  # what happened in place of that
    content: bytes  # the input


def shares(n_cases: int) -> Iterator[tuple[Kind, range]]:
    """Yield every kind and the numbers of its cases: most of sweep files, few of results.

    To read results takes ten times as long as to read any other input.
    """
    every = kinds()
    weights = [WEIGHTS.get(kind.name, 2) for kind in every]
    for kind, weight in zip(every, weights, strict=True):
        yield kind, range(max(1, round(n_cases * weight / sum(weights))))


def faults(kind: Kind, numbers: range, seed: int, folder: Path) -> Iterator[Fault]:
    """Read wrong inputs of a kind, below a folder that holds the right ones; yield the faults."""
    for number in numbers:
        draw = np.random.default_rng((seed, zlib.crc32(kind.name.encode()), number))
        file, content = kind.wrong(folder, draw)
        right = file.read_bytes() if file.exists() else None
        file.write_bytes(content)
        said = _said(kind, file, folder)
        if right is not None:
            file.write_bytes(right)
        if said:
            yield Fault(kind.name, number, said, content)


def _said(kind: Kind, file: Path, folder: Path) -> str:
    """Read a wrong input; return what should not have happened."""
    elsewhere: list[str] = []
    try:
        with guarded(folder) as elsewhere:
            kind.read(file)
    except MkldistError as error:
        if "Traceback" in str(error):
            return f"a traceback in a message: {error}"
    except (Exception, HangsError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {str(error)[:200]} ({last.filename}:{last.lineno})"
        return f"{said}; by {_ours(error)}"
    return "; ".join(elsewhere)


def _ours(error: BaseException) -> str:
    """Return the last line of mkldist in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{one.filename}:{one.lineno}" for one in frames if "/mkldist/" in one.filename]
    return ours[-1] if ours else "no line of mkldist"
