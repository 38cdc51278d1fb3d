"""Connections to workers: on this machine, of a running scheduler, or of a cluster from a file."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.errors import InputError, SpecError, UnfitClusterError
from mkldist.processors import n_processors
from mkldist.run import fork_server
from mkldist.run.cluster_file import ClusterFile, not_started, read_cluster_file, started
from mkldist.run.encryption import (
    ADVICE,
    check_certificates,
    check_encrypted,
    tls_settings,
)
from mkldist.run.interrupts import delayed_interrupts
from mkldist.run.scheduler_address import CONNECT_SECONDS, check_answers, no_scheduler
from mkldist.run.scratch import scratch_of_workers
from mkldist.run.thread_worker import thread_worker
from mkldist.run.worker_versions import check_scheduler

if TYPE_CHECKING:
    from distributed import Client

CLOSE_SECONDS = 10
LOCAL_HOST = "127.0.0.1"
NO_DASK = "a program that does not speak as schedulers do"

# By default Dask makes malloc return freed memory to the system at every chance.  Each temporary
# matrix then needs fresh pages, which doubles the time of a batch: keep memory for the next matrix.
WORKER_ENVIRON = {
    **{f"{name}_NUM_THREADS": 1 for name in ("OMP", "MKL", "OPENBLAS", "NUMBA")},
    "MALLOC_TRIM_THRESHOLD_": 256 * 2**20,
    "MALLOC_MMAP_THRESHOLD_": 64 * 2**20,
}
DASK_CONFIG: dict[str, Any] = {
    # Pages of a memory-mapped bank count as memory of the process, although the system can drop
    # them at any time: limits on memory would spill, pause or kill workers without need.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    # A solver may hold the interpreter for minutes, in which its worker sends no sign of life.
    # The scheduler still notices a closed connection at once.
    "distributed.scheduler.worker-ttl": "1 hour",
    "distributed.scheduler.unknown-task-duration": "30s",
    # A task whose workers died twice goes back to the coordinator, which tries its runs alone.
    "distributed.scheduler.allowed-failures": 1,
    # A stolen task would leave the node whose cache holds its bank.
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.profile.enabled": False,
    "distributed.nanny.pre-spawn-environ": WORKER_ENVIRON,
    "distributed.admin.tick.limit": "10 minutes",
    # The scheduler keeps its last messages to each worker, with all the runs of their tasks.
    "distributed.admin.low-level-log-length": 10,
}
# Dask looks for a lost worker again after lost-worker-timeout, and gives it up if it is absent.
# A worker that its nanny restarts a second time at that moment would be given up too, and a cluster
# that does not replace workers would be left without any.  Its nanny restarts it in any case.
KEEP_LOST_WORKERS: dict[str, Any] = {"distributed.deploy.lost-worker-timeout": "365 days"}
LOCAL: dict[str, Any] = {"distributed.worker.multiprocessing-method": fork_server.METHOD}


@dataclass(frozen=True)
class ConnectOptions:
    """Choice of the workers of a sweep.

    Parameters
    ----------
    scheduler : str, optional
        Address of a running scheduler, such as ``tcp://host:8786``.
    cluster_file : Path, optional
        YAML description of a cluster to start.
    n_workers : int, optional
        Number of workers; by default one per processor, or the number in the cluster file.
    threads_per_worker : int
        Tasks that a worker does at the same time, each on one thread.
    dashboard_port : int, optional
        Port of the dashboard of workers of this machine; by default one that is free.
    in_this_process : bool
        True if the only worker is a thread of this process.
    tls : Path, optional
        Folder of certificates for connections to other machines, in place of that of the cluster
        file; see :func:`mkldist.run.encryption.tls_settings`.
    allow_unencrypted : bool
        True if connections to other machines need no encryption.
    elsewhere : bool
        True for workers of a plan, which are on other machines and need not exist.
    """

    scheduler: str | None = None
    cluster_file: Path | None = None
    n_workers: int | None = None
    threads_per_worker: int = 1
    dashboard_port: int | None = None
    in_this_process: bool = False
    tls: Path | None = None
    allow_unencrypted: bool = False
    elsewhere: bool = False

    @property
    def are_local(self) -> bool:
        """True if the workers are started on this machine for the sweep."""
        return not (self.scheduler or self.cluster_file or self.elsewhere)

    @property
    def are_default(self) -> bool:
        """True if the user has chosen nothing about the workers."""
        return self == ConnectOptions()

    def limited_to(self, n_tasks: int) -> ConnectOptions:
        """Return options that start at most as many local workers as there are tasks."""
        if not self.are_local or self.n_workers is not None:
            return self
        workers = min(default_workers(self.threads_per_worker), n_tasks)
        return replace(self, n_workers=max(1, workers))

    def of_execution(self, execution: str) -> ConnectOptions:
        """Return options for an execution: isolated runs have this machine for themselves."""
        if execution != "isolated" or not self.are_local:
            return self
        return replace(self, n_workers=1, threads_per_worker=1)

    def expected_threads(self) -> int:
        """Return the number of tasks that workers will do at the same time; 0 if it is unknown.

        Raises
        ------
        mkldist.errors.SpecError
            For a cluster file that cannot be used.
        """
        if self.in_this_process:
            return 1
        if self.scheduler:
            return 0
        if self.cluster_file:
            return self.n_workers or read_cluster_file(self.cluster_file).workers or 0
        workers = self.n_workers or default_workers(self.threads_per_worker)
        return workers * self.threads_per_worker

    def check(self) -> None:
        """Refuse options that contradict each other, or a scheduler that others can listen to.

        Raises
        ------
        mkldist.errors.SpecError
            For both a scheduler and a cluster file, or the port of a dashboard with either.
        mkldist.errors.UnfitClusterError
            For the address of a scheduler on another machine without encryption.
        """
        if self.scheduler and self.cluster_file:
            raise SpecError("--scheduler and --cluster", "both options", "one of them")
        if self.dashboard_port and not self.are_local:
            where, wanted = f"--dashboard-port {self.dashboard_port}", "workers of this machine"
            raise SpecError(where, "--scheduler or --cluster", wanted, "Omit --dashboard-port")
        if self.scheduler and not self.allow_unencrypted:
            check_encrypted(self.scheduler, "--scheduler", ADVICE)

    def prepare(self) -> None:
        """Start the process that workers of this machine are forked from; return at once."""
        if self.are_local and not self.in_this_process:
            fork_server.start_fork_server(WORKER_ENVIRON)

    def connect(self) -> Any:
        """Return the context of the workers' client, see :func:`connect`."""
        return thread_worker() if self.in_this_process else connect(self)


