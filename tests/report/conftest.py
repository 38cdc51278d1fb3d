"""Made-up sweeps and the cluster that the tests of the report share."""

from collections.abc import Iterator

import pytest

from mkldist.report.sentences import Facts
from mkldist.run.cluster import ConnectOptions
from tests.report.made_up import made_up


@pytest.fixture(scope="package")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a scheduler with one worker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MKLDIST_CACHE", str(tmp_path_factory.mktemp("cache")))
        with ConnectOptions(n_workers=1).connect() as client:
            yield client.scheduler_info()["address"]


@pytest.fixture(scope="session")
def facts(tmp_path_factory) -> Facts:
    """Return a sweep with failed, waiting and unconverged runs."""
    return made_up(tmp_path_factory.mktemp("damaged"))


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Facts:
    """Return a finished sweep on one data set."""
    return made_up(tmp_path_factory.mktemp("finished"), damaged=False, datasets=("heart",))
