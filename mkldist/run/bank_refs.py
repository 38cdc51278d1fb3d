"""Banks as tasks name them: a few settings and a snapshot, of which a worker makes what it needs.

A task carries no arrays.  It names a snapshot, from which the worker reads data and splits, and
holds the bank's part of the sweep file, from which the worker makes the kernels.  A worker keeps
the inputs of its last banks, because the next task often wants one of them.  The snapshot lies in a
shared folder, or is fetched once for a machine, by one process, and held to its checksums.

Graph Laplacians lie in files beside the banks, named by a hash of the points and the graph.  A file
is a sparse matrix in scipy's npz format, then a footer with its checksum, written whole or not at
all.  If it is missing, cut short or damaged, its Laplacian is computed and written again.  If the
folder cannot be written, every call computes the Laplacian.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from mkldist.bank.byte_store import LAPLACIANS, SNAPSHOTS, ByteStore, open_bytes
from mkldist.bank.cache import NodeFolders, locked
from mkldist.bank.store import BankStore
from mkldist.core.checksums import Footer, array_id, content_id
from mkldist.core.durable import write_file, writing
from mkldist.data.snapshot import HEADER, damaged_files, load_snapshot
from mkldist.errors import DataError, OutputError, StoreError
from mkldist.fit.engine import BankInputs
from mkldist.kernel_functions.custom import search_first
from mkldist.kernels.graph import as_points, graph_laplacian
from mkldist.planning.model import BankPlan
from mkldist.spec.datasets import GraphSpec, GraphTable

SUFFIX = ".npz"
VERSION = 1  # of the file and of the meaning of a GraphSpec
FOOTER = Footer(b"mkldist graph 1\0")


def laplacian_id(x: Any, spec: GraphSpec) -> str:
    """Return the name of the Laplacian of these points and this graph."""
    points: Any = as_points(x)
    if isinstance(points, np.ndarray):
        data = array_id(points)
    else:
        indices = (points.indices.astype("<i8"), points.indptr.astype("<i8"))
        shape = np.asarray(points.shape, dtype="<i8")
        data = array_id(points.data, *indices, shape)
    return content_id(version=VERSION, data=data, graph=spec.model_dump())


def cached_laplacian(x: Any, spec: GraphSpec, folder: str | Path) -> scipy.sparse.csr_array:
    """Return the graph Laplacian of points, computed unless it is in `folder`."""
    points = as_points(x)
    name = laplacian_id(points, spec)
    blobs = open_bytes(folder, LAPLACIANS)
    found = _read(blobs, name, points.shape[0])
    if found is not None:
        return found
    with _alone(blobs, name):
        found = _read(blobs, name, points.shape[0])
        if found is None:
            found = graph_laplacian(points, spec)
            with suppress(StoreError, OutputError):
                blobs.discard_abandoned()
                blobs.put(f"{name}{SUFFIX}", _encoded(found))
    return found


def checked_laplacians(folder: str | Path) -> dict[str, bool]:
    """Return the Laplacians in `folder` by their names; True for those that fit their checksum."""
    blobs = open_bytes(folder, LAPLACIANS)
    names = sorted(name.rpartition("/")[2] for name in blobs.names(""))
    content = {name: blobs.get(name) for name in names if name.endswith(SUFFIX)}
    return {name: FOOTER.body(one) is not None for name, one in content.items() if one is not None}


@contextmanager
def _alone(blobs: ByteStore, name: str) -> Iterator[None]:
    """Exclude other processes if files have locks; else all compute and write the same file."""
    with ExitStack() as held:
        if blobs.is_local:
            with suppress(OSError, OutputError):
                Path(blobs.location).mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(Path(blobs.location) / f"{name}.lock"))
        yield


def _encoded(laplacian: scipy.sparse.csr_array) -> list[bytes]:
    """Return the content of a file."""
    body = io.BytesIO()
    scipy.sparse.save_npz(body, laplacian, compressed=False)
    return [body.getvalue(), FOOTER.of([body.getvalue()])]


def _read(blobs: ByteStore, name: str, n_points: int) -> scipy.sparse.csr_array | None:
    """Return a Laplacian from its file, or None if that is missing, cut short or damaged."""
    content = None
    with suppress(StoreError):
        content = blobs.get(f"{name}{SUFFIX}")
    body = None if content is None else FOOTER.body(content)
    if body is None:
        return None
    laplacian: Any = scipy.sparse.load_npz(io.BytesIO(body))
    if laplacian.shape != (n_points, n_points):
        return None
    return scipy.sparse.csr_array(laplacian)


CACHED_BANKS = 4
OWN_BANKS = NodeFolders("built")
"""Banks that the workers of one machine build for themselves."""
FETCHED_DATA = NodeFolders(SNAPSHOTS)
"""Snapshots that the workers of one machine have fetched."""


@dataclass(frozen=True, eq=False)
class BankRef:
    """A bank by name: its plan, its place, and the snapshot that it is made from."""

    plan: BankPlan
    root: str  # folder or URL of all banks; empty if each machine builds them for itself
    snapshot: str  # folder of the snapshot of the data set and its splits
    data_fingerprint: str  # content hash of the data set
    code: str = ""  # folder of the user's kernel functions; empty if the sweep has none
    kernels: str = ""  # content hash of the kernels, if `code` is given
    # URL of the store that holds the snapshot beside the banks, or prefix of the names by which the
    # scheduler knows its files; empty if its folder is seen here
    fetched_from: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BankRef) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, str, str]:
        return self.plan.id, self.root, self.snapshot

    @property
    def is_shared(self) -> bool:
        """True if the bank is stored where all workers and the coordinator see it."""
        return self.plan.stored and bool(self.root)

    @property
    def place(self) -> str:
        """Folder or URL of all banks, as this process sees it."""
        return self.root or str(OWN_BANKS.root)

    @property
    def snapshot_folder(self) -> Path:
        """Folder of the snapshot, as this process sees it; fetched if it has to be."""
        folder = Path(self.snapshot)
        return fetched_snapshot(folder.name, self.fetched_from) if self.fetched_from else folder

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep what this machine built of the bank, and the data it fetched, from being removed."""
        with ExitStack() as used:
            if self.fetched_from:
                used.enter_context(FETCHED_DATA.used(Path(self.snapshot).name))
            if self.plan.stored and not self.root:
                used.enter_context(OWN_BANKS.used(self.plan.id))
            yield

    def store(self) -> BankStore:
        """Return the bank's store; make it if it does not exist."""
        plan = self.plan
        attributes = {"dataset": plan.dataset, "label": plan.spec.label}
        return BankStore.create(self.place, plan.id, plan.shape, attributes)


