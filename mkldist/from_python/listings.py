"""Methods and kernels by the names that sweeps use, as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

    from mkldist.spec.banks import KernelSpec


def list_methods() -> pd.DataFrame:
    """Return all methods, a row each; ``mkldist show NAME`` says more of one.

    Returns
    -------
    pandas.DataFrame
        By ``method``: what it ``finds``, its ``problem``, ``loss`` and ``regularizer``, the
        ``labels`` that it learns, its ``hyperparameters``, whether it ``needs_graph``, and the
        ``reference``.

    Examples
    --------
    >>> import mkldist
    >>> mkldist.list_methods().loc["level", "loss"]
    'hinge'
    """
    import pandas as pd

    from mkldist.methods.registry import METHODS
    from mkldist.solvers.base import losses_by_target

    rows = {
        name: {
            "finds": method.title,
            "problem": method.problem,
            "loss": method.loss,
            "regularizer": method.regularizer,
            "labels": tuple(str(target) for target in losses_by_target(method.params)),
            "hyperparameters": method.hyperparameters,
            "needs_graph": method.needs_laplacian,
            "reference": method.reference,
        }
        for name, method in METHODS.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def list_kernels() -> pd.DataFrame:
    """Return all kernel functions and named families, a row each.

    A function is for entries of ``kernels``, also as ``mkldist.kernels.Gaussian(...)``; a family is
    for ``family``.

    Returns
    -------
    pandas.DataFrame
        By ``kernel``: its ``kind``, function or family; the ``formula`` of a function, or the
        kernels of a family; and the ``parameters`` of a function.

    Examples
    --------
    >>> import mkldist
    >>> mkldist.list_kernels().loc["polynomial", "parameters"]
    'degrees, offset'
    """
    import pandas as pd

    from mkldist.kernel_functions import FUNCTIONS

    rows = [
        *((name, "function", one.formula, ", ".join(one.keys)) for name, one in FUNCTIONS.items()),
        *((one.name, "family", one.line, "") for one in known_of("family")),
    ]
    return pd.DataFrame(rows, columns=["kernel", "kind", "formula", "parameters"]).set_index(
        "kernel"
    )


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
    """Return everything of one kind that has a name."""
    return [Known(kind, name, line) for name, line in _lines(kind, data_dirs)]


def _lines(kind: Kind, data_dirs: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield names and lines about them."""
    if kind == "method":
        from mkldist.methods.registry import METHODS

        yield from ((name, method.title) for name, method in METHODS.items())
    elif kind == "kernel":
        from mkldist.kernel_functions import FUNCTIONS
        from mkldist.kernel_functions.custom import entry_points

        yield from ((name, function.formula) for name, function in FUNCTIONS.items())
        yield from ((name, f"{one.value}, installed") for name, one in entry_points().items())
    elif kind == "family":
        from mkldist.kernels.families import NAMED_FAMILIES

        yield from ((name, family_words(build())) for name, build in NAMED_FAMILIES.items())
        yield "precomputed", "the Gram matrices of a data set with grams = FILE"
    elif kind == "dataset":
        from mkldist.data.catalogue import list_datasets

        yield from ((entry.name, entry.description) for entry in list_datasets(data_dirs))
    else:
        from mkldist.spec.load import shipped_sweeps

        yield from ((name, described(file)) for name, file in shipped_sweeps().items())


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
    from mkldist.kernel_functions import FUNCTIONS

    names = {"all": "all features", "each": "each feature"}
    words: dict[str, list[str]] = {}
    for entry in entries:
        values = [getattr(entry, key) for key in FUNCTIONS[entry.label].keys]
        count = math.prod(len(value) for value in values if isinstance(value, list))
        sets = entry.features if isinstance(entry.features, list | tuple) else [entry.features]
        on = " and ".join(names.get(str(one), str(one)) for one in sets)
        words.setdefault(on, []).append(f"{count} {entry.label}")
    return "; ".join(f"{', '.join(kinds)} on {features}" for features, kinds in words.items())
