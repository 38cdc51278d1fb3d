"""Lines about the rounds of a sweep: its runs, how far a search is, and which runs are left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mkldist.counted import counted
from mkldist.search.draws import Values
from mkldist.search.rounds import Rounds
from mkldist.spec.trial import TRIAL


def opening_note(rounds: Rounds, n_left: int, output: Path) -> str:
    """Return the first line of a call: what is to do, what is recorded, and where it goes.

    Parameters
    ----------
    rounds : Rounds
        Rounds of the sweep.
    n_left : int
        Runs that are not recorded, as many as there may be.
    output : Path
        Output folder.
    """
    before = len(rounds.most.runs) - n_left
    are = "is" if before == 1 else "are"
    recorded = f", {before} {are} recorded already" if before else ""
    runs = f"{_at_most(rounds)}{counted(n_left, 'run')} to do"
    return f"{rounds.spec.name}: {runs}{recorded}; output in {output}"


def resume_note(rounds: Rounds, n_recorded: int, resume_command: str) -> str:
    """Return how much of a sweep is recorded, and the command that does the rest.

    Parameters
    ----------
    rounds : Rounds
        Rounds of the sweep.
    n_recorded : int
        Recorded runs.
    resume_command : str
        The command.
    """
    runs = f"{_at_most(rounds)}{len(rounds.most.runs)} runs"
    return f"{n_recorded} of {runs} are recorded; resume with: {resume_command}"


def _at_most(rounds: Rounds) -> str:
    """Return words before the number of all runs, if there may be fewer in the end."""
    return "at most " * rounds.are_several


def round_note(rounds: Rounds) -> str:
    """Return a line for each method on each bank: the least validation error so far.

    Parameters
    ----------
    rounds : Rounds
        Rounds of a sweep with a search, of which some runs are recorded.
    """
    found: dict[tuple[str, ...], list[tuple[float, Values]]] = {}
    one_bank = len(rounds.spec.sized_banks) == 1
    for (dataset, bank, key, _), best in rounds.best().items():
        path = (dataset, key) if one_bank else (dataset, bank, key)
        found.setdefault(path, []).append(best)
    n_runs = sum(TRIAL in run.at for run in rounds.most.runs)
    lines = [f"search: {rounds.compared} of at most {n_runs} runs; best so far:"]
    for name, best_of_splits in found.items():
        losses = [loss for loss, _ in best_of_splits]
        mean = sum(losses) / len(losses)
        regression = rounds.resolved.datasets[name[0]][0].task == "regression"
        score = f"RMSE {mean:.4g}" if regression else f"error {100 * mean:.2f} %"
        settings = _spans([values for _, values in best_of_splits])
        lines.append(f"  {'/'.join(name)}: validation {score}, {settings}")
    return "\n".join(lines)


def left_out_note(rounds: Rounds) -> str:
    """Return a line about the runs that are left out because others give them no C.

    Parameters
    ----------
    rounds : Rounds
        Rounds of a sweep, with such runs.
    """
    missing = rounds.without_C
    keys = ", ".join(dict.fromkeys(run.key for run in missing))
    return (
        f"{counted(len(missing), 'run')} of {keys} failed or found no kernel, and so gave no C: "
        "the runs that take it are left out"
    )


def _spans(settings: Sequence[Values]) -> str:
    """Return the values of some settings: each, or the least and the greatest."""
    parts = []
    for name in settings[0]:
        values = [values[name] for values in settings]
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            low, high = f"{min(values):.3g}", f"{max(values):.3g}"
            parts.append(f"{name} = {low}" if low == high else f"{name} = {low}…{high}")
        else:
            parts.append(f"{name} = {'|'.join(dict.fromkeys(map(str, values)))}")
    return ", ".join(parts)
