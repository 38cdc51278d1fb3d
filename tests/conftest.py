"""Options of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


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
