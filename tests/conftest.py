"""Options of the whole suite."""

import gc
import os
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from mkldist.core.memory import available_memory

if "PYTEST_XDIST_WORKER" in os.environ:  # one thread of linear algebra a process, before numpy
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

MEMORY = Path("/dev/shm")  # a file system in memory, where the system has one
ROOM = 4 * 2**30  # bytes; a worker of the suite takes less than 0.1 GiB at any time

gc.disable()  # while thousands of tests are collected, which all stay

# No test may fail because a machine is slow.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "thorough", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any")  # --hypothesis-profile thorough draws more


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--data-dir",
        default=os.environ.get("MKLDIST_DATA"),
        help="folder of further data sets, e.g. ionosphere.csv, for benchmarks that name one",
    )


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Run a quarter more processes than processors for quick tests: they wait for commands."""
    found = yield
    asked = "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ
    quick = "not slow" in config.option.markexpr
    return found + max(1, found // 4) if quick and not asked else found


@pytest.fixture(autouse=True)
def _machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tests call machine code, whether it was on disk before or not."""
    monkeypatch.setattr("mkldist.core.compiled.SECONDS_IN_PYTHON", 0.0)


@pytest.fixture
def compiled_folder(tmp_path: Path) -> Iterator[Path]:
    """Have numba keep machine code in an empty folder.

    Numba reads its variables again on the first compilation after one of them changed, which loses
    what a test wrote to its configuration.
    """
    import numba

    folder = tmp_path / "compiled"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NUMBA_CACHE_DIR", str(folder))
        numba.config.reload_config()
        yield folder
    numba.config.reload_config()


@pytest.fixture(scope="session")
def data_dir(request: pytest.FixtureRequest) -> Path | None:
    given = request.config.getoption("--data-dir")
    return Path(given) if given else None


def pytest_configure(config: pytest.Config) -> None:
    """Hold the folders of quick tests in memory; let processes of tests hear Ctrl-C.

    Tests make and remove tens of thousands of small files and folders, and a disk takes more time
    over them than the tests over all else.  A shell's background jobs ignore Ctrl-C.
    """
    if "not slow" in config.option.markexpr and _room_in_memory() >= ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _room_in_memory() -> int:
    """Return the bytes that files in memory may take: half of what is free."""
    free = shutil.disk_usage(MEMORY).free if os.access(MEMORY, os.W_OK) else 0
    return min(free, available_memory() // 2)


def pytest_collection_finish() -> None:
    """Let the collector of garbage leave what was collected, and collect what tests leave."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], object]:
    """Search files for examples in docstrings only if they hold one."""
    collectors = yield
    searched = [one for one in collectors if isinstance(one, DoctestModule)]
    if searched and ">>> " not in file_path.read_text("utf-8"):
        collectors = [one for one in collectors if one not in searched]
    return collectors
