"""Made-up sweeps that the tests of the report share."""

from __future__ import annotations

import pytest

from mkldist.report.facts import Facts
from tests.report.made_up import made_up


@pytest.fixture(scope="session")
def facts(tmp_path_factory) -> Facts:
    """Return a sweep with failed, waiting and unconverged runs."""
    return made_up(tmp_path_factory.mktemp("damaged"))


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Facts:
    """Return a finished sweep on one data set."""
    return made_up(tmp_path_factory.mktemp("finished"), damaged=False, datasets=("heart",))
