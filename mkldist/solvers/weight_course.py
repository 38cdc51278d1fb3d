"""Weights of a trace's iterations, kept until it is known which kernels are largest at the end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats
from mkldist.memory import TRACED_WEIGHT_BYTES

Indices = npt.NDArray[np.integer]


def largest(weights: Floats, count: int) -> Indices:
    """Return the places of the largest weights (M,), largest first, of equal ones the first.

    Examples
    --------
    >>> largest(np.array([0.1, 0.4, 0.1, 0.4]), 3)
    array([1, 3, 0])
    """
    least = np.partition(weights, -count)[-count]
    places: Indices = np.flatnonzero(weights >= least)
    return places[np.argsort(-weights[places], kind="stable")][:count]


class WeightCourse:
    """Weights other than 0 of all iterations, within a number of bytes.

    Where they take more, each iteration keeps as many of its largest as there is room for.

    Parameters
    ----------
    most_bytes : int
        Bytes that the weights and their places may take, as :func:`mkldist.memory.trace_bytes`
        says.
    least : int
        Number of the largest weights that each iteration keeps in any case.
    """

    def __init__(self, most_bytes: int, least: int) -> None:
        self._most, self._least = most_bytes // TRACED_WEIGHT_BYTES, least
        self._held = 0
        self._rows: list[tuple[npt.NDArray[np.int32], Floats, bool]] = []

    def add(self, weights: Floats) -> None:
        """Add the weights (M,) of an iteration."""
        places: Indices = np.flatnonzero(weights)
        is_whole = True
        if self._held + len(places) > self._most:
            width = max(self._least, self._most // (2 * (len(self._rows) + 1)))
            self._narrow(width)
            is_whole = len(places) <= width
            places = _of_largest(places, weights[places], width)
        self._rows.append((places.astype(np.int32), weights[places], is_whole))
        self._held += len(places)

    def of(self, kernels: Indices) -> Floats:
        """Return the weights (T, k) of k kernels in all T iterations.

        A weight is NaN in an iteration that kept only larger ones.
        """
        course = np.zeros((len(self._rows), len(kernels)))
        for row, (places, weights, is_whole) in zip(course, self._rows, strict=True):
            at = np.searchsorted(places, kernels)
            there = at < len(places)
            there[there] = places[at[there]] == kernels[there]
            row[there] = weights[at[there]]
            if not is_whole:
                row[~there] = np.nan
        return course

    def _narrow(self, width: int) -> None:
        """Keep only so many of the largest weights of each iteration."""
        for number, (places, weights, _) in enumerate(self._rows):
            if len(places) > width:
                kept = _of_largest(np.arange(len(places)), weights, width)
                self._rows[number] = places[kept], weights[kept], False
                self._held -= len(places) - width


def _of_largest(places: Indices, weights: Floats, count: int) -> Indices:
    """Return those ascending places (s,) whose weights (s,) are the largest, as they lie."""
    if len(places) <= count:
        return places
    return np.sort(places[largest(weights, count)])
