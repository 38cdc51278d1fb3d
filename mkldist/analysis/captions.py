"""Words below a table of results: what its numbers and marks mean, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mkldist.analysis.run_counts import RunCounts
from mkldist.analysis.summary import ERRORS, Row
from mkldist.counted import counted
from mkldist.solvers.outcome import StopReason

EDGES_SHOWN = 6
_REMEDIES = {
    StopReason.MAX_ITER: "raise max_iter",
    StopReason.TIME_LIMIT: "raise time_limit",
    StopReason.STALLED: "rounding allows no further gain, or chi_2 ended it; raise tol",
    StopReason.RANK_LIMIT: "raise rank of the bank, or tol",
    StopReason.MEMORY_LIMIT: "no memory holds longer factors; raise memory or tol",
}
_PROXIMITIES = {
    "gap_max": "Largest gap: the relative duality gap of the run furthest from proven optimal.",
    "exact_gap_max": "Exact gap: the largest gap to the kernels that factors stand for.",
    "stationarity_max": "Stationarity: the largest relative gain left where no gap proves more.",
}


def caption(
    summary: Sequence[Row], shown: Sequence[Row], *, runs: bool, counts: RunCounts | None = None
) -> str:
    """Return lines that explain the numbers of a table and name what is left out.

    Parameters
    ----------
    summary : sequence of dict
        Rows of :func:`mkldist.analysis.summary.summary`.
    shown : sequence of dict
        The rows that the table shows.
    runs : bool
        True if the table says how many runs failed.
    counts : RunCounts, optional
        All runs of the sweep, where the summary is of those at selected settings.
    """
    losses = list(dict.fromkeys(map(_loss, summary)))
    lowest = " or ".join(losses)
    lines = [f"Mean ± sd over splits; * lowest mean {lowest} of its data set."]
    if not all(loss.startswith("validation") for loss in losses):
        part = "unlabelled" if losses == ["unlabelled error"] else "test"
        lines.append(f"* is the best on the {part} part; [selection] selects without its labels.")
    lacking = any(row["lacking"] and row["complete"] for row in summary)
    if lacking:
        lines.append("Rows that lack a split that others of their data set have are not marked.")
    lines += [
        "Active kernels have a weight above 0.001. Seconds: own time and share of passes.",
        *(
            words
            for name, words in _PROXIMITIES.items()
            if not all(is_missing(row.get(name)) for row in summary)
        ),
    ]
    sampled = sum(row.get("sampled", 0) for row in summary)
    if sampled:
        told = f"A sample of the points tells the exact gaps of {counted(sampled, 'run')}"
        lines.append(f"{told}, which are statistical.")
    lines += [*_edges(summary), *_early(summary)]
    own = RunCounts(*(sum(row[n] for row in summary) for n in RunCounts._fields))
    of_all = counts or own
    if not (runs or of_all.failed or of_all.waiting):
        selected = f", {own.complete} of them at selected settings" if of_all != own else ""
        lines.append(f"All {of_all.complete} runs ended{selected}; none failed.")
    if of_all.failed > own.failed:
        left = of_all.failed - own.failed
        lines.append(f"{counted(left, 'run')} failed at settings that are not selected.")
    if len(shown) < len(summary):
        lines.append(f"Each method where its mean {lowest} is lowest, of {len(summary)} rows.")
        if lacking:
            lines.append(
                "A row that lacks splits stands for its method only if all of its rows do."
            )
    if of_all.waiting:
        lines.append(f"{counted(of_all.waiting, 'run')} without an outcome yet.")
    return "\n".join(lines)


def _loss(row: Row) -> str:
    """Return the name of the loss by which a row is ranked."""
    named = {"validation_rmse": "validation RMSE", "rmse": "RMSE"}
    if row["task"] != "regression":
        named = {name: name.replace("_", " ") for name in ERRORS}
    known = (words for name, words in named.items() if not is_missing(row[f"{name}_mean"]))
    return next(known, "RMSE" if row["task"] == "regression" else "test error")


def _edges(summary: Sequence[Row]) -> list[str]:
    """Return lines that say which best values lie at an end of their grid."""
    places: dict[str, list[str]] = {}
    several = {name for name in ("dataset", "bank") if len({row[name] for row in summary}) > 1}
    for row in summary:
        if row["edge"]:
            place = " · ".join(str(row[name]) for name in ("dataset", "bank") if name in several)
            places.setdefault(f"{row['method']} {row['edge']}", []).append(place)
    if not places:
        return []
    found = [what + f" ({', '.join(own)})" * any(own) for what, own in places.items()]
    left = len(found) - EDGES_SHOWN
    more = [f"{left} more"] if left > 0 else []
    return [
        "Best at the end of its grid, so a wider grid may do better:",
        *(f"  {line}" for line in [*found[:EDGES_SHOWN], *more]),
    ]


def _early(summary: Sequence[Row]) -> list[str]:
    """Return lines that say how many runs stopped before their tolerance, why, and what helps."""
    early = sum(row["early"] for row in summary)
    if not early:
        return []
    counts = {one: sum(row.get(f"early_{one}", 0) for row in summary) for one in _REMEDIES}
    return [
        f"! {counted(early, 'run')} stopped before the tolerance:",
        *(f"  {one} ({count}): {_REMEDIES[one]}" for one, count in counts.items() if count),
    ]


def is_missing(value: Any) -> bool:
    """Return True for None and NaN."""
    return value is None or bool(value != value)
