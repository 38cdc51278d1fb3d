"""Graph Laplacians kept in files, which are named by a hash of the points and the graph.

A file is a sparse matrix in scipy's npz format, then a footer with its checksum.  It is written
whole or not at all.  If a file is missing, cut short or damaged, its Laplacian is computed and
written again.  If the folder cannot be written, every call computes the Laplacian.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from mkldist.bank.byte_store import LAPLACIANS, ByteStore, open_bytes
from mkldist.bank.cache import locked
from mkldist.core.checksums import Footer
from mkldist.core.identity import array_id, content_id
from mkldist.errors import OutputError, StoreError
from mkldist.kernels.graph import as_points, graph_laplacian
from mkldist.spec.datasets import GraphSpec

SUFFIX = ".npz"
VERSION = 1  # of the file and of the meaning of a GraphSpec
FOOTER = Footer(b"mkldist graph 1\0")


def laplacian_id(x: Any, spec: GraphSpec) -> str:
    """Return the name of the Laplacian of these points and this graph.

    Parameters
    ----------
    x : (n, d) array-like or scipy sparse
        Points.
    spec : GraphSpec
        The graph.
    """
    points: Any = as_points(x)
    if isinstance(points, np.ndarray):
        data = array_id(points)
    else:
        indices = (points.indices.astype("<i8"), points.indptr.astype("<i8"))
        shape = np.asarray(points.shape, dtype="<i8")
        data = array_id(points.data, *indices, shape)
    return content_id(version=VERSION, data=data, graph=spec.model_dump())


def cached_laplacian(x: Any, spec: GraphSpec, folder: str | Path) -> scipy.sparse.csr_array:
    """Return the graph Laplacian of points, computed unless it is in `folder`.

    If several processes need the same Laplacian on a file system, one computes it and the others
    wait.

    Parameters
    ----------
    x : (n, d) array-like or scipy sparse
        Points, as for :func:`mkldist.kernels.graph.graph_laplacian`.
    spec : GraphSpec
        The graph.
    folder : str or Path
        Folder or fsspec URL, made if it is missing; the files lie in ``laplacians`` below it.

    Returns
    -------
    (n, n) csr_array of float64

    Raises
    ------
    mkldist.errors.DataError
        If the points have no such graph.
    """
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
    """Return the Laplacians in `folder` by their names; True for those that fit their checksum.

    Parameters
    ----------
    folder : str or Path
        As for :func:`cached_laplacian`.

    Raises
    ------
    mkldist.errors.UnreadableError
        If the medium does not answer.
    """
    blobs = open_bytes(folder, LAPLACIANS)
    names = sorted(name.rpartition("/")[2] for name in blobs.names(""))
    content = {name: blobs.get(name) for name in names if name.endswith(SUFFIX)}
    return {name: FOOTER.body(one) is not None for name, one in content.items() if one is not None}


def remove_damaged_laplacians(folder: str | Path) -> int:
    """Remove the damaged Laplacians in `folder`, and return their number.

    Whoever needs one of them computes it again.
    """
    damaged = [name for name, sound in checked_laplacians(folder).items() if not sound]
    for name in damaged:
        open_bytes(folder, LAPLACIANS).remove(name)
    return len(damaged)


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
