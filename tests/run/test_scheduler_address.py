"""Addresses of schedulers: those at which nobody answers are told at once and by their reason."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from mkldist.errors import ClusterError
from mkldist.run import cluster as scheduler_address
from mkldist.run.cluster import check_answers


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (
            "nonsense",
            "scheduler nonsense: found no host and port; expected an address such as tls://",
        ),
        (
            "tcp://host:port",
            "scheduler tcp://host:port: found no address that can be parsed .Port could",
        ),
        (
            "ftp://host:8786",
            "scheduler ftp://host:8786: found the unknown scheme 'ftp'; expected an",
        ),
        ("wss://127.0.0.1:1", r"no answer within 0\.3 s: connection refused"),
        ("tcp://127.0.0.1:1", r"no answer within 0\.3 s: connection refused"),
        ("tcp://a-name-of-no-host.invalid:8786", r"no answer within 0\.3 s: .*name"),
    ],
)
def test_an_address_without_a_scheduler_is_told(monkeypatch, address, said):
    monkeypatch.setattr(scheduler_address, "CONNECT_SECONDS", 0.3)
    with pytest.raises(ClusterError, match=said):
        check_answers(address)


def test_a_scheduler_that_is_about_to_start_is_waited_for():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def listen():
        time.sleep(0.3)
        with socket.create_server(("127.0.0.1", port)) as server:
            connection, _ = server.accept()
            connection.sendall(b"a greeting")
            connection.close()

    starting = threading.Thread(target=listen, daemon=True)
    starting.start()
    check_answers(f"tcp://127.0.0.1:{port}")
    check_answers("inproc://is/not/tried:1")
    starting.join()


@pytest.mark.parametrize("closes", [False, True])
def test_a_program_that_is_no_scheduler_is_told(monkeypatch, closes):
    """It accepts connections by the system, and says nothing; Dask would wait without end."""
    monkeypatch.setattr(scheduler_address, "CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        if closes:
            threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        with pytest.raises(ClusterError, match="a program that says nothing"):
            check_answers(address)
