"""Right inputs of every kind, how one is made wrong, and what reads it."""

import gzip
import io
import json
import shutil
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
import zarr

import mkldist
from mkldist.bank.store import BankStore
from mkldist.core.checksums import frame, frame_header, unframed
from mkldist.core.terminal import own_handlers
from mkldist.data.snapshot import load_snapshot
from mkldist.data.table_profile import read_columns
from mkldist.fit.predictions import write_predictions
from mkldist.results.folder import read_manifest
from mkldist.results.journal import Journal
from mkldist.results.rows import weight_rows
from mkldist.results.status import sweep_status
from mkldist.run.cluster import ConnectOptions, cluster_class, read_cluster_file
from mkldist.run.sweep_setup import planned
from mkldist.spec.kinds import toml_text
from mkldist.spec.load import load_sweep
from tests.fuzz.mutations import Draw, changed, damaged

SOURCES = Path(__file__).with_name("sweeps")
N_ROWS = 24
GROUP, TABLE = "group.zarr", "table.zarr"
NEW_ROWS, NAMED = "new rows of ", "named"
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N_ROWS, 3)).round(3)
LABELS = np.where(POINTS[:, 0] > 0, "yes", "no")
OF_FILE = """\
name = "f"
[[datasets]]
name = "mine"
file = "{file}"
{options}
[splits]
repeats = 2
[[banks]]
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
features = ["all", "each"]
[[methods]]
name = "level"
C = [1, 10]
"""
CLUSTERS: tuple[dict[str, Any], ...] = (
    {"class": "distributed.LocalCluster", "workers": 2, "options": {"n_workers": 2, "env": {}}},
    {
        "class": "dask_jobqueue.SLURMCluster",
        "options": {"cores": 8, "memory": "4GiB", "x": [1]},
        "tls": "~/certificates",
    },
)


Wrong = tuple[Path, bytes]


@dataclass(frozen=True)
class Kind:
    """A kind of input."""

    name: str  # its name
    # Returns a file below a folder that holds the right inputs, and a wrong content of it, drawn
    # from a generator
    wrong: Callable[[Path, Draw], Wrong]
    read: Callable[[Path], None]  # reads the file as the package does


def prepare(folder: Path) -> None:
    """Write the right inputs below a folder."""
    with own_handlers(), suppress(ImportError):
        import dask_jobqueue  # noqa: F401  # the first import writes the user's configuration
    for source in SOURCES.glob("*.toml"):
        shutil.copy(source, folder)
    for name, content in _tables().items():
        (folder / name).write_bytes(content)
    zarr.save_group(folder / GROUP, x=POINTS, y=np.where(LABELS == "yes", 1, -1))
    zarr.save_group(folder / TABLE, a=POINTS[:, 0], b=POINTS[:, 1], label=LABELS == "yes")
    (folder / "v.csv").write_text("\n".join(["v,w", *(f"{a},{b}" for a, b, _ in POINTS), ""]))
    sweep = {
        "name": "small",
        "datasets": [{"name": "two_moons", "options": {"n": 30}}],
        "banks": [
            {"kernels": [{"function": "gaussian", "widths": [0.3, 1.0]}], **backend}
            for backend in ({}, {"name": "thin", "backend": "factors"})
        ],
        "methods": [
            {"name": "uniform", "C": [1.0, 10.0]},
            {"name": "level", "C": [1.0], "trace": True},
        ],
        "splits": {"repeats": 2},
        "outputs": {"predictions": True, "keep_banks": True},
    }
    output = folder / "small"
    mkldist.sweep(sweep, output=output, workers=0, progress=False)
    for name, points in (("small", POINTS), (NAMED, _frame()[["a", "b", "c"]])):
        model = mkldist.MKLClassifier("uniform").fit(points, LABELS).to_model()
        model.save(folder / f"{name}.model")


