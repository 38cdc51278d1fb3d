"""Connections to workers: on this machine, of a running scheduler, or of a cluster from a file.

Who can connect to a Dask scheduler can run code in all its workers.  With TLS, all three sides show
a certificate that one authority has signed, so that nobody else can connect or listen.
"""

from __future__ import annotations

import importlib
import inspect
import ipaddress
import logging
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mkldist.core.terminal import delayed_interrupts, own_handlers
from mkldist.core.threads import n_processors
from mkldist.errors import ClusterError, SpecError, UnfitClusterError, nearest
from mkldist.run.local_workers import local_workers, scratch_of_workers, thread_worker
from mkldist.run.probe import check_scheduler

if TYPE_CHECKING:
    from distributed import Client

CA_FILE, CERTIFICATE, KEY = "ca.pem", "cert.pem", "key.pem"
"""Files of a folder of certificates, as ``cluster/tls/make_certificates.sh`` writes them."""
PRIVATE = ("tls", "wss", "inproc")
"""Schemes of addresses whose messages nobody else can read."""
ADVICE = (
    "Make certificates with cluster/tls/make_certificates.sh, start the scheduler with them, and "
    "give tls://HOST:PORT and --tls FOLDER; on a network whose every user you trust, "
    "--allow-unencrypted"
)
ADVICE_FILE = (
    "Make certificates with cluster/tls/make_certificates.sh and name their folder by the key tls; "
    "on a network whose every user you trust, write allow_unencrypted: true"
)


def check_encrypted(address: str, where: str, advice: str) -> None:
    """Refuse an address of another machine, or open to others, that is not encrypted."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme in PRIVATE or parts.hostname is None or is_loopback(parts.hostname):
        return
    raise UnfitClusterError(
        where,
        f"{address}, an address that other machines can reach, without encryption",
        "a tls:// address, since who connects to a scheduler can run code in its workers",
        advice,
    )


def is_loopback(host: str) -> bool:
    """Return True if a name or number of a host always means the machine that asks."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):  # it has no address: whoever connects will be told
        return False
    return all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found)


def tls_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of Dask that encrypt connections with the certificates of a folder."""
    folder = with_home(folder).absolute()
    for name in (CA_FILE, CERTIFICATE, KEY):
        _check_readable(folder / name)
    pair = {"cert": str(folder / CERTIFICATE), "key": str(folder / KEY)}
    roles = {
        f"distributed.comm.tls.{role}.{kind}": path
        for role in ("client", "scheduler", "worker")
        for kind, path in pair.items()
    }
    return {
        "distributed.comm.default-scheme": "tls",
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": str(folder / CA_FILE),
        **roles,
    }


def with_home(path: Path) -> Path:
    """Return a path whose ``~`` is replaced; as it is, if no user has the name after that."""
    with suppress(RuntimeError):
        return path.expanduser()
    return path


def check_certificates(address: str) -> None:
    """Refuse an address for which Dask has no certificates, or that has no use for them."""
    from distributed import Security

    where, security = f"scheduler {address}", Security()
    certificates = security.get_tls_config_for_role("client")
    encrypted = urlsplit(address).scheme in ("tls", "wss")
    if encrypted and not (certificates["ca_file"] and certificates["cert"]):
        expected = "the certificates with which the scheduler was started"
        raise UnfitClusterError(where, "no certificates for it", expected, "Give --tls FOLDER")
    if security.require_encryption and not encrypted:
        found = "an address without encryption, beside certificates that ask for it"
        raise UnfitClusterError(where, found, "an address such as tls://host:8786")


def _check_readable(path: Path) -> None:
    try:
        path.read_bytes()
    except (OSError, ValueError) as error:  # the latter of a path that no system has
        raise SpecError(
            str(path),
            f"a file that cannot be read ({getattr(error, 'strerror', None) or error})",
            f"the files {CA_FILE}, {CERTIFICATE} and {KEY} in the folder of certificates",
            "Make them with cluster/tls/make_certificates.sh FOLDER",
        ) from error


CONNECT_SECONDS = 3
PROBED = ("tcp", "tls", "ws", "wss")
OTHERS = ("inproc", "ucx")
"""Schemes of Dask's addresses: those of which a connection is tried first, and the others."""


