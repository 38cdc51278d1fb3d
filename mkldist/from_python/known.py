"""Everything that sweep files name: methods, kernel functions, families, data sets and sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mkldist.spec.banks import KernelSpec

Kind = Literal["method", "kernel", "family", "dataset", "sweep"]
KINDS: tuple[Kind, ...] = ("method", "kernel", "family", "dataset", "sweep")


@dataclass(frozen=True)
class Known:
    """One name and a line about it."""

    kind: Kind
    name: str
    line: str


def known(data_dirs: Sequence[Path] = ()) -> list[Known]:
    """Return everything that has a name, kind by kind."""
    return [one for kind in KINDS for one in known_of(kind, data_dirs)]


def known_of(kind: Kind, data_dirs: Sequence[Path] = ()) -> list[Known]:
    """Return everything of one kind that has a name.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    data_dirs : sequence of Path
        Folders of data sets.
    """
    lines: dict[Kind, Callable[[], Iterator[tuple[str, str]]]] = {
        "method": _methods,
        "kernel": _functions,
        "family": _families,
        "dataset": lambda: _datasets(data_dirs),
        "sweep": _sweeps,
    }
    return [Known(kind, name, line) for name, line in lines[kind]()]


def _methods() -> Iterator[tuple[str, str]]:
    from mkldist.methods.names import TITLES

    yield from TITLES.items()


def _functions() -> Iterator[tuple[str, str]]:
    from mkldist.kernel_functions.custom import entry_points
    from mkldist.kernel_functions.registry import FUNCTIONS

    yield from ((name, function.formula) for name, function in FUNCTIONS.items())
    yield from ((name, f"{entry.value}, installed") for name, entry in entry_points().items())


def _families() -> Iterator[tuple[str, str]]:
    from mkldist.kernels.families import NAMED_FAMILIES

    yield from ((name, family_words(build())) for name, build in NAMED_FAMILIES.items())
    yield "precomputed", "the Gram matrices of a data set with grams = FILE"


def _datasets(data_dirs: Sequence[Path]) -> Iterator[tuple[str, str]]:
    from mkldist.data.catalogue import list_datasets

    return ((entry.name, entry.description) for entry in list_datasets(data_dirs))


def _sweeps() -> Iterator[tuple[str, str]]:
    from mkldist.spec.load import shipped_sweeps

    return ((name, described(file)) for name, file in shipped_sweeps().items())


def described(file: Path) -> str:
    """Return the description in a sweep file, or the reason why it cannot be read."""
    from mkldist.errors import SpecError
    from mkldist.spec.load import load_sweep

    try:
        return load_sweep(file).description
    except SpecError as error:
        return f"cannot be read: {error}"


def family_words(entries: Sequence[KernelSpec]) -> str:
    """Return the kernels of a family in words: how many on which features."""
    from mkldist.kernel_functions.registry import FUNCTIONS

    words: dict[str, list[str]] = {}
    for entry in entries:
        values = [getattr(entry, key) for key in FUNCTIONS[entry.label].keys]
        count = math.prod(len(value) for value in values if isinstance(value, list))
        words.setdefault(_spelled(entry.features), []).append(f"{count} {entry.label}")
    return "; ".join(f"{', '.join(kinds)} on {features}" for features, kinds in words.items())


def _spelled(features: object) -> str:
    """Return the feature sets of a kernel entry in words."""
    sets = features if isinstance(features, list | tuple) else [features]
    words = {"all": "all features", "each": "each feature"}
    return " and ".join(words.get(str(one), str(one)) for one in sets)
