"""Every writer of the package that renames, to be killed between its temporary file and the rename.

Run as ``python durable_writers.py ROOT``: each writer works in a folder of its own below ROOT, in
a process that is killed when the file is to take its name.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mkldist.bank.bank import TileLayout
from mkldist.bank.cache import NodeCache
from mkldist.bank.store import BankShape, BankStore
from mkldist.core.durable import remove_temporaries, write_file
from mkldist.data.dataset import Dataset, Split
from mkldist.data.snapshot import load_snapshot, save_snapshot
from mkldist.kernels.graph import graph_laplacian
from mkldist.results.export import export
from mkldist.results.folder import claimed, read_manifest
from mkldist.results.layout import lay_out
from mkldist.results.tree import open_results
from mkldist.run.bank_refs import cached_laplacian
from mkldist.spec.datasets import GraphSpec
from tests.results.sweeps import made_up_facts, made_up_plan

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.array([1.0, -1.0] * 6)
PLAN = made_up_plan(n_splits=1)
LAYOUT = TileLayout(12, 4)


def write_document(root: Path) -> None:
    remove_temporaries(root)
    write_file(root / "document.json", [b'{"a": 1}'])


def claim_folder(root: Path) -> None:
    with claimed(root, "sweep"):
        assert read_manifest(root).sweep == "sweep"


def write_snapshot(root: Path) -> None:
    dataset, splits = Dataset("d", X, Y, ("a", "b")), [Split(np.arange(8), np.arange(8, 12))]
    save_snapshot(root, dataset, splits)
    assert load_snapshot(root)[0].fingerprint == dataset.fingerprint


def write_csv(root: Path) -> None:
    _export(root, "csv")


def write_netcdf(root: Path) -> None:
    _export(root, "netcdf")


def write_bank(root: Path) -> None:
    store = BankStore.create(root, "bank", BankShape(5, LAYOUT, "float64"))
    store.write(store.shape.blocks[0].index, np.zeros(store.shape.blocks[0].shape))


def write_cached_bank(root: Path) -> None:
    assert NodeCache(root / "cache").open(BankStore.open(root, "bank")) is not None


def write_laplacian(root: Path) -> None:
    graph = GraphSpec(neighbours=3)
    found = cached_laplacian(X, graph, root)
    np.testing.assert_array_equal(found.toarray(), graph_laplacian(X, graph).toarray())


def make_layout(root: Path) -> None:
    remove_temporaries(root)  # as who claims the folder does
    _prepare(root)
    assert open_results(root)["heart/level"].sizes["split"] == 1


WRITERS: dict[str, Callable[[Path], None]] = {
    one.__name__: one
    for one in (
        write_document, claim_folder, write_snapshot, write_csv, write_netcdf,
        write_bank, write_cached_bank, write_laplacian, make_layout,
    )
}  # fmt: skip


def _prepare(root: Path) -> None:
    lay_out(root, PLAN, made_up_facts(PLAN))


def _export(root: Path, kind: str) -> None:
    (root / "to").mkdir(exist_ok=True)
    export(root, kind, root / "to" / "exported", overwrite=True)


def _prepared(name: str, root: Path) -> None:
    """Put there what a writer starts from."""
    root.mkdir()
    if name in ("write_csv", "write_netcdf"):
        _prepare(root)
    if name == "write_cached_bank":
        write_bank(root)


def kill_all(root: Path) -> None:
    """Let every writer be killed at the moment of its first rename."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    for name, write in WRITERS.items():
        _prepared(name, root / name)
        pid = os.fork()
        if pid == 0:
            Path.replace = Path.rename = die  # type: ignore[assignment,method-assign]
            write(root / name)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), name


if __name__ == "__main__":
    kill_all(Path(sys.argv[1]))
