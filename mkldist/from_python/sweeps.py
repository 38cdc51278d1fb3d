"""Sweeps from Python: :func:`sweep` and :func:`rerun` do what these commands do."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.core.consoles import command_line, standard_error
from mkldist.errors import FailedRunsWarning, InputError, SpecError
from mkldist.from_python.short_errors import with_short_errors

if TYPE_CHECKING:
    import xarray as xr

    from mkldist.analysis.comparison import Agreement
    from mkldist.run.cluster import ConnectOptions
    from mkldist.run.sweep import SweepOutcome
    from mkldist.spec.model import SweepSpec


def worker_choice(
    workers: int | None,
    threads: int,
    scheduler: str | None,
    cluster: str | Path | None,
    tls: str | Path | None = None,
    *,
    allow_unencrypted: bool = False,
) -> ConnectOptions:
    """Return the choice of workers that some arguments make.

    Parameters
    ----------
    workers, threads, scheduler, cluster, tls, allow_unencrypted
        As for :func:`mkldist.sweep`.

    Raises
    ------
    mkldist.errors.SpecError
        For wrong values, or arguments that contradict each other.
    """
    from mkldist.from_python.given_sweep import check_count
    from mkldist.run.cluster import ConnectOptions
    from mkldist.spec.checks import check_flags, given_path

    check_flags(allow_unencrypted=allow_unencrypted)
    if scheduler is not None and not isinstance(scheduler, str):
        raise SpecError("scheduler", f"{scheduler!r:.60}", 'an address such as "tcp://host:8786"')
    check_count("workers", workers, 0)
    check_count("threads_per_worker", threads, 1)
    options = ConnectOptions(
        scheduler,
        None if cluster is None else given_path("cluster", cluster),
        workers or None,
        threads,
        tls=None if tls is None else given_path("tls", tls),
        allow_unencrypted=allow_unencrypted,
    )
    options = replace(options, in_this_process=True) if workers == 0 else options
    options.check()
    return options


@with_short_errors
def sweep(
    spec: str | Path | Mapping[str, Any] | SweepSpec,
    data: Mapping[str, Any] | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
    data_dirs: str | Path | Sequence[str | Path] = (),
    workers: int | None = None,
    threads_per_worker: int = 1,
    scheduler: str | None = None,
    cluster: str | Path | None = None,
    retry_failed: bool = False,
    progress: bool = True,
    allow_code: bool = False,
    tls: str | Path | None = None,
    allow_unencrypted: bool = False,
) -> xr.DataTree:
    """Do all runs of a sweep that are not recorded yet, and return its results.

    After any interruption the same call resumes: a run that is recorded in the output folder is
    never repeated.  The folder keeps the words and data of a sweep that did not come from a file,
    so that the commands (``mkldist status``, ``mkldist sweep``) read and resume it too.

    Parameters
    ----------
    spec : str, Path or mapping
        A sweep file, the name of a sweep or the folder of its results; or a mapping with the keys
        of a sweep file, whose lists of kernels may hold ``mkldist.kernels.Gaussian(...)``.
    data : mapping of str to data, optional
        Data sets by name: ``(X, y)``, ``(X, y, groups)``, a DataFrame that holds the label column,
        or a mapping with ``x`` (n, d) or ``grams`` (M, n, n), ``y`` (n,), and perhaps ``groups``,
        ``order``, ``feature_names``, ``train``, ``test`` and ``unlabelled``.  The sweep needs no
        entry in ``datasets`` for them, unless it sets other keys such as ``task``.
    changes : mapping of str to object, optional
        Values that replace those of the sweep, as ``--set`` does: ``{"methods.level.C": [1, 10]}``.
    output : str or Path, optional
        Folder of the results; by default ``results/NAME``.
    data_dirs : str or Path, or sequence of them
        Folders in which to look up data sets.
    workers : int, optional
        Worker processes; by default one for each processor.  0 has a thread of this process do
        everything, as a small sweep does by itself.
    threads_per_worker : int
        Tasks that each worker does at the same time.
    scheduler : str, optional
        Address of a running Dask scheduler to join.
    cluster : str or Path, optional
        YAML file of a cluster to start.
    retry_failed : bool
        True to repeat runs that are recorded as failed.
    progress : bool
        True to show the progress on standard error, or below the cell of a notebook.
    allow_code : bool
        True if kernel functions that the sweep names as ``"module:function"``, and what it writes
        of regularisers, may be imported and called.
    tls : str or Path, optional
        Folder of certificates for the scheduler and its workers.
    allow_unencrypted : bool
        True if a scheduler on another machine needs no encryption.

    Returns
    -------
    xarray.DataTree
        As :func:`mkldist.open_results` returns it.

    Warns
    -----
    mkldist.errors.FailedRunsWarning
        If runs failed; their error is in the results and in ``mkldist status``.

    Raises
    ------
    mkldist.errors.InputError
        For words, data or an output folder that cannot be used.
    mkldist.errors.ClusterError
        When workers cannot be started or the scheduler is lost.
    KeyboardInterrupt
        After Ctrl-C or the interruption of a cell; it says how to resume.

    Examples
    --------
    >>> import mkldist
    >>> tree = mkldist.sweep(
    ...     {
    ...         "name": "mine",
    ...         "banks": [{"family": "xu2008"}],
    ...         "methods": [{"name": "level", "C": [1, 10, 100]}],
    ...     },
    ...     data={"mine": (X, y)},
    ... )  # doctest: +SKIP
    >>> tree["mine/level"].test_error.mean("split")  # doctest: +SKIP
    """
    from mkldist.from_python.given_sweep import SweepInputs, given_folders
    from mkldist.results.tree import open_results
    from mkldist.spec.checks import check_flags

    check_flags(retry_failed=retry_failed, progress=progress, allow_code=allow_code)
    given = SweepInputs.of(spec, data, changes, output)
    options = worker_choice(
        workers,
        threads_per_worker,
        scheduler,
        cluster,
        tls,
        allow_unencrypted=allow_unencrypted,
    )
    of_file = None
    if changes:
        with suppress(InputError):  # of words that are wrong without the changes
            of_file = SweepInputs.of(spec, data, None, output).spec
    outcome = _run(
        given,
        options,
        given_folders("data_dirs", data_dirs),
        retry_failed=retry_failed,
        progress=progress,
        allow_code=allow_code,
        of_file=of_file,
    )
    tree = open_results(outcome.path)
    _warn_of_failures(outcome)
    return tree


def _run(
    given: Any,
    options: ConnectOptions,
    data_dirs: Sequence[Path],
    *,
    retry_failed: bool,
    progress: bool,
    allow_code: bool,
    of_file: SweepSpec | None,
) -> SweepOutcome:
    """Run the sweep, and say at its end where the results are."""
    from mkldist.run.sweep import run_sweep

    with given.naming():
        return run_sweep(
            given.spec,
            origin=given.origin,
            data_dirs=data_dirs,
            output=given.output,
            connect_options=options,
            retry_failed=retry_failed,
            console=standard_error if progress else None,
            resume_command="the same call of mkldist.sweep, or "
            + command_line("sweep", given.output),
            kept=given.kept,
            allow_code=allow_code,
            of_file=of_file,
        )


def _warn_of_failures(outcome: SweepOutcome) -> None:
    """Warn if runs failed or have lost their records."""
    if outcome.failed:
        from mkldist.results.status import sweep_status

        first = sweep_status(outcome.path).failed[0]
        warnings.warn(
            f"{outcome.failed} of {len(outcome.plan.runs)} runs failed, such as {first.node}, "
            f"split {first.split}: {first.error}. retry_failed=True repeats them.",
            FailedRunsWarning,
            stacklevel=4,
        )
    if outcome.waiting:
        warnings.warn(
            f"{outcome.waiting} runs have no record that can be read. Repeat the call.",
            FailedRunsWarning,
            stacklevel=4,
        )


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
    from mkldist.run.paths import results_of
    from mkldist.run.rerun import Rerun, rerun_folder
    from mkldist.spec.checks import check_flags, given_path

    check_flags(progress=progress, allow_code=allow_code)
    options = worker_choice(workers, threads_per_worker, scheduler, cluster)
    folder = results_of(given_path("results", results))
    new = rerun_folder(folder) if output is None else given_path("output", output)
    folders = tuple(given_folders("data_dirs", data_dirs))
    again = Rerun(folder, new, folders, options, allow_code)
    again.check_data()
    again.run(
        console=standard_error if progress else None,
        resume_command="the same call of mkldist.rerun, or "
        + command_line("rerun", folder, "-o", new),
    )
    return again.agreement()
