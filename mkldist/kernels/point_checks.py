"""Checks of points and kernel functions against each other, before a bank is made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.wording import FROM_ZERO, RowLabels
from mkldist.errors import DataError, SpecError
from mkldist.kernel_functions.custom import CHECKED_POINTS, CUSTOM_CODE
from mkldist.kernel_functions.definition import Takes, kernel_words
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec

_RESTRICTED = [f.code for f in FUNCTIONS.values() if f.takes is Takes.NON_NEGATIVE]
UNSCALED = 'Leave the features as they are, scale = "none", or use another kernel function'


def check_points(
    kernels: KernelList,
    points: Floats,
    names: Sequence[str] | None,
    where: str,
    row_labels: RowLabels = FROM_ZERO,
) -> None:
    """Raise DataError for the first negative value where a kernel function takes none.

    Parameters
    ----------
    kernels : KernelList
        The kernels.
    points : (n, d) float64
        Points, possibly with missing values.
    names : sequence of str or None
        d names of the features.
    where : str
        Words for the origin of the points.
    row_labels : RowLabels
        How a message names a point.
    """
    restricted = np.flatnonzero(np.isin(kernels.function, _RESTRICTED))
    if not len(restricted):
        return
    columns = np.unique(kernels.select(restricted).subset_indices)
    negative = points[:, columns] < 0.0
    if not negative.any():
        return
    row, place = np.argwhere(negative)[0].tolist()
    column = int(columns[place])
    seen_by = [m for m in restricted.tolist() if column in kernels.features_of(m)]
    function = kernels.function_of(seen_by[0])
    name = f"x{column}" if names is None else repr(names[column])
    raise DataError(
        where,
        f"{points[row, column]:g} in {row_labels.of(row)}, column {name}, "
        f"for {kernel_words(function.label)}",
        function.takes.value,
        UNSCALED,
    )


def check_custom(kernels: KernelList, points: Floats) -> None:
    """Call every function of the user on some of the points, to find its mistakes at once.

    Parameters
    ----------
    kernels : KernelList
        The kernels.
    points : (n, d) float64
        Points as kernels see them; a hundred are taken, in equal steps.

    Raises
    ------
    mkldist.errors.GramError
        If a function fails, or returns what is no kernel.
    """
    own = np.flatnonzero(kernels.function == CUSTOM_CODE)
    some = points[:: max(1, points.shape[0] // CHECKED_POINTS)][:CHECKED_POINTS]
    for m in own.tolist():
        evaluate(kernels.select([m]), some, some)


def check_scale(bank: BankSpec, kernels: KernelList, scale: str) -> None:
    """Raise SpecError if kernel functions of a bank take no scaled features.

    Parameters
    ----------
    bank : BankSpec
        The bank.
    kernels : KernelList
        Its kernels.
    scale : str
        ``scale`` of ``[preprocessing]``, which makes some values negative unless it is ``"none"``
        or ``"tfidf"``.
    """
    restricted = np.flatnonzero(np.isin(kernels.function, _RESTRICTED))
    if not len(restricted) or scale in ("none", "tfidf"):
        return
    label = kernels.function_of(int(restricted[0])).label
    raise SpecError(
        f"banks.{bank.label}",
        f'{kernel_words(label)} of features that scale = "{scale}" makes negative',
        "features of at least 0",
        'Set scale = "none" under [preprocessing]',
    )
