"""Which parts of a decision function make the decision values of rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.errors import SpecError
from mkldist.fit.decision import Expansion

if TYPE_CHECKING:
    import pandas as pd

BY = ("views", "features", "kernels")
INTERCEPT = "intercept"


def check_by(by: str) -> None:
    """Refuse what is none of :data:`BY`."""
    if by not in BY:
        raise SpecError("by", f"{by!r:.60}", f"one of {', '.join(map(repr, BY))}")


def parts_of(
    function: Expansion,
    by: str,
    feature_names: Sequence[str],
    text_names: Sequence[str] = (),
    views: Mapping[str, Collection[str]] | None = None,
) -> list[str]:
    """Return the part of a decision function that each of its S kernels belongs to."""
    features, texts = tuple(feature_names), tuple(text_names)
    if by == "kernels":
        return function.names(features, texts)
    lists = [(function.kernels, features)]
    if function.texts is not None:
        lists.append((function.texts.kernels, texts))
    found = []
    for kernels, names in lists:
        places = kernels.subset_names(names)
        for m in range(len(kernels)):
            own = [names[column] for column in kernels.features_of(m).tolist()]
            place = places[kernels.subset[m]]
            found.append(place if by == "features" else view_of(own, views or {}, place))
    return found + [kernel.view for kernel in function.given]


def view_of(columns: Sequence[str], views: Mapping[str, Collection[str]], other: str) -> str:
    """Return the view that has all of these columns, or `other`."""
    own = {*columns}
    return next((name for name, of_view in views.items() if own <= {*of_view}), other)


def contribution_columns(
    parts: Sequence[Sequence[str]], classes: Sequence[Hashable] | None
) -> list[tuple[Hashable, str | None]]:
    """Return class and part of each column of contributions; the last part of a class is None.

    That is its intercept.  `parts` are those of the kernels of each decision function.  `classes`
    is None for a single one, and then stands first in every column.
    """
    named = [[*dict.fromkeys(own), None] for own in parts]
    if classes is None:
        return [(None, name) for name in named[0]]
    if len(named) < len(classes):  # which share their kernels
        named = named * len(classes)
    return [(c, name) for c, own in zip(classes, named, strict=True) for name in own]


def contribution_table(
    values: Floats, columns: Sequence[tuple[Hashable, str | None]]
) -> pd.DataFrame:
    """Return contributions (t, c) as a table; levels ``class`` and ``part`` of several classes."""
    import pandas as pd

    named = [(c, INTERCEPT if part is None else part) for c, part in columns]
    if named[0][0] is None:
        return pd.DataFrame(values, columns=[part for _, part in named])
    return pd.DataFrame(values, columns=pd.MultiIndex.from_tuples(named, names=["class", "part"]))


def flat(values: Floats) -> Floats:
    """Return contributions (t, P + 1, k) as (t, k (P + 1)), class after class."""
    return np.moveaxis(values, 2, 1).reshape(len(values), -1)
