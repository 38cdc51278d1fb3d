"""Reruns from Python: :func:`rerun` does what ``mkldist rerun`` does and returns the agreement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.consoles import standard_error
from mkldist.from_python.short_errors import with_short_errors

if TYPE_CHECKING:
    from mkldist.analysis.repeated_runs import Agreement


@with_short_errors
def rerun(
    results: str | Path,
    *,
    output: str | Path | None = None,
    data_dirs: str | Path | Sequence[str | Path] = (),
    workers: int | None = None,
    threads_per_worker: int = 1,
    scheduler: str | None = None,
    cluster: str | Path | None = None,
    progress: bool = True,
    allow_code: bool = False,
) -> Agreement:
    """Run the sweep of some results again, into another folder, and compare both.

    The sweep is that of the results, whatever its file says now.  After any interruption the same
    call resumes.

    Parameters
    ----------
    results : str or Path
        Folder of a sweep's results, its file or its name.
    output : str or Path, optional
        Folder of the new results; by default beside the former ones, under their name and
        ``-rerun``.
    data_dirs, workers, threads_per_worker, scheduler, cluster, progress, allow_code
        As for :func:`mkldist.sweep`.

    Returns
    -------
    Agreement
        How many runs are in both and equal to the bit, the largest differences of objectives and
        losses, and the runs whose certificates contradict each other; ``holds`` is False if there
        are such runs or some are in one of both alone.

    Raises
    ------
    mkldist.errors.InputError
        For results or data that cannot be used, or data that differ from those of the runs.
    mkldist.errors.ClusterError
        When workers cannot be started or the scheduler is lost.

    Examples
    --------
    >>> import mkldist
    >>> mkldist.rerun("results/quickstart").holds  # doctest: +SKIP
    True
    """
    from mkldist.from_python.given_sweep import given_folders
    from mkldist.from_python.worker_choice import worker_choice
    from mkldist.run.places import results_of
    from mkldist.run.rerun import Rerun, rerun_folder
    from mkldist.spec.arguments import check_flags, given_path

    check_flags(progress=progress, allow_code=allow_code)
    options = worker_choice(workers, threads_per_worker, scheduler, cluster)
    folder = results_of(given_path("results", results))
    new = rerun_folder(folder) if output is None else given_path("output", output)
    folders = tuple(given_folders("data_dirs", data_dirs))
    again = Rerun(folder, new, folders, options, allow_code)
    again.check_data()
    again.run(
        console=standard_error if progress else None,
        resume_command=f"the same call of mkldist.rerun, or mkldist rerun {folder} -o {new}",
    )
    return again.agreement()
