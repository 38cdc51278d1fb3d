"""Over three hundred mistakes, each met by place, found, expected and what to do."""

import contextlib
import io
import pickle
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mkldist.cli import main
from tests.fit.made_up import made_up_views

ROWS = ["id,age,sex,visit,pressure,label"] + [
    f"{100 + i},{20 + 7 * i % 50},{'fm'[i % 2]},2021-03-{1 + i:02d},{1.5 * (5 * i % 11) + 80},"
    f"{['no', 'yes'][i * i % 3 > 0]}"
    for i in range(24)
]
CSV = "\n".join(ROWS) + "\n"
TABLE = """\
file = "patients.csv"
label = "label"
id = "id"
ignore = ["visit"]
categorical = ["sex"]
"""
SWEEP = f"""\
name = "mine"
tol = 0.01
[[datasets]]
name = "patients"
{TABLE}[preprocessing]
scale = "zscore"
[splits]
repeats = 2
train_fraction = 0.5
[[banks]]
name = "gaussians"
[[banks.kernels]]
function = "gaussian"
widths = [1.0, 2.0]
features = ["all", "each"]
[[methods]]
name = "level"
C = [1, 10]
[[methods]]
name = "best_single"
C = [1, 10]
"""
OF_GRAMS = """\
name = "g"
[[datasets]]
name = "k"
grams = "g.npz"
[[banks]]
family = "precomputed"
[[methods]]
name = "level"
"""
CONSTANT = "id,age,sex,visit,pressure,label\n" + "".join(
    f"{i},3,f,x,4,{'yes' if i else 'no'}\n" for i in range(20)
)
TABLES: dict[str, Callable[[str], str | bytes]] = {
    "empty": lambda t: "",
    "header only": lambda t: ROWS[0] + "\n",
    "one row": lambda t: "\n".join(ROWS[:2]) + "\n",
    "one class": lambda t: t.replace("yes", "no"),
    "labels empty": lambda t: t.replace(",yes", ",").replace(",no", ","),
    "text and gap": lambda t: t.replace("25", "old", 1).replace(",27,", ",,", 1),
    "missing value": lambda t: t.replace(",27,", ",,", 1),
    "inf": lambda t: t.replace("82.0", "inf").replace("80.0", "inf"),
    "row too long": lambda t: t.replace(ROWS[3], ROWS[3] + ",7"),
    "row too short": lambda t: t.replace(ROWS[3], "1,2"),
    "duplicate names": lambda t: t.replace("age", "sex", 1),
    "column without name": lambda t: t.replace("age", "", 1),
    "latin-1": lambda t: t.replace("no", "né").encode("latin-1"),
    "open quote": lambda t: t.replace("no", '"no', 1),
    "Yes and yes": lambda t: t.replace("no", "yes", 1).replace("yes", "Yes", 1),
    "no header": lambda t: "\n".join(ROWS[1:]),
    "constant columns, class of one row": lambda t: CONSTANT,
}
X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.r_[np.ones(10), -np.ones(10)]
THIRD = np.arange(20) == 3
ARCHIVES: dict[str, dict[str, Any]] = {
    "no y": {"x": X},
    "no x": {"y": Y},
    "lengths": {"x": X, "y": Y[:5]},
    "1-d x": {"x": X[:, 0], "y": Y},
    "nan": {"x": np.where(np.arange(60).reshape(20, 3) == 4, np.nan, X), "y": Y},
    "complex": {"x": X + 1j, "y": Y},
    "objects": {"x": X.astype(object), "y": Y},
    "strings": {"x": X.astype(str), "y": Y},
    "3-d": {"x": X[None], "y": Y},
    "empty": {"x": X[:0], "y": Y[:0]},
    "no columns": {"x": X[:, :0], "y": Y},
    "y nan": {"x": X, "y": np.where(THIRD, np.nan, Y)},
    "feature names": {"x": X, "y": Y, "feature_names": np.array(["a", "b"])},
    "label missing": {"x": X, "y": Y},
    "sparse shape": {
        "data": np.ones(3), "indices": np.array([0, 1, 99]), "y": Y,
        "indptr": np.r_[0, 1, 2, 3, np.full(17, 3)], "shape": np.array([20, 3]),
    },
    "train index": {"x": X, "y": Y, "train": np.array([[0, 1, 50]]), "test": np.array([[2, 3]])},
}  # fmt: skip
LINES = {
    "text": "hello world\n",
    "bad pair": "1 1:0.5 2\n-1 1:0.2\n",
    "index 0": "1 0:0.5\n-1 1:0.2\n",
    "order": "1 3:0.5 2:1\n-1 1:0.2\n",
    "value": "1 1:abc\n-1 1:0.2\n",
    "empty": "",
    "huge index": "1 1:1 99999999999:1\n-1 1:2\n" * 10,
    "nan": "1 1:nan\n-1 1:2\n" * 10,
    "queries": "1 qid:1 1:3\n" + "-1 1:2\n" * 19,
}
GRAMS = np.stack([X @ X.T, np.eye(20)])
APART = {"K_train": GRAMS[:, :9, :9], "K_test": GRAMS[:, 9:, :9], "y_train": Y[:9], "y_test": Y[9:]}
STACKS: dict[str, dict[str, Any]] = {
    "no labels": {"grams": GRAMS},
    "not square": {"grams": GRAMS[:, :, :5], "y": Y},
    "asymmetric": {"grams": GRAMS + np.triu(np.ones((20, 20))), "y": Y},
    "indefinite": {"grams": GRAMS - 0.5 * np.eye(len(Y)), "y": Y},
    "negative": {"grams": -GRAMS, "y": Y},
    "nan": {"grams": GRAMS * np.nan, "y": Y},
    "length": {"grams": GRAMS, "y": Y[:3]},
    "names": {"K": GRAMS, "labels": Y},
    "2-d": {"grams": GRAMS[0], "y": Y},
    "kernel names": {"grams": GRAMS, "y": Y, "kernel_names": ["a", "a"]},
    "apart": APART,
    "turned": {**APART, "K_test": GRAMS[:, :9, 9:]},
}


