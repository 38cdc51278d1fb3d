"""One flipped bit, a file cut short, or two files exchanged, of every kind of a finished sweep."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
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
KERNELS = [{"function": "gaussian", "widths": [0.3, 1.0], "features": "each"}]
SMALL, FEW = "small", "few"
"""Names of the sweeps; the second one has few labels, and graphs."""
MODEL = "small.model"
OWN_COPY = ("data", "model")
"""Kinds of which there is no other copy, so that a damaged one can only be refused."""


@dataclass(frozen=True, eq=False)
class Finished:
    """Two finished sweeps that were given in Python, and what more settings of them give."""

    folder: Path  # their folder, which is not changed
    # Results of each, without times, as they are, and with more values of C
    values: dict[str, dict[str, xr.Dataset]]
    more_values: dict[str, dict[str, xr.Dataset]]
    predicted: Any  # what the model of the first one predicts


def finished(folder: Path) -> Finished:
    """Make the sweeps, a model, and the results with more settings."""
    made, other = folder / "made", folder / "more"
    _sweeps(made, more=False)
    file = str(_output(made) / MODEL)
    mkldist.MKLClassifier("uniform").fit(POINTS, LABELS).to_model().save(file)
    values, predicted = _values(made), mkldist.load_model(file).predict(NEW)
    _sweeps(other, more=True)
    return Finished(made, values, _values(other), predicted)


def damaged(
    folder: Path, made: Finished, kind: str, rng: np.random.Generator, *, exchange: bool = False
) -> Outcome:
    """Damage a random file of a kind in a copy of the sweep; read it, and run more settings.

    With `exchange` two files of the kind take each other's place.
    """
    shutil.copytree(made.folder, folder, symlinks=True)
    files = kinds(folder)[kind]
    file, *others = (files[i] for i in rng.permutation(len(files)))
    if exchange:
        one, other = file.read_bytes(), others[0].read_bytes()
        file.write_bytes(other)
        others[0].write_bytes(one)
        name = "exchange"
    elif rng.integers(4) == 0:
        os.truncate(file, int(rng.integers(file.stat().st_size)))
        name = "cut"
    else:
        flip(file, rng)
        name = "bit"
    name += f": {kind}"
    where = str(file.relative_to(folder))
    if exchange:
        where += f" and {others[0].relative_to(folder)}"
    if kind == "model":
        return _of_model(name, file, made)
    wrong = [f"read, {where}: {said}" for said in _reads(folder, made, kind)]
    faults, refused = [], False
    try:
        _sweeps(folder, more=True)
    except MkldistError as error:
        refused = True
        if kind not in OWN_COPY and not exchange:
            faults.append(f"{where}: {error}")
    except Exception as error:
        faults.append(f"{where}: {type(error).__name__}: {error}")
    else:
        wrong += [f"{where}: {node}" for node in _differing(folder, made.more_values)]
    return Outcome(name, wrong=tuple(wrong), faults=tuple(faults), refused=refused)


def kinds(folder: Path) -> dict[str, list[Path]]:
    """Return the files of the sweeps that may be damaged, those that hold something, by kind."""
    banks = folder / "results" / "banks"
    described = {
        file.parent: file.read_text(errors="replace") for file in banks.glob("*/zarr.json")
    }
    thin = {bank for bank, words in described.items() if '"factors"' in words}
    stored = files_below(banks)
    found = {
        "manifest": _each("sweep.json", folder),
        "bank note": _each("banks.json", folder),
        "words": _each("sweep.toml", folder),
        "model": [_output(folder) / MODEL],
        "records": _each("records.journal", folder),
        "layout": _each("tree.layout", folder),
        "snapshots": _each("snapshots", folder),
        "data": _each("data", folder),
        "banks": [file for file in stored if thin.isdisjoint(file.parents)],
        "factors": [file for file in stored if not thin.isdisjoint(file.parents)],
        "laplacians": files_below(banks / "laplacians"),
        "cache": list((folder / "cache").glob("*.bank")),
    }
    return {
        kind: some
        for kind, files in found.items()
        if (some := [file for file in files if file.stat().st_size])
    }


def _each(name: str, folder: Path) -> list[Path]:
    """Return a file of both sweeps, or the files of a folder of both."""
    paths = [_output(folder, sweep) / name for sweep in (SMALL, FEW)]
    return [file for path in paths for file in (files_below(path) if path.is_dir() else [path])]


def _output(folder: Path, sweep: str = SMALL) -> Path:
    return folder / "results" / sweep


def _sweeps(folder: Path, *, more: bool) -> None:
    """Do the sweeps, or the rest of them, in a thread of this process."""
    for words in _small(more), _few(more):
        with _cache_in(folder):
            data = {"mine": (POINTS, LABELS)}
            output = _output(folder, words["name"])
            mkldist.sweep(words, data=data, output=output, workers=0, progress=False)


def _small(more: bool) -> dict[str, Any]:
    return {
        "name": SMALL,
        "splits": {"repeats": 2},
        "outputs": {"predictions": True, "keep_banks": True},
        "banks": [
            {"name": "mapped", "backend": "mmap", "kernels": KERNELS},
            {"name": "thin", "backend": "factors", "kernels": KERNELS},
        ],
        "methods": [
            {"name": "uniform", "C": [1.0, 10.0, 100.0] if more else [1.0, 10.0]},
            {"name": "best_single", "C": [1.0], "banks": ["mapped"]},
        ],
    }


def _few(more: bool) -> dict[str, Any]:
    return {
        "name": FEW,
        "splits": {"kind": "semi-supervised", "labelled_per_class": 8, "repeats": 1},
        "graph": {"neighbours": 3},
        "banks": [{"backend": "stream", "kernels": KERNELS}],
        "methods": [{"name": "laprls", "gamma_a": [0.1, 1.0] if more else [0.1]}],
        "outputs": {"keep_banks": True},
    }


@contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    """Have the caches of this machine in a folder."""
    before = os.environ.get("MKLDIST_CACHE")
    os.environ["MKLDIST_CACHE"] = str(folder / "cache")
    try:
        yield
    finally:
        os.environ.pop("MKLDIST_CACHE")
        if before is not None:
            os.environ["MKLDIST_CACHE"] = before


def _values(folder: Path) -> dict[str, dict[str, xr.Dataset]]:
    return {sweep: values_of(_output(folder, sweep), timed=False) for sweep in (SMALL, FEW)}


def _differing(folder: Path, expected: dict[str, dict[str, xr.Dataset]]) -> list[str]:
    """Return the nodes of both sweeps that are not bit for bit as expected."""
    return [
        f"{sweep}{node}"
        for sweep, values in expected.items()
        for node in differing(_output(folder, sweep), values)
    ]


def _reads(folder: Path, made: Finished, kind: str) -> list[str]:
    """Return what a reader of the results got other than the right values or our error."""
    recorded = kind == "records"
    return [
        said
        for sweep, values in made.values.items()
        for said in _got(partial(differing, _output(folder, sweep), values, recorded=recorded))
    ]


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