def check_answers(address: str) -> None:
    """Refuse the address of a scheduler at which no program accepts a connection and speaks.

    Dask would try for its own, longer time, and a client that has failed takes seconds to close.
    """
    where, expected = f"scheduler {address}", "an address such as tls://host:8786"
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        place = parts.hostname, parts.port
    except ValueError as error:
        raise UnfitClusterError(where, f"no address ({error})", expected) from None
    if parts.scheme in OTHERS:
        return
    if parts.scheme not in PROBED or None in place:
        raise UnfitClusterError(where, "no host and port of a scheme of Dask", expected)
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            with socket.create_connection(place, timeout=CONNECT_SECONDS) as probe:
                speaks = parts.scheme != "tcp" or _speaks(probe)
        except OSError as error:
            # A scheduler that was started a moment ago refuses connections at first.
            if isinstance(error, ConnectionRefusedError) and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            cause = (error.strerror or str(error)).lower()
            raise no_scheduler(address, f"no answer within {CONNECT_SECONDS} s: {cause}") from None
        if not speaks:
            raise no_scheduler(address, f"a program that says nothing within {CONNECT_SECONDS} s")
        return


def _speaks(connection: socket.socket) -> bool:
    """Return True if the other side begins to speak, as schedulers do; others wait to be asked.

    Dask would wait without end for one that does not.
    """
    try:
        return bool(connection.recv(1))
    except OSError:
        return False


def no_scheduler(address: str | None, found: str) -> ClusterError:
    """Return the error of an address at which there is no scheduler."""
    return ClusterError(
        f"scheduler {address}",
        found,
        "a running Dask scheduler",
        "Check the address, and whether it begins with tls://",
    )


CLUSTER_FILE_KEYS = ("class", "options", "workers", "tls", "allow_unencrypted")
SILENCE, SECURITY = "silence_logs", "security"
CLOSE_SECONDS = 10
MESSAGE_LENGTH = 300  # characters of what a class says
_NO_VALUE = (ValueError, KeyError, AttributeError, TypeError, ArithmeticError)
"""Errors of PyYAML at values that there are not, such as the 45th of a month."""


@dataclass(frozen=True)
class ClusterFile:
    """Content of a cluster file."""

    where: str  # path of the file, for messages
    cls: str  # dotted path of the cluster class
    workers: int | None = None  # number of workers
    options: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of the class
    tls: Path | None = None  # folder of certificates, see :func:`mkldist.run.cluster.tls_settings`
    allow_unencrypted: bool = False  # True if its connections to other machines need no encryption


def read_cluster_file(path: Path) -> ClusterFile:
    """Read and check a cluster file."""
    where, content = str(path), _mapping_in(path)
    for key in content:
        if key not in CLUSTER_FILE_KEYS:
            expected = "one of " + ", ".join(CLUSTER_FILE_KEYS)
            raise SpecError(
                where, f"the unknown key {key!r}", expected, nearest(str(key), CLUSTER_FILE_KEYS)
            )
    options, workers = content.get("options") or {}, content.get("workers")
    tls, unencrypted = content.get("tls"), content.get("allow_unencrypted", False)
    for key, right, expected in (
        ("class", isinstance(content.get("class"), str), "such as dask_jobqueue.SLURMCluster"),
        ("options", isinstance(options, dict), "keyword arguments of the class"),
        (
            "workers",
            workers is None or (type(workers) is int and workers >= 1),
            "a number of workers",
        ),
        ("tls", tls is None or isinstance(tls, str), "a folder of certificates"),
        ("allow_unencrypted", isinstance(unencrypted, bool), "true or false"),
    ):
        if not right:
            found = "no mapping" if key == "options" else repr(content.get(key))
            raise SpecError(f"{where}: {key}", found, expected)
    folder = None if tls is None else path.parent / with_home(Path(tls))
    return ClusterFile(where, content["class"], workers, options, folder, unencrypted)


def _mapping_in(path: Path) -> dict[Any, Any]:
    """Return the mapping that a YAML file holds."""
    import yaml

    where = str(path)
    try:
        with path.open() as file:  # of a file, PyYAML's errors show no line, which may hold secrets
            content = yaml.safe_load(file)
    except OSError as error:
        found = f"a file that cannot be read ({error.strerror or error})"
        raise SpecError(where, found, "a cluster file") from error
    except (yaml.YAMLError, RecursionError, *_NO_VALUE) as error:
        found = f"text that is not YAML: {error}"
        raise SpecError(where, found, "a cluster file", "Write text in quotes") from error
    if not isinstance(content, dict):
        raise SpecError(where, "no mapping", "keys class, options and, if wanted, workers")
    return content


def cluster_class(description: ClusterFile) -> Any:
    """Import the class that a cluster file names."""
    module, _, name = description.cls.rpartition(".")
    try:
        with own_handlers():
            return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        hint = "Install it with: pip install 'mkldist[cluster]'" if "jobqueue" in module else ""
        raise SpecError(
            f"{description.where}: class",
            f"{description.cls}, which cannot be imported ({error})",
            "the dotted path of an installed cluster class",
            hint,
        ) from error


