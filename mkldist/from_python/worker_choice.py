"""The choice of workers as arguments of functions give it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mkldist.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from mkldist.run.cluster import ConnectOptions


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
    from mkldist.spec.arguments import check_flags, given_path

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
