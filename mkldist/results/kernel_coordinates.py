"""Coordinates of results along the kernels of a bank: function, parameters, features, family."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mkldist.arrays import Array
from mkldist.gram.bank_kernels import BankKernels
from mkldist.kernels.kernel_list import KernelList
from mkldist.results.schema import KERNEL
from mkldist.spec.banks import BankSpec
from mkldist.spec.kernel_entries import PRECOMPUTED

CUSTOM = "custom"


def kernel_coordinates(
    bank: BankSpec,
    names: Sequence[str],
    kernels: BankKernels | None,
    feature_names: Sequence[str] = (),
) -> dict[str, Array]:
    """Return the coordinates of a bank's kernels, by name; text as objects.

    Parameters
    ----------
    bank : BankSpec
        The bank.
    names : sequence of str
        Names of its M kernels.
    kernels : BankKernels or None
        The kernels; None for a data set of Gram matrices.
    feature_names : sequence of str, optional
        Names of the features.

    Returns
    -------
    dict of str to (M,) array
        ``kernel``, the names; ``function`` and each of its parameters, such as ``width``, NaN for
        kernels without it; ``features`` as in the names, and ``feature_group``: ``all``, the name
        by which the sweep file calls the features, ``single`` or ``several``; ``family``,
        ``normalisation`` and ``bank``, which all kernels of a bank share.  The function of a Gram
        matrix is ``precomputed``, and its features are the view that it belongs to.
    """
    found = {KERNEL: np.array(names, dtype=object)}
    if kernels is None:
        found["function"] = np.full(len(names), PRECOMPUTED, dtype=object)
    else:
        parts = [
            _of_functions(functions, columns)
            for functions, columns in (
                (kernels.of_features, feature_names),
                (kernels.of_texts, kernels.text_names),
            )
            if functions is not None
        ]
        if kernels.given or not parts:
            parts.append(_of_views([one.view for one in kernels.given]))
        found |= _joined(parts)
    shared = {
        "family": bank.family or CUSTOM,
        "normalisation": "+".join(bank.normalisations),
        "bank": bank.label,
    }
    return found | {name: np.full(len(names), text, dtype=object) for name, text in shared.items()}


def _of_views(views: Sequence[str]) -> dict[str, Array]:
    """Return the coordinates of one Gram matrix of each view."""
    places = np.array(views, dtype=object)
    function = np.full(len(views), PRECOMPUTED, dtype=object)
    return {"function": function, "features": places, "feature_group": places}


def _joined(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    """Return the coordinates of several lists of kernels, one after the other."""
    found: dict[str, Array] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        columns = [part.get(name, np.full(len(part["function"]), np.nan)) for part in parts]
        if any(name in part and part[name].dtype == object for part in parts):
            columns = [_as_text(column) for column in columns]
        found[name] = np.concatenate(columns)
    return found


def _as_text(column: Array) -> Array:
    """Return numbers as text, empty for NaN, and texts as they are."""
    if column.dtype == object:
        return column
    return np.array(["" if np.isnan(value) else str(value) for value in column], dtype=object)


def _of_functions(kernels: KernelList, feature_names: Sequence[str]) -> dict[str, Array]:
    """Return the coordinates that functions of features have."""
    found = {name: _plain(column) for name, column in kernels.columns().items()}
    found["features"] = _of_subsets(kernels, kernels.subset_names(feature_names))
    found["feature_group"] = _of_subsets(kernels, _groups(kernels))
    return found


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
