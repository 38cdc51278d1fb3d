"""The address of a scheduler that a sweep is to join, tried before Dask tries it."""

from __future__ import annotations

import socket
import time
from urllib.parse import urlsplit

from mkldist.errors import ClusterError

CONNECT_SECONDS = 3


def check_answers(address: str) -> None:
    """Refuse the address of a scheduler at which no program accepts a connection.

    Dask would try for its own, longer time, and a client that has failed takes seconds to close.

    Raises
    ------
    mkldist.errors.ClusterError
        Naming the address and the reason.
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme not in ("tcp", "tls"):
        return
    try:
        place = parts.hostname, parts.port
    except ValueError as error:
        raise no_scheduler(address, f"no address that can be parsed ({error})") from None
    if None in place:
        raise no_scheduler(
            address, "no host and port", example="an address such as tcp://host:8786"
        )
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            socket.create_connection(place, timeout=CONNECT_SECONDS).close()
        except OSError as error:
            # A scheduler that was started a moment ago refuses connections at first.
            if isinstance(error, ConnectionRefusedError) and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            said = (error.strerror or str(error)).lower()
            raise no_scheduler(address, f"no answer within {CONNECT_SECONDS} s: {said}") from None
        return


def no_scheduler(address: str | None, found: str, example: str = "") -> ClusterError:
    """Return the error of an address at which there is no scheduler."""
    return ClusterError(
        f"scheduler {address}",
        found,
        example or "a running Dask scheduler",
        "Check the address, or omit --scheduler to use this machine",
    )