def kinds() -> list[Kind]:
    """Return all kinds of input."""
    tables = [
        Kind(name, partial(_wrong_bytes, name), partial(_plan_file, name)) for name in _tables()
    ]
    return [
        Kind("sweep file", _wrong_sweep, _plan),
        *tables,
        Kind("group of zarr", partial(_wrong_of, f"{GROUP}/**/*"), partial(_plan_zarr, GROUP)),
        Kind("table of zarr", partial(_wrong_of, f"{TABLE}/**/*"), partial(_plan_zarr, TABLE)),
        Kind("table for init", partial(_wrong_bytes, "d.csv"), _table_profile),
        Kind("cluster file", _wrong_cluster, _cluster),
        Kind("record", partial(_wrong_of, "small/records.journal"), _record),
        Kind("layout", partial(_wrong_bytes, "small/tree.layout"), _results),
        Kind("notes", partial(_wrong_of, "small/*"), _notes),
        Kind("snapshot", partial(_wrong_of, "small/snapshots/*/*"), _snapshot),
        Kind("bank", partial(_wrong_of, "banks/*/**/*"), _bank),
        Kind("model", partial(_wrong_bytes, "small.model"), _model),
        Kind("forged model", partial(_forged, "small.model"), _load_model),
        Kind("forged record", partial(_forged, "small/records.journal"), _record),
        *(
            Kind(f"{NEW_ROWS}{name}", partial(_wrong_bytes, name), _predict)
            for name in _tables()
            if name != "grams.npz"
        ),
    ]


def _tables() -> dict[str, bytes]:
    """Return a data file of every format by its name."""
    rows = [f"{a},{b},{c},{label}" for (a, b, c), label in zip(POINTS, LABELS, strict=True)]
    csv = "\n".join(["a,b,c,label", *rows, ""]).encode()
    numbers = np.where(LABELS == "yes", 1, -1)
    svm = "\n".join(
        f"{y} " + " ".join(f"{k}:{x}" for k, x in enumerate(row, 1))
        for y, row in zip(numbers, POINTS, strict=True)
    ).encode()
    parquet = io.BytesIO()
    _frame().to_parquet(parquet)
    indptr = np.arange(N_ROWS + 1)
    sparse = {"data": POINTS[:, 0], "indices": np.zeros(N_ROWS, int), "indptr": indptr}
    return {
        "d.csv": csv,
        "d.csv.gz": gzip.compress(csv, mtime=0),
        "d.svm": svm,
        "d.npz": _npz(x=POINTS, y=numbers, feature_names=np.array(["a", "b", "c"])),
        "sparse.npz": _npz(**sparse, shape=np.array([N_ROWS, 3]), y=numbers),
        "packed.npz": _npz(np.savez_compressed, x=POINTS, y=numbers),
        "grams.npz": _npz(grams=np.stack([POINTS @ POINTS.T, np.eye(N_ROWS)]), y=numbers),
        "d.parquet": parquet.getvalue(),
    }


def _frame() -> Any:
    import pandas as pd

    return pd.DataFrame(POINTS, columns=["a", "b", "c"]).assign(label=LABELS)


def _npz(save: Any = np.savez, **arrays: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, **arrays)
    return buffer.getvalue()


def _one_of(paths: Sequence[Path], draw: Draw) -> Path:
    return sorted(paths)[int(draw.integers(len(paths)))]


def _wrong_sweep(folder: Path, draw: Draw) -> Wrong:
    source = _one_of(list(folder.glob("right-*.toml")), draw)
    content = source.read_bytes()
    if draw.integers(3):
        document = changed(tomllib.loads(content.decode()), draw)
        content = toml_text(document).encode(errors="replace")
    else:
        content = damaged(content, draw)
    return folder / "wrong.toml", content


def _wrong_bytes(name: str, folder: Path, draw: Draw) -> Wrong:
    return folder / name, damaged((folder / name).read_bytes(), draw)


def _wrong_of(pattern: str, folder: Path, draw: Draw) -> Wrong:
    """Return one of several files, and what it might hold if it were damaged."""
    file = _one_of([path for path in folder.glob(pattern) if path.is_file()], draw)
    return file, damaged(file.read_bytes(), draw)