@contextmanager
def connect(options: ConnectOptions) -> Iterator[Client]:
    """Start or join workers, yield a client of them, and at the end stop what was started.

    Which workers of other machines a sweep can use, :class:`mkldist.run.roster.Roster` tells.

    Parameters
    ----------
    options : ConnectOptions
        Choice of the workers.  A scheduler that was running before is left running.

    Raises
    ------
    mkldist.errors.SpecError
        For a cluster file or certificates that cannot be used, options that contradict each other,
        or the port of another program for the dashboard.
    mkldist.errors.UnfitClusterError
        If others can listen to the scheduler, or it has no mkldist or other versions.
    mkldist.errors.ClusterError
        When the scheduler does not answer, or the cluster does not start.
    """
    with joined(options) as client:
        if options.are_local:
            _prepare_workers(client)
        else:
            check_scheduler(client)
        yield client


@contextmanager
def joined(options: ConnectOptions) -> Iterator[Client]:
    """Do as :func:`connect` does, but take workers as they are: nothing is sent to them."""
    options.check()
    if options.dashboard_port:
        _check_port(options.dashboard_port)
    import dask
    from distributed import Client
    from distributed.utils import silence_logging_cmgr

    description = read_cluster_file(options.cluster_file) if options.cluster_file else None
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(_dask_settings(options, description)))
        if options.are_local:
            stack.enter_context(fork_server.without_main_module())
        # The coordinator reports lost workers and schedulers itself; Dask's log would repeat it.
        stack.enter_context(silence_logging_cmgr(logging.CRITICAL))
        stack.enter_context(_silent_asyncio())
        target: Any = options.scheduler
        if options.scheduler is not None:
            check_certificates(options.scheduler)
            check_answers(options.scheduler)
        else:
            stack.enter_context(scratch_of_workers())
            with delayed_interrupts():  # a cluster that has half started could not be closed
                target = _start(description, options)
                stack.callback(_close_quietly, target)
        try:
            client = Client(target, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, MemoryError) as error:
            # The last comes of the lengths that Dask reads in what other programs say.
            said = "" if isinstance(error, MemoryError) else str(error)
            raise no_scheduler(options.scheduler, said or NO_DASK) from error
        stack.callback(_close_quietly, client)
        yield client


