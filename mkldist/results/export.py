"""Results for other programs: the tree as netCDF, or one row per run as CSV or Parquet."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.errors import InputError, OutputError, nearest
from mkldist.results.rows import method_nodes, run_rows
from mkldist.results.schema import VECTORS
from mkldist.results.tree import open_results
from mkldist.run.output import writing

if TYPE_CHECKING:
    import xarray as xr


def export(
    path: str | Path, format: str, destination: str | Path, *, overwrite: bool = False
) -> Path:
    """Write the results of a sweep to one file.

    Parameters
    ----------
    path : str or Path
        The sweep's output folder, or the ``results.zarr`` in it.
    format : str
        ``"netcdf"``: the whole tree, each node a group; ``"parquet"`` or ``"csv"``: one row per
        run with its hyperparameters and every number that it reported, vectors left out.
    destination : str or Path
        The file; it appears when it is whole.
    overwrite : bool, optional
        Replace a file that is there already.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    mkldist.errors.StoreError
        When there are no results or they are damaged.
    mkldist.errors.OutputError
        When the file is there already or cannot be written.
    mkldist.errors.InputError
        For an unknown format, or Parquet without pyarrow.
    """
    if format not in FORMATS:
        raise InputError(
            "format", f"found {format!r}", f"one of {', '.join(FORMATS)}", nearest(format, FORMATS)
        )
    if format == "parquet" and find_spec("pyarrow") is None:
        raise InputError(
            "format", "found 'parquet' without pyarrow", "", "Install it: pip install pyarrow"
        )
    target = Path(destination)
    if target.is_dir() or (target.exists() and not overwrite):
        found = "a folder" if target.is_dir() else "a file that is there already"
        hint = "" if target.is_dir() else "Choose another name, or replace it by --overwrite"
        raise OutputError(str(target), found, "the name of a new file", hint)
    tree = open_results(path)
    with _replacing(target) as temporary:
        FORMATS[format](tree, temporary)
    return target


def _to_netcdf(tree: xr.DataTree, target: Path) -> None:
    # Vectors and traces are mostly zeros, or not there yet; the rest is small.
    large = {variable.name for variable in VECTORS}
    encoding = {}
    for node in method_nodes(tree):
        encoding[node.path] = _packed(name for name in node.ds.data_vars if name in large)
        for child in node.children.values():
            encoding[child.path] = _packed(child.ds.data_vars)
    tree.to_netcdf(target, engine="netcdf4", encoding=encoding)


def _packed(names: Iterable[Hashable]) -> dict[Hashable, dict[str, Any]]:
    return {name: {"zlib": True, "complevel": 1} for name in names}


def _to_csv(tree: xr.DataTree, target: Path) -> None:
    run_rows(tree).to_csv(target, index=False)


def _to_parquet(tree: xr.DataTree, target: Path) -> None:
    run_rows(tree).to_parquet(target, index=False, engine="pyarrow")


FORMATS: dict[str, Callable[[xr.DataTree, Path], None]] = {
    "netcdf": _to_netcdf,
    "parquet": _to_parquet,
    "csv": _to_csv,
}


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary name beside `target` that takes its place at the end."""
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            shutil.move(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
