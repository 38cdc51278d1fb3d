"""Spectrum kernel of texts: the inner product of the counts of all substrings of one length.

Leslie, Eskin and Noble, The Spectrum Kernel: a String Kernel for SVM Protein Classification, 2002.
A text shorter than the length has no substring, and a value of 0 with every text.

:func:`spectrum_gram` computes it in Python, on sequences of texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import Tile, inverse_lengths
from mkldist.kernel_functions.definition import KernelFunction, Parameter, Takes

LENGTH = Parameter("length", "Length of the substrings.", "count", example="3")


def spectrum_gram(
    left: Sequence[str],
    right: Sequence[str] | None = None,
    length: int = 3,
    *,
    normalised: bool = False,
) -> Floats:
    """Return the spectrum kernel (r, c) between texts, by default of `left` with themselves.

    Substrings of the `length` overlap.  If `normalised`, values are divided by
    ``sqrt(k(x, x) k(z, z))``; those of texts without a substring stay 0.

    Examples
    --------
    >>> spectrum_gram(["ababa", "bab", "c"], length=2)
    array([[8., 4., 0.],
           [4., 2., 0.],
           [0., 0., 0.]])
    """
    others = left if right is None else right
    rows, columns = _counts([left, others], length)
    values: Floats = np.asarray((rows @ columns.T).todense(), dtype=np.float64)
    if normalised:
        lengths = (inverse_lengths(spectrum_diagonal(texts, length)) for texts in (left, others))
        values *= np.multiply.outer(*lengths)
    return values


def spectrum_diagonal(texts: Sequence[str], length: int) -> Floats:
    """Return ``k(x, x)`` of texts, (n,): the sum of the squared counts of their substrings."""
    return np.array(
        [sum(count**2 for count in _substrings(text, length).values()) for text in texts],
        dtype=np.float64,
    )


def _substrings(text: str, length: int) -> Counter[str]:
    return Counter(text[start : start + length] for start in range(len(text) - length + 1))


def _counts(sides: Sequence[Sequence[str]], length: int) -> list[Any]:
    """Return the counts of the substrings of texts as sparse matrices with common columns."""
    import scipy

    places: dict[str, int] = {}
    found = []
    for texts in sides:
        ends, columns, counts = [0], [], []
        for text in texts:
            for word, count in _substrings(text, length).items():
                columns.append(places.setdefault(word, len(places)))
                counts.append(float(count))
            ends.append(len(columns))
        found.append((counts, columns, ends))
    return [
        scipy.sparse.csr_array(parts, shape=(len(texts), len(places)))
        for parts, texts in zip(found, sides, strict=True)
    ]


def _spectrum(tile: Tile, length: float, second: float, out: Floats) -> None:
    """Write the values of the tile's texts, of several columns the sums, to `out`."""
    out[...] = 0.0
    for left, right in zip(_text_columns(tile.left), _text_columns(tile.right), strict=True):
        out += spectrum_gram(left, right, int(length))


def _spectrum_diagonal(texts: Any, length: float, second: float) -> Floats:
    """Return ``k(x, x)`` of texts, (n,), of several columns the sums."""
    found = np.zeros(len(texts))
    for column in _text_columns(texts):
        found += spectrum_diagonal(column, int(length))
    return found


def _text_columns(texts: Any) -> Any:
    """Return the columns of texts, (s, n), of which a sequence is one."""
    array = np.asarray(texts, dtype=object)
    return array[None] if array.ndim == 1 else array.T


SPECTRUM = KernelFunction(
    "spectrum",
    code=11,
    formula="sum over texts u of a length: count of u in x times count of u in z",
    values=_spectrum,
    parameters=(LENGTH,),
    diagonal=_spectrum_diagonal,
    takes=Takes.TEXTS,
    note="For texts such as proteins; of several columns the sum.",
)