def started(
    description: ClusterFile, n_workers: int | None = None, *, allow_unencrypted: bool = False
) -> Any:
    """Start the cluster of a file."""
    cls, options = cluster_class(description), _options(description)
    try:
        cluster = cls(**options)
        if not (allow_unencrypted or description.allow_unencrypted):
            address = getattr(cluster, "scheduler_address", "")
            try:
                check_encrypted(address, description.where, ADVICE_FILE)
            except UnfitClusterError:
                _close_quietly(cluster)
                raise
        wanted = n_workers or description.workers
        if wanted is not None:
            # Unlike a fixed scale, adapt replaces a job that was cancelled or ran out of time.
            cluster.adapt(minimum=wanted, maximum=wanted)
    except UnfitClusterError:
        raise
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, TypeError | ValueError):
            cause = cause.__cause__
        where, name = description.where, description.cls
        if cause is not None:
            found = f"options that {name} refuses ({type(cause).__name__}: {_line(cause)})"
            expected = "keyword arguments of the class"
            hint = "Its documentation lists them"
            raise SpecError(f"{where}: options", found, expected, hint) from error
        expected = "a cluster that starts"
        raise not_started(where, name, error, expected, "Check its options") from error
    return cluster


def _options(description: ClusterFile) -> dict[str, Any]:
    """Return the keyword arguments of the class: those of the file, and what Dask is to do."""
    options, known = dict(description.options), _parameters(cluster_class(description))
    if SILENCE in known:  # Dask would log the errors that our message tells
        options.setdefault(SILENCE, logging.getLevelName(logging.CRITICAL))
    from distributed import Security

    security = Security()  # of Dask's settings
    if SECURITY in known and security.require_encryption:
        options.setdefault(SECURITY, security)
    return options


def not_started(where: str, noun: str, error: Exception, expected: str, hint: str) -> ClusterError:
    """Return the error for a cluster that does not start."""
    message = f"{noun} that did not start: {type(error).__name__}: {_line(error)}"
    again = f"{hint}. Repeat the command to do the rest of the sweep"
    return ClusterError(where, message, expected, again)


def _parameters(cls: Any) -> list[str]:
    """Return the names of the parameters of a class and its bases."""
    found: dict[str, None] = {}
    for base in inspect.getmro(cls) if inspect.isclass(cls) else [cls]:
        try:
            found |= dict.fromkeys(inspect.signature(base).parameters)
        except (TypeError, ValueError):  # a class of compiled code
            continue
    return list(found)


def _line(error: BaseException) -> str:
    """Return what an error says, in one line of bounded length."""
    message = " ".join(str(error).split())
    return message if len(message) <= MESSAGE_LENGTH else f"{message[:MESSAGE_LENGTH]} …"


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
    # A worker that sends no sign of life for so long is started anew.  A solver may hold the
    # interpreter for minutes, and closed connections are noticed at once.
    "distributed.scheduler.worker-ttl": "15 minutes",
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


@dataclass(frozen=True)
class ConnectOptions:
    """Choice of the workers of a sweep."""

    scheduler: str | None = None  # address of a running scheduler, such as ``tcp://host:8786``
    cluster_file: Path | None = None  # YAML description of a cluster to start
    # Number of workers; by default one per processor, or the number in the cluster file
    n_workers: int | None = None
    threads_per_worker: int = 1  # tasks that a worker does at the same time, each on one thread
    in_this_process: bool = False  # True if the only worker is a thread of this process
    # Folder of certificates for connections to other machines, in place of that of the cluster
    # file; see :func:`mkldist.run.cluster.tls_settings`
    tls: Path | None = None
    allow_unencrypted: bool = False  # True if connections to other machines need no encryption
    # True for workers of a plan, which are on other machines and need not exist
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
        """Return the number of tasks that workers will do at the same time; 0 if it is unknown."""
        if self.in_this_process:
            return 1
        if self.scheduler:
            return 0
        if self.cluster_file:
            return self.n_workers or read_cluster_file(self.cluster_file).workers or 0
        workers = self.n_workers or default_workers(self.threads_per_worker)
        return workers * self.threads_per_worker

    def check(self) -> None:
        """Refuse options that contradict each other, or a scheduler that others can listen to."""
        if self.scheduler and self.cluster_file:
            raise SpecError("--scheduler and --cluster", "both options", "one of them")
        if self.scheduler and not self.allow_unencrypted:
            check_encrypted(self.scheduler, "--scheduler", ADVICE)

    def connect(self) -> Any:
        """Return the context of the workers' client, see :func:`connect`."""
        return thread_worker() if self.in_this_process else connect(self)