def _forged(pattern: str, folder: Path, draw: Draw) -> Wrong:
    """Return a file of frames, and a changed frame of it whose checksums are right."""
    file = _one_of(list(folder.glob(pattern)), draw)
    opened = unframed(_frame_of(file, draw))
    assert opened is not None
    header, arrays = opened
    if draw.integers(3):
        header = changed(header, draw)
    else:
        name = sorted(arrays)[int(draw.integers(len(arrays)))]
        arrays[name] = _other_array(arrays[name], draw)
    plain = json.loads(json.dumps(header, default=str), parse_int=_fitting)
    return file, frame(plain, arrays)


def _frame_of(file: Path, draw: Draw) -> bytes:
    """Return one of the frames of a file."""
    content, frames = file.read_bytes(), []
    while (header := frame_header(content)) is not None:
        frames.append(content[: header.n_bytes])
        content = content[header.n_bytes :]
    return frames[int(draw.integers(len(frames)))]


def _fitting(digits: str) -> int | str:
    """Return a whole number, as text if it has more than 64 bits, which no frame holds."""
    return int(digits) if len(digits) < 19 else digits


def _other_array(values: Any, draw: Draw) -> Any:
    """Return an array of another shape, type or content."""
    others = (
        values[:0], values.ravel()[:1], values[..., None], np.array("text"), values.astype(str),
        np.full(values.shape, np.nan), np.full(values.shape, 2**62), np.full(values.shape, -1),
    )  # fmt: skip
    return others[int(draw.integers(len(others)))]


def _wrong_cluster(folder: Path, draw: Draw) -> Wrong:
    document = CLUSTERS[int(draw.integers(len(CLUSTERS)))]
    if draw.integers(2):
        content = yaml.safe_dump(changed(document, draw)).encode(errors="replace")
    else:
        content = damaged(yaml.safe_dump(document).encode(), draw)
    return folder / "wrong.yaml", content


def _plan(file: Path) -> None:
    planned(load_sweep(file), file, (), ConnectOptions(n_workers=1))


def _plan_zarr(name: str, file: Path) -> None:
    _plan_file(name, next(parent for parent in file.parents if parent.name == name))


def _plan_file(name: str, file: Path) -> None:
    options = 'task = "classification"'
    sweep = OF_FILE.format(file=name, options=options)
    if name == "grams.npz":
        sweep = sweep.replace("file =", "grams =").replace("[[banks.kernels]]", "")
        head, _, tail = sweep.partition('function = "gaussian"')
        sweep = head + 'family = "precomputed"' + tail[tail.index("\n[[methods]]") :]
    target = file.with_name("of-file.toml")
    target.write_text(sweep)
    _plan(target)


def _table_profile(file: Path) -> None:
    read_columns(file)


def _cluster(file: Path) -> None:
    cluster_class(read_cluster_file(file))


def _record(file: Path) -> None:
    store = Journal(file)
    for run_id in store.states():
        store.read(run_id)
    sweep_status(file.parent)


def _notes(file: Path) -> None:
    read_manifest(_output(file))
    sweep_status(_output(file))


def _results(file: Path) -> None:
    sweep_status(_output(file))
    tree = mkldist.open_results(_output(file))
    mkldist.to_frame(tree)
    weight_rows(tree)
    for node in tree.subtree:
        node.to_dataset().load()


def _snapshot(file: Path) -> None:
    load_snapshot(file.parent)


def _bank(file: Path) -> None:
    root = next(parent for parent in file.parents if parent.name == "banks")
    store = BankStore.open(root, file.relative_to(root).parts[0])
    store.build_time()
    store.missing()
    store.verify()


def _output(file: Path) -> Path:
    return next(parent for parent in file.parents if parent.name == "small")


def _predict(file: Path) -> None:
    """Predict the rows of a file by the model of its columns, which have names in tables."""
    is_named = file.suffix in (".csv", ".gz", ".parquet")
    model = mkldist.load_model(file.with_name(f"{NAMED if is_named else 'small'}.model"))
    target, ignored = file.with_name("predicted.csv"), ["label"] if is_named else []
    write_predictions(model, file, target, ignored=ignored, overwrite=True)


def _load_model(file: Path) -> None:
    mkldist.load_model(file)


def _model(file: Path) -> None:
    mkldist.load_model(file).predict(POINTS)