def bank_inputs(ref: BankRef) -> BankInputs:
    """Return the inputs of a bank: those that this process has made lately, or new ones.

    Banks that differ in what views and solvers make of them alone have one id.
    """
    inputs, plan = cached_inputs(ref), ref.plan
    own = tuple(plan.spec.normalisations), plan.preprocessing
    if (inputs.normalisations, inputs.preprocessing) == own:
        return inputs
    return replace(inputs, normalisations=own[0], preprocessing=own[1])


@lru_cache(maxsize=CACHED_BANKS)
def cached_inputs(ref: BankRef) -> BankInputs:
    """Return the inputs of a bank as the first that names it has them."""
    with ref.in_use():  # until its files are mapped
        dataset, splits = load_snapshot(ref.snapshot_folder, mmap=True)
    if ref.code:
        search_first(ref.code)
    plan = ref.plan
    inputs = BankInputs.of(plan.spec, plan.preprocessing, dataset, splits, plan.split, plan.seed)
    if ref.kernels and inputs.kernels is not None and inputs.kernels.fingerprint != ref.kernels:
        raise DataError(
            f"bank {plan.spec.label}",
            "kernel functions whose code has changed since the sweep began",
            "the same code until its end",
            "Repeat the command; runs with the old code keep their records",
        )
    return inputs


@lru_cache(maxsize=CACHED_BANKS)
def laplacian(ref: BankRef, graph: GraphTable, split: int) -> Any:
    """Return the graph Laplacian of the known rows of a split, (n, n), sparse or dense."""
    return bank_inputs(ref).laplacian(graph, split, partial(cached_laplacian, folder=ref.place))


def fetched_snapshot(name: str, origin: str) -> Path:
    """Return the folder of a snapshot on this machine; fetch what is missing or damaged."""
    with FETCHED_DATA.alone(name) as folder:
        if not damaged_files(folder):
            return folder
        from_store = "://" in origin
        _fetch(folder, partial(_stored_file if from_store else _published_file, origin, name))
        if left := damaged_files(folder):
            raise StoreError(
                f"{origin if from_store else 'the scheduler'}: snapshot {folder.name}",
                f"{left[0].name}, which arrives damaged",
                "the file that the sweep put there",
                "Repeat the sweep's command, which puts it there anew",
            )
        FETCHED_DATA.make_room(0, keep=name)
        return folder


def _fetch(folder: Path, file: Callable[[str], bytes]) -> None:
    """Fetch the files that are missing or damaged."""
    for _ in (HEADER, "the files that it names"):
        for path in damaged_files(folder):
            content = file(path.name)
            with writing(path):
                write_file(path, [content], durable=False)  # a checksum tells damage


def _stored_file(banks: str, snapshot: str, file: str) -> bytes:
    """Return a file of a snapshot in an object store."""
    blobs = open_bytes(banks, f"{SNAPSHOTS}/{snapshot}")
    content = blobs.get(file)
    if content is None:
        raise StoreError(f"{blobs.location}/{file}", "no such file", "a file of the snapshot")
    return content


def _published_file(prefix: str, snapshot: str, file: str) -> bytes:
    """Return a file of a snapshot that the coordinator has published."""
    from distributed import get_client

    name = published_name(prefix, snapshot, file)
    content: bytes | None = get_client().get_dataset(name, default=None)
    if content is None:
        raise StoreError(name, "no such file at the scheduler", "one of a sweep that goes on")
    return content


def published_name(prefix: str, snapshot: str, file: str) -> str:
    """Return the name by which the scheduler knows a file of a snapshot."""
    return f"{prefix}/{snapshot}/{file}"
