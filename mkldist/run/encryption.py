"""Encryption between this process, a scheduler and its workers.

Who can connect to a Dask scheduler can run code in all its workers.  With TLS, all three sides show
a certificate that one authority has signed, so that nobody else can connect or listen.
"""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkldist.errors import SpecError, UnfitClusterError

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
    """Refuse an address of another machine, or open to others, that is not encrypted.

    Raises
    ------
    mkldist.errors.UnfitClusterError
        If others than this machine's users could read and change what is sent.
    """
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
    """Return True if a name or number of a host always means the machine that asks.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("10.0.0.1")
    (True, True, False)
    """
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
    """Return the settings of Dask that encrypt all connections with the certificates of a folder.

    Parameters
    ----------
    folder : Path
        Folder of ``ca.pem``, ``cert.pem`` and ``key.pem``, under one path on all machines.

    Raises
    ------
    mkldist.errors.SpecError
        If one of them is missing or cannot be read.
    """
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
    """Refuse an address for which Dask has no certificates, or that has no use for them.

    Raises
    ------
    mkldist.errors.UnfitClusterError
        If it begins with ``tls://`` and there are none, or with ``tcp://`` and encryption is asked.
    """
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
