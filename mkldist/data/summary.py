"""An summary of how a data set was made of its source, for the user to read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ImportSummary:
    """ImportSummary of a source: the data taken, left out and encoded, and the oddities found.

    Parameters
    ----------
    label : str
        The label column and how it was chosen; empty where a source has but one.
    left_out : tuple of str
        Columns that are no features, and why.
    encoded : tuple of str
        Columns of categories, and the number of their features.
    constant : tuple of str
        Features that were dropped because they do not vary.
    n_rows : int
        Rows of the source.
    missing : (int, int)
        Numbers of rows and of columns that miss values.
    sparse : str
        Size of sparse features, and of dense ones; empty for dense features.
    views : tuple of str
        Views, their sizes, and how many points lack them.
    texts : tuple of str
        Columns of texts, their lengths, and how many points lack them.
    notes : tuple of str
        What is legal but is often a mistake.
    """

    label: str = ""
    left_out: tuple[str, ...] = ()
    encoded: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    n_rows: int = 0
    missing: tuple[int, int] = (0, 0)
    sparse: str = ""
    views: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
