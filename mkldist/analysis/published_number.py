"""A number of a paper, and where results have their own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A number of a paper, one row of a file.

    Parameters
    ----------
    experiment : str
        Name of the sweep that repeats it; may be empty.
    dataset, method : str
        Names in the results; a method may be ``BANK/METHOD``.  The data set ``*`` stands for all:
        the number is their mean.
    setting : str
        Hyperparameters such as ``C=100, p=2``; empty for the chosen setting.  ``C=least`` is the
        value of least mean over the splits, seen after the fact.
    metric : str
        Name of a variable of the results, such as ``test_error``, or ``processor_seconds``.
        ``svm_solves/silp`` is its ratio to that of the method silp.
    mean, sd : float
        In the units of the results, errors as fractions; `sd` is NaN where none is published.
    source : str
        Where it is published.
    line : str
        Its place in the file, for messages.
    """

    experiment: str
    dataset: str
    method: str
    setting: str
    metric: str
    mean: float
    sd: float
    source: str
    line: str = ""
