"""Coordinates of results along the kernels of a bank: function, parameters, features, family."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mkldist.arrays import Array
from mkldist.kernels.kernel_list import KernelList
from mkldist.results.schema import KERNEL
from mkldist.spec.banks import BankSpec

PRECOMPUTED, CUSTOM = "precomputed", "custom"


def kernel_coordinates(
    bank: BankSpec,
    names: Sequence[str],
    kernels: KernelList | None,
    feature_names: Sequence[str] = (),
) -> dict[str, Array]:
    """Return the coordinates of a bank's kernels, by name; text as objects.

    Parameters
    ----------
    bank : BankSpec
        The bank.
    names : sequence of str
        Names of its M kernels.
    kernels : KernelList or None
        The kernels; None for precomputed Gram matrices.
    feature_names : sequence of str, optional
        Names of the features.

    Returns
    -------
    dict of str to (M,) array
        ``kernel``, the names; ``function`` and each of its parameters, such as ``width``, NaN for
        kernels without it; ``features`` as in the names, and ``feature_group``: ``all``, the name
        by which the sweep file calls the features, ``single`` or ``several``; ``family``,
        ``normalisation`` and ``bank``, which all kernels of a bank share.
    """
    found = {KERNEL: np.array(names, dtype=object)}
    if kernels is None:
        found["function"] = np.full(len(names), PRECOMPUTED, dtype=object)
    else:
        found |= {name: _plain(column) for name, column in kernels.columns().items()}
        found["features"] = _of_subsets(kernels, kernels.subset_names(feature_names))
        found["feature_group"] = _of_subsets(kernels, _groups(kernels))
    shared = {
        "family": bank.family or CUSTOM,
        "normalisation": "+".join(bank.normalisations),
        "bank": bank.label,
    }
    return found | {name: np.full(len(names), text, dtype=object) for name, text in shared.items()}


def _groups(kernels: KernelList) -> list[str]:
    """Return the group of every feature subset."""
    sizes = np.diff(kernels.subset_indptr).tolist()
    plain = ("single" if size == 1 else "several" for size in sizes)
    return [kernels.subset_labels.get(s, text) for s, text in enumerate(plain)]


def _of_subsets(kernels: KernelList, texts: Sequence[str]) -> Array:
    """Return the text of every kernel's feature subset."""
    of_kernels: Array = np.array(texts, dtype=object)[kernels.subset]
    return of_kernels


def _plain(column: Array) -> Array:
    """Return numbers as they are, and other values as text, empty for none."""
    if column.dtype != object:
        return column
    return np.array(["" if value is None else str(value) for value in column], dtype=object)