def _dask_settings(options: ConnectOptions, description: ClusterFile | None) -> dict[str, Any]:
    """Return the settings of Dask for a choice of workers."""
    settings = dict(DASK_CONFIG)
    if not (description and (options.n_workers or description.workers)):
        settings |= KEEP_LOST_WORKERS
    if options.are_local:
        settings |= LOCAL
    certificates = options.tls or (description and description.tls)
    if certificates and not options.are_local:
        settings |= tls_settings(certificates)
    return settings


def _check_port(port: int) -> None:
    """Refuse a port of the dashboard that another program has."""
    where = f"--dashboard-port {port}"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCAL_HOST, port))
        except OSError as error:
            found = f"a port that cannot be used ({(error.strerror or str(error)).lower()})"
            raise SpecError(where, found, "a free port", "Choose another one") from None


def _start(description: ClusterFile | None, options: ConnectOptions) -> Any:
    """Start the cluster of a file, or workers of this machine."""
    if description is not None:
        return started(description, options.n_workers, allow_unencrypted=options.allow_unencrypted)
    threads = options.threads_per_worker
    n_workers = options.n_workers or default_workers(threads)
    try:
        return _local_cluster(n_workers, threads, options.dashboard_port or 0)
    except InputError:
        raise
    except Exception as error:
        raise not_started(
            "workers",
            "worker processes of this machine",
            error,
            "processes that stay",
            "In Python, workers=0 needs no other process",
        ) from error


def _local_cluster(n_workers: int, threads: int, dashboard_port: int) -> Any:
    """Start workers of this machine, without a limit on memory, in processes."""
    from distributed import LocalCluster

    fork_server.start_fork_server(WORKER_ENVIRON)
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads,
        processes=True,
        memory_limit=0,
        dashboard_address=f"{LOCAL_HOST}:{dashboard_port}",
        env=fork_server.workers_environment(),
        silence_logs="CRITICAL",
    )


def default_workers(threads_per_worker: int = 1) -> int:
    """Return the number of workers that keep every processor of this machine busy."""
    return max(1, n_processors() // threads_per_worker)


def _prepare_workers(client: Client) -> None:
    """Install the plugin that every worker of this machine has, also those that replace others."""
    from mkldist.worker.setup import WorkerSetup

    try:
        client.register_plugin(WorkerSetup(), name="mkldist")
    except Exception as error:
        raise UnfitClusterError(
            "workers",
            f"a worker that cannot use mkldist: {type(error).__name__}: {error}",
            "the same version of mkldist in the environment of every worker",
        ) from error


@contextmanager
def _silent_asyncio() -> Iterator[None]:
    """Keep asyncio from printing tracebacks of Dask's tasks that nobody awaits after Ctrl-C."""
    logger = logging.getLogger("asyncio")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _close_quietly(closable: Any) -> None:
    """Close a client or cluster; ignore errors, since all records are in storage already."""
    with suppress(Exception), delayed_interrupts():
        closable.close(timeout=CLOSE_SECONDS)
