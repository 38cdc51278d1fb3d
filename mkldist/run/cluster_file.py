"""Clusters that a file describes.

A cluster file is YAML::

    class: dask_jobqueue.SLURMCluster   # dotted path of a distributed cluster class
    workers: 4                          # number of workers, unless the caller gives one
    options: {cores: 1, memory: 4GiB}   # keyword arguments of the class
    tls: ~/certificates                 # folder of certificates that encrypt its connections
    allow_unencrypted: true             # without them, have connections that others can read
"""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mkldist.errors import ClusterError, SpecError, UnfitClusterError, nearest
from mkldist.run.encryption import ADVICE_FILE, check_encrypted, with_home
from mkldist.run.interrupts import own_handlers

CLUSTER_FILE_KEYS = ("class", "options", "workers", "tls", "allow_unencrypted")
SILENCE, SECURITY = "silence_logs", "security"
CLOSE_SECONDS = 10
SAID_LENGTH = 300  # characters of what a class says
_NO_VALUE = (ValueError, KeyError, AttributeError, TypeError, ArithmeticError)
"""Errors of PyYAML at values that there are not, such as the 45th of a month."""


@dataclass(frozen=True)
class ClusterFile:
    """Content of a cluster file.

    Parameters
    ----------
    where : str
        Path of the file, for messages.
    cls : str
        Dotted path of the cluster class.
    workers : int, optional
        Number of workers.
    options : mapping of str to object
        Keyword arguments of the class.
    tls : Path, optional
        Folder of certificates, see :func:`mkldist.run.encryption.tls_settings`.
    allow_unencrypted : bool
        True if its connections to other machines need no encryption.
    """

    where: str
    cls: str
    workers: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    tls: Path | None = None
    allow_unencrypted: bool = False


def read_cluster_file(path: Path) -> ClusterFile:
    """Read and check a cluster file.

    Raises
    ------
    mkldist.errors.SpecError
        When it is missing, not YAML, has other keys than those above, or values of other types.
    """
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
        ("workers", workers is None or _is_count(workers), "a number of workers"),
        ("tls", tls is None or isinstance(tls, str), "a folder of certificates"),
        ("allow_unencrypted", isinstance(unencrypted, bool), "true or false"),
    ):
        if not right:
            raise SpecError(f"{where}: {key}", repr(content.get(key)), expected)
    folder = None if tls is None else path.parent / with_home(Path(tls))
    return ClusterFile(where, content["class"], workers, options, folder, unencrypted)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _mapping_in(path: Path) -> dict[Any, Any]:
    """Return the mapping that a YAML file holds."""
    import yaml

    where = str(path)
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        found = f"a file that cannot be read ({error.strerror or error})"
        raise SpecError(where, found, "a cluster file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SpecError(where, f"text that is not YAML: {error}", "a cluster file") from error
    except RecursionError as error:
        found = "lists or mappings in each other too deep to read"
        raise SpecError(where, found, "a cluster file") from error
    except _NO_VALUE as error:
        found = f"a date, number or the like that there is not ({error})"
        raise SpecError(where, found, "a cluster file", "Write text in quotes") from error
    if not isinstance(content, dict):
        raise SpecError(where, "no mapping", "keys class, options and, if wanted, workers")
    return content


def cluster_class(description: ClusterFile) -> Any:
    """Import the class that a cluster file names.

    Raises
    ------
    mkldist.errors.SpecError
        When there is no such class here.
    """
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
    """Start the cluster of a file.

    Parameters
    ----------
    description : ClusterFile
        The content of the file.
    n_workers : int, optional
        Number of workers, in place of that of the file.
    allow_unencrypted : bool
        True to allow what the key of the same name allows.

    Raises
    ------
    mkldist.errors.SpecError
        When there is no such class here, or it refuses the options.
    mkldist.errors.UnfitClusterError
        If other machines can reach its scheduler without encryption.
    mkldist.errors.ClusterError
        When the cluster does not start for another reason.
    """
    cls, options = cluster_class(description), _options(description)
    try:
        cluster = cls(**options)
        if not (allow_unencrypted or description.allow_unencrypted):
            _check_scheduler(cluster, description)
        wanted = n_workers or description.workers
        if wanted is not None:
            # Unlike a fixed scale, adapt replaces a job that was cancelled or ran out of time.
            cluster.adapt(minimum=wanted, maximum=wanted)
    except UnfitClusterError:
        raise
    except Exception as error:
        for cause in reversed([*_causes(error)]):
            if isinstance(cause, TypeError | ValueError):
                raise _refused(description, cls, cause) from error
        expected = "a cluster that starts"
        where, hint = description.where, "Check its options"
        raise not_started(where, description.cls, error, expected, hint) from error
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


def _check_scheduler(cluster: Any, description: ClusterFile) -> None:
    """Refuse and close a cluster whose scheduler others can reach without encryption."""
    try:
        check_encrypted(getattr(cluster, "scheduler_address", ""), description.where, ADVICE_FILE)
    except UnfitClusterError:
        with suppress(Exception):
            cluster.close(timeout=CLOSE_SECONDS)
        raise


def not_started(where: str, noun: str, error: Exception, expected: str, hint: str) -> ClusterError:
    """Return the error for a cluster that does not start."""
    said = f"{noun} that did not start: {type(error).__name__}: {_line(error)}"
    again = f"{hint}. Repeat the command to do the rest of the sweep"
    return ClusterError(where, said, expected, again)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__


def _refused(description: ClusterFile, cls: Any, error: Exception) -> SpecError:
    """Return the error for options that a cluster class refuses, at the option that it names."""
    said = _line(error)
    named = [name for name in description.options if f"'{name}'" in said]
    where, noun, hint = f"{description.where}: options", "options", ""
    if named:
        where, noun, hint = f"{where}.{named[0]}", "an option", nearest(named[0], _parameters(cls))
    return SpecError(
        where,
        f"{noun} that {description.cls} refuses ({type(error).__name__}: {said})",
        "keyword arguments of the class",
        hint or "Its documentation lists them",
    )


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
    said = " ".join(str(error).split())
    return said if len(said) <= SAID_LENGTH else f"{said[:SAID_LENGTH]} …"
