"""The first kernels of lists in a random order, so that smaller banks lie within larger ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mkldist.errors import SpecError
from mkldist.kernels.kernel_list import KernelList

ORDER_STREAM = 3  # after the streams of feature subsets


def first_drawn(
    lists: Sequence[KernelList | None], size: int, seed: int, place: str
) -> list[KernelList | None]:
    """Return the first kernels of lists in an order that the seed determines.

    One order mixes the kernels of all lists.  In each list, those of a larger size begin with those
    of a smaller one, and with the same names.

    Parameters
    ----------
    lists : sequence of KernelList or None
        All M kernels: of features, of texts; None for a list that the bank lacks.
    size : int
        How many to take.
    seed : int
        Seed of the order, a random permutation of all M kernels.
    place : str
        Path of the bank in the sweep file, for the message.

    Returns
    -------
    list of KernelList or None
        The drawn kernels of each list; None if there are none.

    Raises
    ------
    mkldist.errors.SpecError
        If there are fewer kernels.
    """
    counts = [0 if kernels is None else len(kernels) for kernels in lists]
    total = sum(counts)
    if size > total:
        raise SpecError(
            f"{place}.n_kernels",
            f"{size}",
            f"at most {total}, all kernels that the bank lists",
            "Lower it, or list more: features = {count = ...} draws as many feature subsets as "
            "are asked for, each with every value of the parameters",
        )
    order = np.random.default_rng([seed, ORDER_STREAM]).permutation(total)[:size]
    found: list[KernelList | None] = []
    start = 0
    for kernels, count in zip(lists, counts, strict=True):
        own = order[(order >= start) & (order < start + count)] - start
        start += count
        if kernels is None or not len(own):
            found.append(None)
        else:
            found.append(_numbered_by_use(kernels.select(own)))
    return found


def _numbered_by_use(kernels: KernelList) -> KernelList:
    """Return the same kernels, their feature subsets numbered as they first occur.

    The names of kernels hold these numbers, which therefore must not depend on later kernels.
    """
    _, first = np.unique(kernels.subset, return_index=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    sizes = np.diff(kernels.subset_indptr)
    starts = kernels.subset_indptr[:-1]
    indptr = np.concatenate([[0], np.cumsum(sizes[order])])
    places = np.repeat(starts[order] - indptr[:-1], sizes[order]) + np.arange(indptr[-1])
    return replace(
        kernels,
        subset=rank[kernels.subset],
        subset_indptr=indptr,
        subset_indices=kernels.subset_indices[places],
        subset_labels={int(rank[old]): label for old, label in kernels.subset_labels.items()},
    )
