"""Where a sweep's output and banks lie, and what a path or name on the command line means."""

from __future__ import annotations

from pathlib import Path

from mkldist.errors import StoreError, nearest
from mkldist.results.output import OutputFolder, manifest_file
from mkldist.spec.load import load_sweep
from mkldist.spec.model import SweepSpec
from mkldist.spec.shipped import sweep_file

RESULTS = Path("results")
BANKS = "banks"


def output_path(spec: SweepSpec, output: Path | None = None) -> Path:
    """Return the output folder: `output`, else ``outputs.path``, else ``results/<name>``."""
    return output or Path(spec.outputs.path or RESULTS / spec.name)


def banks_root(spec: SweepSpec, output: Path) -> str:
    """Return the folder or URL of the sweep's banks; a relative path becomes absolute.

    Sweeps whose outputs lie side by side share their banks.  A sweep that deletes its banks keeps
    them in its own output.
    """
    parent = output.parent if spec.outputs.keep_banks else output
    given = spec.outputs.banks or str(parent / BANKS)
    return given if "://" in given else str(Path(given).absolute())


def results_of(given: Path) -> Path:
    """Return the output folder of a sweep.

    Parameters
    ----------
    given : Path
        The folder, the ``results.zarr`` in it, the sweep's file, or its name.

    Raises
    ------
    mkldist.errors.StoreError
        If there is none of these.
    mkldist.errors.SpecError
        If it is a sweep file that cannot be read.
    """
    if given.suffix == ".zarr":
        return given.parent
    for folder in (given, RESULTS / given):
        if OutputFolder(folder).manifest.is_file():
            return folder
    if given.is_dir():
        return given
    file = sweep_file(given)
    if file.is_file():
        return output_path(load_sweep(file))
    known = [path.parent.name for path in RESULTS.glob(f"*/{OutputFolder(RESULTS).manifest.name}")]
    raise StoreError(
        str(given),
        "no such folder, sweep file or name",
        "the results of a sweep, its file or its name",
        nearest(given.name, known) or f"The results here: {', '.join(sorted(known)) or 'none'}",
    )


def sweep_file_of(given: Path) -> Path:
    """Return the sweep file that a path or name means.

    Parameters
    ----------
    given : Path
        The file, its name, or the folder or name of its results; others are returned unchanged.
    """
    file = sweep_file(given)
    if file.is_file():
        return file
    for folder in (given, RESULTS / given):
        made_from = manifest_file(folder)
        if made_from is not None:
            return made_from
    return given
