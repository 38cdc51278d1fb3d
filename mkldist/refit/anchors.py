"""Support vectors of kernels that are Gram matrices of views: what new rows give values with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mkldist.arrays import Ints
from mkldist.data.dataset import Dataset
from mkldist.in_memory.expansion import Expansion
from mkldist.models.given_rows import GivenRows, GivenView


def with_anchors(
    dataset: Dataset, fitted: Ints, functions: Sequence[Expansion]
) -> tuple[GivenRows | None, tuple[Expansion, ...]]:
    """Return the rows that kernel values are needed with, and functions whose rows are these.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    fitted : (n,) intp
        Its rows that the functions are expansions over.
    functions : sequence of Expansion
        The functions, whose `rows` are places among these.

    Returns
    -------
    GivenRows or None, and tuple of Expansion
        None for a data set without views of Gram matrices.
    """
    if not dataset.given:
        return None, tuple(functions)
    used = [function.rows for function in functions if function.rows is not None]
    anchors = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *used]))
    names = fitted if dataset.ids is None else dataset.ids[fitted]
    views = {
        name: GivenView(len(one.grams), one.present[fitted[anchors]], one.missing)
        for name, one in dataset.given.items()
    }
    given = GivenRows(tuple(str(name) for name in names.tolist()), anchors, views)
    return given, tuple(
        function
        if function.rows is None
        else replace(function, rows=np.searchsorted(anchors, function.rows))
        for function in functions
    )