def prepared(kind: str, mistake: dict[str, Any], folder: Path) -> list[str]:
    """Write the files with a mistake, and return the words of the command that meets it."""
    table: str | bytes = CSV
    sweep, case = SWEEP, mistake.get("case", "")
    words = ["plan", "mine.toml"]
    if kind == "cmd":
        words = mistake["words"].split()
    elif kind == "predict":
        words = ["predict", "views.model", "new.csv", "-o", "out.csv", *mistake["words"].split()]
        write_views(folder, mistake.get("changed", {}))
    elif kind == "set":
        words += ["--set", mistake["words"]]
    elif kind == "spec":
        assert mistake["right"] in SWEEP
        sweep = SWEEP.replace(mistake["right"], mistake["wrong"], 1)
    elif kind == "add":
        sweep += mistake["text"]
    elif kind == "csv":
        table = TABLES[case](CSV)
    elif kind == "npz":
        label = 'label = "z"\n' if case == "label missing" else ""
        sweep = SWEEP.replace(TABLE, f'file = "d.npz"\n{label}')
        write_archive(folder / "d.npz", case)
    elif kind == "svm":
        sweep = SWEEP.replace(TABLE, 'file = "d.svm"\n')
        (folder / "d.svm").write_text(LINES[case])
    else:
        sweep = OF_GRAMS
        np.savez(folder / "g.npz", **STACKS[case])
    (folder / "patients.csv").write_bytes(table.encode() if isinstance(table, str) else table)
    (folder / "mine.toml").write_text(sweep)
    return words


def write_views(folder: Path, changed: dict[str, str]) -> None:
    """Write a model of a table, a view and a Gram matrix, and rows of these with changed files."""
    made_up_views().save(folder / "views.model")
    np.savez(folder / "k.npz", grams=np.ones((2, 2, 4)), ids=["x", "y"])
    np.savez(folder / "short.npz", grams=np.ones((2, 2, 3)), ids=["x", "y"])
    points = ["p", "r", "p", "q"]
    np.savez(folder / "twice.npz", grams=np.ones((2, 2, 4)), ids=["x", "y"], points=points)
    files = {"new.csv": "row,a\nx,1\ny,2\n", "v.csv": "row,b,c\nx,1,2\n"} | changed
    for name, text in files.items():
        (folder / name).write_text(text)


def write_archive(path: Path, case: str) -> None:
    if case in ARCHIVES:
        np.savez(path, **ARCHIVES[case])
        return
    np.savez(path, x=X, y=Y)
    contents = {"pickle": pickle.dumps({"x": 1}), "text": b"hello", "cut": path.read_bytes()[:200]}
    path.write_bytes(contents[case])


with (Path(__file__).parent / "mistakes.toml").open("rb") as file:
    MISTAKES = [(kind, one) for kind, some in tomllib.load(file).items() for one in some]


def test_there_are_many_of_them():
    assert len(MISTAKES) > 250


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "mistake"), MISTAKES, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(MISTAKES)]
)
def test_a_mistake_is_met_by_one_message(kind, mistake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = prepared(kind, mistake, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr(sys, "argv", ["mkldist", *words])
    err = io.StringIO()
    with (
        contextlib.redirect_stderr(err),
        contextlib.redirect_stdout(io.StringIO()),
        pytest.raises(SystemExit) as end,
    ):
        main()
    text = err.getvalue()
    assert end.value.code == 2, text
    assert "Traceback" not in text
    place = 0
    for said in mistake["said"]:
        assert said in text[place:], f"{said!r} is not in {text[place:]!r}"
        place = text.index(said, place) + len(said)
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before
