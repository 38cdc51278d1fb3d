"""One flipped bit, or a file cut short, in every kind of file of a finished sweep."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import mkldist
from mkldist.errors import MkldistError
from tests.chaos.outcomes import Outcome
from tests.chaos.scene import differing
from tests.run.damage import files_below, flip, values_of

POINTS = np.random.default_rng(0).normal(size=(40, 2))
LABELS = np.where(POINTS[:, 0] * POINTS[:, 1] > 0, "yes", "no")
NEW = np.random.default_rng(1).normal(size=(7, 2))
MODEL = "small.model"
OWN_COPY = ("data", "model")
"""Kinds of which there is no other copy, so that a damaged one can only be refused."""


@dataclass(frozen=True, eq=False)
class Finished:
    """A finished sweep that was given in Python, and what more settings of it give.

    Parameters
    ----------
    folder : Path
        Its folder, which is not changed.
    values, more_values : dict of str to Dataset
        Results, without times, as they are, and with more values of C.
    predicted : array
        What its model predicts.
    """

    folder: Path
    values: dict[str, xr.Dataset]
    more_values: dict[str, xr.Dataset]
    predicted: Any


def finished(folder: Path) -> Finished:
    """Make the sweep, its model, and the results with more settings."""
    output = _sweep(folder / "made", more=False)
    file = str(output / MODEL)
    mkldist.MKLClassifier("uniform").fit(POINTS, LABELS).to_model().save(file)
    values, predicted = values_of(output, timed=False), mkldist.load_model(file).predict(NEW)
    more = _sweep(folder / "more", more=True)
    return Finished(folder / "made", values, values_of(more, timed=False), predicted)


def damaged(folder: Path, made: Finished, kind: str, rng: np.random.Generator) -> Outcome:
    """Damage a random file of a kind in a copy of the sweep; read it, and run more settings."""
    shutil.copytree(made.folder, folder, symlinks=True)
    files = kinds(folder)[kind]
    file = files[int(rng.integers(len(files)))]
    whole = file.stat().st_size
    cut = bool(rng.integers(4) == 0)
    if cut:
        os.truncate(file, int(rng.integers(whole)))
    else:
        flip(file, rng)
    name = f"{'cut' if cut else 'bit'}: {kind}"
    where = str(file.relative_to(folder))
    if kind == "model":
        return _of_model(name, file, made)
    wrong = [f"read, {where}: {said}" for said in _reads(folder, made)]
    faults, refused = [], False
    try:
        _sweep(folder, more=True)
    except MkldistError as error:
        refused = True
        if kind not in OWN_COPY:
            faults.append(f"{where}: {error}")
    except Exception as error:
        faults.append(f"{where}: {type(error).__name__}: {error}")
    else:
        wrong += [f"{where}: {node}" for node in differing(_output(folder), made.more_values)]
    return Outcome(name, wrong=tuple(wrong), faults=tuple(faults), refused=refused)


def kinds(folder: Path) -> dict[str, list[Path]]:
    """Return the files of a sweep that may be damaged, those that hold something, by kind."""
    output = _output(folder)
    found = {
        "manifest": [output / "sweep.json"],
        "bank note": [output / "banks.json"],
        "words": [output / "sweep.toml"],
        "model": [output / MODEL],
        "records": files_below(output / "records"),
        "results": files_below(output / "results.zarr"),
        "snapshots": files_below(output / "snapshots"),
        "data": files_below(output / "data"),
        "banks": files_below(folder / "results" / "banks"),
        "cache": files_below(folder / "cache"),
    }
    return {
        kind: some
        for kind, files in found.items()
        if (some := [file for file in files if file.stat().st_size])
    }


def _output(folder: Path) -> Path:
    return folder / "results" / "small"


def _sweep(folder: Path, *, more: bool) -> Path:
    """Do the sweep, or the rest of it, in a thread of this process; return its output folder."""
    output = _output(folder)
    words = {
        "name": "small",
        "splits": {"repeats": 2},
        "banks": [
            {
                "backend": "mmap",
                "kernels": [{"function": "gaussian", "widths": [0.3, 1.0], "features": "each"}],
            }
        ],
        "methods": [
            {"name": "uniform", "C": [1.0, 10.0, 100.0] if more else [1.0, 10.0]},
            {"name": "best_single", "C": [1.0]},
        ],
    }
    before = os.environ.get("MKLDIST_CACHE")
    os.environ["MKLDIST_CACHE"] = str(folder / "cache")
    try:
        data = {"mine": (POINTS, LABELS)}
        mkldist.sweep(words, data=data, output=output, workers=0, progress=False)
    finally:
        os.environ.pop("MKLDIST_CACHE")
        if before is not None:
            os.environ["MKLDIST_CACHE"] = before
    return output


def _reads(folder: Path, made: Finished) -> list[str]:
    """Return what a reader of the results got other than the right values or our error."""
    return _got(lambda: differing(_output(folder), made.values))


def _of_model(name: str, file: Path, made: Finished) -> Outcome:
    def predicts() -> list[str]:
        same = np.array_equal(mkldist.load_model(str(file)).predict(NEW), made.predicted)
        return [] if same else ["other predictions"]

    wrong = _got(predicts)
    return Outcome(name, wrong=tuple(wrong), refused=not wrong)


def _got(read: Callable[[], list[str]]) -> list[str]:
    try:
        return read()
    except MkldistError:
        return []
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
