"""Two sweeps, or two methods of one sweep, compared from their output folders."""

from __future__ import annotations

from pathlib import Path

from mkldist.analysis.compare_results import ResultsComparison, compare_results
from mkldist.analysis.pairing import Results, matching
from mkldist.errors import InputError


def compare_sweeps(
    first: str | Path,
    second: str | Path | None = None,
    *,
    methods: tuple[str, str] | None = None,
    rope: float | None = None,
) -> ResultsComparison:
    """Compare the methods that two sweeps share, or two methods, on the splits that both have.

    ``mkldist compare`` prints what this returns.

    Parameters
    ----------
    first : str or Path
        Output folder of a sweep.
    second : str or Path, optional
        That of another sweep; by default the same, which needs `methods`.
    methods : (str, str), optional
        A method of the first and one of the second, each as METHOD or BANK/METHOD.  By default
        methods of equal names are compared.
    rope : float, optional
        Half the width of the region of practical equivalence, in units of the loss; by default 0.01
        of an error, and a hundredth of the mean loss for real values.

    Returns
    -------
    ResultsComparison
        ``pairs`` of methods, their comparison ``over`` data sets, and what is ``unpaired``.

    Raises
    ------
    mkldist.errors.InputError
        For one sweep without `methods`.
    mkldist.errors.StoreError
        If there are no results or they are damaged.

    Examples
    --------
    >>> from mkldist import analysis
    >>> found = analysis.compare_sweeps(
    ...     "results/quickstart", methods=("level", "uniform")
    ... )  # doctest: +SKIP
    >>> found.pairs[0].losses.difference, found.pairs[0].p_holm  # doctest: +SKIP
    """
    if second is None and methods is None:
        raise InputError(
            "compare_sweeps", "one sweep without methods", "two sweeps, or methods = (A, B)"
        )
    one = Results.of(first)
    two = one if second is None else Results.of(second)
    return compare_results(one, two, matching(one, two, methods), rope)