@contextmanager
def connect(options: ConnectOptions) -> Iterator[Client]:
    """Start or join workers, yield a client of them, and at the end stop what was started."""
    with joined(options) as client:
        if not options.are_local:
            check_scheduler(client)
        yield client


@contextmanager
def joined(options: ConnectOptions) -> Iterator[Client]:
    """Do as :func:`connect` does, but take workers as they are: nothing is sent to them."""
    options.check()
    import dask
    from distributed import Client

    description = read_cluster_file(options.cluster_file) if options.cluster_file else None
    with ExitStack() as stack:
        settings = _dask_settings(options, description)
        if options.scheduler is None:
            settings |= {"temporary-directory": stack.enter_context(scratch_of_workers())}
        stack.enter_context(dask.config.set(settings))
        # The coordinator reports lost workers and schedulers itself; Dask's log would repeat it.
        stack.enter_context(_silent_logs())
        target: Any = options.scheduler
        if options.scheduler is not None:
            check_certificates(options.scheduler)
            check_answers(options.scheduler)
        elif description is not None:
            with delayed_interrupts():  # a cluster that has half started could not be closed
                target = started(
                    description, options.n_workers, allow_unencrypted=options.allow_unencrypted
                )
                stack.callback(_close_quietly, target)
        else:
            target = stack.enter_context(_local(options))
        try:
            client = Client(target, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, MemoryError) as error:
            # The last comes of the lengths that Dask reads in what other programs say.
            message = "" if isinstance(error, MemoryError) else str(error)
            raise no_scheduler(options.scheduler, message or NO_DASK) from error
        stack.callback(_close_quietly, client)
        yield client


def _dask_settings(options: ConnectOptions, description: ClusterFile | None) -> dict[str, Any]:
    """Return the settings of Dask for a choice of workers."""
    settings = dict(DASK_CONFIG)
    if not (description and (options.n_workers or description.workers)):
        settings |= KEEP_LOST_WORKERS
    certificates = options.tls or (description and description.tls)
    if certificates and not options.are_local:
        settings |= tls_settings(certificates)
    return settings


@contextmanager
def _local(options: ConnectOptions) -> Iterator[str]:
    """Start workers of this machine, yield the scheduler's address, and stop them at the end."""
    threads = options.threads_per_worker
    n_workers = options.n_workers or default_workers(threads)
    with ExitStack() as stack:
        workers = local_workers(n_workers, threads, WORKER_ENVIRON)
        try:
            address = stack.enter_context(workers)
        except (OSError, RuntimeError) as error:
            raise not_started(
                "workers",
                "worker processes of this machine",
                error,
                "processes that stay",
                "In Python, workers=0 needs no other process",
            ) from error
        yield address


def default_workers(threads_per_worker: int = 1) -> int:
    """Return the number of workers that keep every processor of this machine busy."""
    return max(1, n_processors() // threads_per_worker)


class _JobErrors(logging.Handler):
    """Keeps the last error of starting workers, such as what sbatch said: Dask only logs it."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.last = " ".join(str(record.exc_info[1]).split())


_JOB_ERRORS = _JobErrors(logging.ERROR)


def no_worker(words: str) -> str:
    """Return words about missing workers, with the error of starting them if there was any."""
    error = _JOB_ERRORS.last
    return f"{words}; the last attempt to start workers failed: {error:.400}" if error else words


@contextmanager
def _silent_logs() -> Iterator[None]:
    """Keep Dask's log from the terminal, and asyncio's of tasks that nobody awaits after Ctrl-C."""
    asyncio, of_dask = logging.getLogger("asyncio"), logging.getLogger("distributed").handlers
    silenced: list[logging.Logger | logging.Handler] = [asyncio, *of_dask]
    before = [one.level for one in silenced]
    for one in silenced:
        one.setLevel(logging.CRITICAL)
    _JOB_ERRORS.last, starting = "", logging.getLogger("tornado.application")
    starting.addHandler(_JOB_ERRORS)
    try:
        yield
    finally:
        starting.removeHandler(_JOB_ERRORS)
        for one, level in zip(silenced, before, strict=True):
            one.setLevel(level)


def _close_quietly(closable: Any) -> None:
    """Close a client or cluster; ignore errors, since all records are in storage already."""
    with suppress(Exception), delayed_interrupts():
        closable.close(timeout=CLOSE_SECONDS)
