"""A small finished sweep, and single bits to flip in its files."""

import tomllib
from pathlib import Path

import numpy as np
import xarray as xr

from mkldist.results.tree import open_results
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep import SweepOutcome, run_sweep
from mkldist.spec.model import SweepSpec
from tests.run.sweeps import sweep_text


def text(*, more: bool = False) -> str:
    grid = [1.0, 10.0, 100.0] if more else [1.0, 10.0]
    return sweep_text({"uniform": grid, "best_single": [1.0]}).replace("n = 80", "n = 40")


def sweep(output: Path, *, more: bool = False) -> SweepOutcome:
    """Do a small sweep, or the rest of it, in a thread of this process."""
    file = output.parent / "small.toml"
    file.write_text(text(more=more))
    spec = SweepSpec.model_validate(tomllib.loads(file.read_text()))
    return run_sweep(spec, origin=file, output=output, connect_options=ConnectOptions())


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def kinds(output: Path) -> dict[str, list[Path]]:
    """Return the files of a sweep by the kinds that are verified."""
    banks = files_below(output.parent / "banks")
    return {
        "manifest": [output / "sweep.json"],
        "records": [output / "records.journal"],
        "layout": [output / "tree.layout"],
        "snapshots": files_below(output / "snapshots"),
        "banks": [output / "banks.json"] + [file for file in banks if file.name[0] != "."],
    }


def flip(path: Path, rng: np.random.Generator) -> bytes:
    """Flip one bit of a file; return what it held."""
    whole = path.read_bytes()
    place = rng.integers(8 * len(whole))
    content = bytearray(whole)
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)
    return whole


def values_of(output: Path, *, timed: bool = True) -> dict[str, xr.Dataset]:
    """Return the results of all methods; without seconds and bytes read, unless asked for."""
    with open_results(output) as tree:
        found = {node.path: node.to_dataset().load() for node in tree.subtree}
    if timed:
        return found
    return {
        path: data.drop_vars(
            [n for n in data.variables if str(n).endswith(("seconds", "_bytes", "bytes_read"))]
        )
        for path, data in found.items()
    }
