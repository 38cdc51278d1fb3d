"""Options of the whole suite."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:  # one thread of linear algebra a process, before numpy
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

# No test may fail because a machine is slow.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--data-dir",
        default=os.environ.get("MKLDIST_DATA"),
        help="folder of further data sets, e.g. ionosphere.csv, for benchmarks that name one",
    )


@pytest.fixture(scope="session")
def data_dir(request: pytest.FixtureRequest) -> Path | None:
    given = request.config.getoption("--data-dir")
    return Path(given) if given else None


def pytest_configure() -> None:
    """Let processes of tests hear Ctrl-C, which a shell's background jobs ignore."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
