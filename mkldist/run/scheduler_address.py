"""The address of a scheduler that a sweep is to join, tried before Dask tries it."""

from __future__ import annotations

import socket
import time
from urllib.parse import urlsplit

from mkldist.errors import ClusterError, UnfitClusterError

CONNECT_SECONDS = 3
PROBED = ("tcp", "tls", "ws", "wss")
OTHERS = ("inproc", "ucx")
"""Schemes of Dask's addresses: those of which a connection is tried first, and the others."""


def check_answers(address: str) -> None:
    """Refuse the address of a scheduler at which no program accepts a connection and speaks.

    Dask would try for its own, longer time, and a client that has failed takes seconds to close.

    Raises
    ------
    mkldist.errors.UnfitClusterError
        If the text is no address.
    mkldist.errors.ClusterError
        If nobody answers there.
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme in OTHERS:
        return
    if parts.scheme not in PROBED:
        raise _no_address(address, f"the unknown scheme {parts.scheme!r}")
    try:
        place = parts.hostname, parts.port
    except ValueError as error:
        raise _no_address(address, f"no address that can be parsed ({error})") from None
    if None in place:
        raise _no_address(address, "no host and port")
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
            said = (error.strerror or str(error)).lower()
            raise no_scheduler(address, f"no answer within {CONNECT_SECONDS} s: {said}") from None
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


def lost_scheduler() -> ClusterError:
    """Return the error for a scheduler that no longer answers."""
    return ClusterError(
        "scheduler",
        "a lost connection",
        "a scheduler that outlives the sweep",
        "Repeat the command: it keeps recorded runs and computes the others",
    )


def _no_address(address: str, found: str) -> UnfitClusterError:
    """Return the error of a text that is no address."""
    return UnfitClusterError(f"scheduler {address}", found, "an address such as tls://host:8786")
