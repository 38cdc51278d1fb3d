"""Export of results: the tree as netCDF or zarr, or one row per run as CSV or Parquet."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.core.durable import check_apart, check_free, replacing, temporary_path, writing
from mkldist.errors import InputError, nearest
from mkldist.results.folder import inputs_of
from mkldist.results.rows import method_nodes, to_frame, weight_rows
from mkldist.results.schema import VECTORS, WEIGHTS
from mkldist.results.tree import open_results

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


SPARE_BYTES = 1 << 20  # that metadata of a netCDF file may take beside the values
_PACKAGES = {"netcdf": "netCDF4", "parquet": "pyarrow"}
"""Packages that formats need, each installed by the extra of the format's name."""


def export(
    path: str | Path | Sequence[Path],
    format: str,
    destination: str | Path,
    *,
    overwrite: bool = False,
) -> tuple[Path, ...]:
    """Write the results of a sweep, or of several, to a file, and kernel weights to a second one.

    `format` is ``"netcdf"`` or ``"zarr"``, which hold the whole tree, each node as a group; or
    ``"parquet"`` or ``"csv"``, which hold one row per run, and beside it a file ``NAME.weights``
    with one row per kernel of non-zero weight.  The file appears when it is whole.
    """
    if format not in FORMATS:
        raise InputError(
            "format", f"{format!r}", f"one of {', '.join(FORMATS)}", nearest(format, FORMATS)
        )
    package = _PACKAGES.get(format)
    if package is not None and find_spec(package) is None:
        raise InputError(
            "format",
            f"{format!r} without {package}",
            f"the package {package}",
            f"pip install 'mkldist[{format}]' installs it; csv needs none",
        )
    target = Path(destination)
    named = format_of(target.suffix) or format
    if named != format:
        raise InputError(
            "format",
            f"{format}, to be written to {target}",
            f"a name that ends in {ENDINGS[format]}, or the format {named}",
        )
    paths = [Path(path)] if isinstance(path, str | Path) else [*path]
    tree = open_results(*paths)
    files: dict[Path, Callable[[xr.DataTree, Path], None]] = {target: FORMATS[format]}
    has_weights = any(WEIGHTS.name in node.ds for node in method_nodes(tree))
    if format in ("parquet", "csv") and has_weights:
        of_weights = target.with_name(f"{target.stem}.weights{target.suffix}")
        files[of_weights] = _rows_to(format, weight_rows)
    replaced = overwrite and format == "zarr" and (target / ".zgroup").is_file()
    inputs = [file for folder in paths for file in inputs_of(folder)]
    check_apart(target, inputs)
    for file in files if not replaced else ():
        check_free(file, overwrite=overwrite, inputs=inputs)
    for file, write in files.items():
        with writing(file), replacing(file) as temporary:
            write(tree, temporary)
            if replaced:
                shutil.rmtree(file)
    return tuple(files)


def _to_netcdf(tree: xr.DataTree, target: Path) -> None:
    for name, values in (item for node in tree.subtree for item in node.ds.variables.items()):
        if values.dtype.kind in "UO" and any("\0" in str(one) for one in values.values.ravel()):
            found = f"a text with the character NUL in {name}, which ends texts of netCDF"
            raise InputError("format", found, "texts without it", "Choose zarr, or rename it")
    # Vectors and traces are mostly zeros or still empty; the rest is too small to compress.
    large, packed = {variable.name for variable in VECTORS}, {"zlib": True, "complevel": 1}
    encoding = {}
    for node in method_nodes(tree):
        own = large.intersection(map(str, node.ds.data_vars))
        encoding[node.path] = dict.fromkeys(own, packed)
        for child in node.children.values():
            encoding[child.path] = dict.fromkeys(map(str, child.ds.data_vars), packed)
    try:
        if "\\" in str(target.absolute()):  # which the library takes for a separator of folders
            target.write_bytes(tree.to_netcdf(engine="netcdf4", encoding=encoding))
        else:
            tree.to_netcdf(target, engine="netcdf4", encoding=encoding)
    except (OSError, RuntimeError) as error:
        # The library calls a full disk a lack of permission, or an error of HDF.
        _check_room(target.parent, SPARE_BYTES + tree.nbytes, error)
        raise


def _to_zarr(tree: xr.DataTree, target: Path) -> None:
    try:
        tree.to_zarr(target, mode="w-", zarr_format=2, consolidated=True)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _check_room(folder: Path, n_bytes: int, reason: Exception) -> None:
    """Raise the system's error if a folder cannot take a file of some bytes now, from a reason."""
    probe = temporary_path(folder)
    try:
        with probe.open("xb") as file:
            if hasattr(os, "posix_fallocate"):  # not on all systems
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            file.write(bytes(SPARE_BYTES))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from reason
    finally:
        probe.unlink(missing_ok=True)


def _rows_to(
    format: str, rows: Callable[[xr.DataTree], pd.DataFrame]
) -> Callable[[xr.DataTree, Path], None]:
    """Return what writes a table of a tree as CSV or Parquet."""

    def write(tree: xr.DataTree, target: Path) -> None:
        if format == "csv":
            rows(tree).to_csv(target, index=False)
        else:
            rows(tree).to_parquet(target, index=False, engine="pyarrow")

    return write


FORMATS: dict[str, Callable[[xr.DataTree, Path], None]] = {
    "netcdf": _to_netcdf,
    "zarr": _to_zarr,
    "parquet": _rows_to("parquet", to_frame),
    "csv": _rows_to("csv", to_frame),
}


ENDINGS = {"netcdf": ".nc", "zarr": ".zarr", "parquet": ".parquet", "csv": ".csv"}
"""Ending of the file of each format."""


def format_of(ending: str) -> str | None:
    """Return the format whose files have this ending, or None."""
    return next((name for name, known in ENDINGS.items() if known == ending), None)
