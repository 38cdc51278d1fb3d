"""Where a sweep's output and banks lie, and what a path or name on the command line means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.core.terminal import command_line
from mkldist.core.wording import pluralize, truncate
from mkldist.errors import StoreError, nearest
from mkldist.results.folder import OutputFolder, read_manifest

if TYPE_CHECKING:
    from mkldist.spec.model import SweepSpec

RESULTS = Path("results")
BANKS = "banks"
SHOWN = 8


def output_path(spec: SweepSpec, output: Path | None = None) -> Path:
    """Return the output folder: `output`, else ``outputs.path``, else ``results/<name>``."""
    return output or Path(spec.outputs.path or RESULTS / spec.name)


def banks_root(spec: SweepSpec, output: Path) -> str:
    """Return the folder or URL of the sweep's banks; a relative path becomes absolute.

    A sweep has its banks in its own output.  Sweeps that keep their banks, and whose outputs lie
    side by side, share them.
    """
    parent = output.parent if spec.outputs.keep_banks else output
    given = spec.outputs.banks or str(parent / BANKS)
    return given if "://" in given else str(Path(given).absolute())


def results_of(given: Path, *, several: bool = False) -> Path:
    """Return the output folder of a sweep."""
    for folder in (given, RESULTS / given):
        if os.path.lexists(OutputFolder(folder).manifest):
            return folder
    if given.is_dir():
        if not several:
            _refuse_folder_of_sweeps(given)
        return given
    from mkldist.spec.load import load_sweep, sweep_file  # not for those who name a folder

    file = sweep_file(given)
    if file.is_file():
        folder = output_path(load_sweep(file))
        if not folder.exists():
            raise StoreError(
                str(folder),
                "no such folder",
                "the output folder of a sweep",
                f"Run the sweep first: {command_line('sweep', given)}",
            )
        return folder
    known = [path.parent.name for path in RESULTS.glob(f"*/{OutputFolder(RESULTS).manifest.name}")]
    raise StoreError(
        str(given),
        "no such folder, sweep file or name",
        "the results of a sweep, its file or its name",
        nearest(given.name, known) or f"The results here: {', '.join(sorted(known)) or 'none'}",
    )


def _refuse_folder_of_sweeps(given: Path) -> None:
    """Refuse a folder that holds results of sweeps, and is none itself; name them."""
    manifest = OutputFolder(given).manifest.name
    inside = [given / name for name in ("", RESULTS)]
    found = sorted(path.parent for one in inside for path in one.glob(f"*/{manifest}"))
    if found:
        raise StoreError(
            str(given),
            f"a folder with the results of {pluralize(len(found), 'sweep')}",
            "the results of one",
            f"Name it: {truncate([str(path) for path in found], SHOWN)}",
        )


def sweep_file_of(given: Path) -> Path:
    """Return the sweep file that a path or name means."""
    from mkldist.spec.load import sweep_file

    file = sweep_file(given)
    if file.is_file():
        return file
    for folder in (given, RESULTS / given):
        if os.path.lexists(OutputFolder(folder).manifest):
            return read_manifest(folder).file or given
    return given
