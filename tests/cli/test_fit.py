"""The commands `fit` and `predict`: from the results of a sweep to predictions, and mistakes."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.cli.models import _model_lines as _lines
from mkldist.results.folder import (
    ReadData,
    note_data,
    read_manifest,
    stamps_of,
    write_manifest,
)
from tests.cli.commands import run, run_here
from tests.fit.made_up import made_up_model, made_up_views
from tests.fit.sweeps import entry, recorded, rows, swept, table
from tests.test_lazy_import import HEAVY, modules_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with a finished sweep, a model and rows of another order."""
    folder = tmp_path_factory.mktemp("fit")
    swept(folder, entry("level", C=[1.0, 100.0]) + entry("uniform", C=100.0))
    rows().to_csv(folder / "new.csv", index=False)
    done = run(folder, "fit", "results", "-o", "mine.model")
    assert "chosen:   the best of 3 settings on the test parts" in done.stdout
    assert "new rows may have a larger error than the parts that chose it" in done.stdout
    assert "(converged)" in done.stdout
    assert "mkldist predict mine.model DATA -o predictions.csv" in done.stdout
    return folder


@pytest.mark.slow
def test_a_model_predicts_the_rows_of_a_file(folder):
    done = run_here(folder, "predict", "mine.model", "new.csv", "-o", "out.csv")
    found = pd.read_csv(folder / "out.csv")
    assert found["row"].tolist() == table()["row"].tolist()
    assert (found["prediction"] == table()["two"]).mean() > 0.9
    counts = found["prediction"].value_counts()
    assert f"out.csv: 72 rows, ill: {counts['ill']}, well: {counts['well']}" in done.stdout
    model = mkldist.load_model(folder / "mine.model")
    np.testing.assert_array_equal(found["decision"], model.decision_function(rows()))


@pytest.mark.slow
def test_a_calibrated_model_has_probabilities_and_is_scored_and_explained(folder):
    words = ("--method", "level", "--calibrate", "-o", "calibrated.model")
    done = run_here(folder, "fit", "results", *words)
    assert "proba:    sigmoid of 5 held-out folds: log loss" in done.stdout
    assert "predicts: well from a decision value of" in done.stdout
    table()[["row", "a", "b", "c", "size", "two"]].to_csv(folder / "labelled.csv", index=False)
    words = ("calibrated.model", "labelled.csv", "-o", "explained.csv", "--score", "--explain")
    done = run_here(folder, "predict", *words)
    found = pd.read_csv(folder / "explained.csv")
    assert ((found["probability"] >= 0.5) == (found["prediction"] == "well")).all()
    parts = found.filter(like="contribution[").sum(axis=1) + found["intercept"]
    np.testing.assert_allclose(parts, found["decision"], rtol=0, atol=1e-9)
    is_one = len(found.filter(like="contribution[").columns) == 1
    assert ("one part by features" in done.stderr) == is_one
    wrong = (found["prediction"] != table()["two"]).mean()
    assert re.search(rf"error +{100 * wrong:.2f} % +45.83 %", done.stdout)
    assert "Brier score" in done.stdout
    alone = run_here(folder, "predict", "calibrated.model", "labelled.csv", "--score")
    assert alone.stdout.splitlines()[1:] == done.stdout.splitlines()[1:]
    words = ("calibrated.model", "labelled.csv", "--score", "--json")
    document = json.loads(run_here(folder, "predict", *words).stdout)
    assert document["score"]["values"]["error"] == wrong
    assert sum(document["predicted"].values()) == document["rows"] == 72


@pytest.mark.slow
def test_a_split_predicts_as_the_sweep_did(folder):
    words = ("--method", "uniform", "--split", "1", "-o", "split.model")
    assert "the training part of split 1" in run(folder, "fit", "results", *words).stdout
    [record] = [
        one for one in recorded(folder / "results") if (one.key, one.split) == ("uniform", 1)
    ]
    model = mkldist.load_model(folder / "split.model")
    found = model.decision_function(rows().iloc[record.test_rows])
    np.testing.assert_allclose(found, record.decision_values, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_setting_may_be_chosen_and_changed(folder):
    words = ("--method", "level", "--set", "C=5", "--set", "tol=1e-4", "-o", "c.model")
    done = run(folder, "fit", "results", *words)
    assert "level, C = 5, tol = 0.0001" in done.stdout
    assert (
        "as asked; the results have no run of C = 5, tol = 0.0001, so the error of this setting"
        in done.stdout
    )
    assert mkldist.load_model(folder / "c.model").facts["params"]["C"] == 5.0


def test_unknown_categories_are_noted(folder):
    rows().replace({"size": {"S": "XL"}}).to_csv(folder / "xl.csv", index=False)
    done = run_here(folder, "predict", "mine.model", "xl.csv", "-o", "xl-out.csv")
    assert "note: column 'size': " in done.stderr
    assert "'XL' in " in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", "results", "-o", "mine.model"), "a file of that name.*--overwrite"),
        (("fit", "nothing", "-o", "x.model"), "no such folder, sweep file or name"),
        (("fit", "results", "--method", "levl", "-o", "x.model"), "Did you mean 'level'"),
        (("fit", "results", "--set", "C", "-o", "x.model"), "expected NAME=VALUE"),
        (
            ("fit", "results", "--method", "level", "--set", "C=x", "-o", "x.model"),
            "level.C: found",
        ),
        (("predict", "mine.mode", "new.csv", "-o", "x.csv"), "Did you mean 'mine.model'"),
        (("predict", "new.csv", "new.csv", "-o", "x.csv"), "new.csv: found no model"),
        (("predict", "mine.model", "nex.csv", "-o", "x.csv"), "Did you mean 'new.csv'"),
        (("predict", "mine.model", "small.toml", "-o", "x.csv"), "a file ending in '.toml'"),
        (("predict", "mine.model", "new.csv"), "found no -o; expected"),
    ],
)
def test_mistakes_are_met_by_one_message(folder, words, said):
    done = run_here(folder, *words, code=2)
    assert re.search(said, done.stderr), done.stderr
    assert not done.stdout
    assert not (folder / "x.model").exists()
    assert not (folder / "x.csv").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "results", "-o", "small.toml"),
        ("fit", "results", "-o", "linked.csv"),
        ("fit", "results", "-o", "results/records.journal"),
        ("export", "results", "--to", "mine.csv"),
        ("export", "results", "--format", "csv", "--to", "linked.csv"),
        ("report", "results", "-o", "linked.html"),
        ("explain", "results", "--figure", "linked.svg"),
        ("predict", "model.csv", "new.csv", "-o", "model.csv"),
        ("predict", "mine.model", "new.csv", "-o", "../fit/./new.csv"),
    ],
)
def test_no_output_replaces_what_the_command_reads(folder, tmp_path, words):
    folder = Path(shutil.copytree(folder, tmp_path / "fit"))
    manifest = folder / "results" / "sweep.json"
    write_manifest(folder / "results", read_manifest(manifest.parent).sweep, folder / "small.toml")
    stamps = stamps_of([folder / "mine.csv"])
    note_data(folder / "results", {"mine": ReadData("", stamps)})
    shutil.copy(folder / "mine.model", folder / "model.csv")
    for name, source in (("csv", "mine.csv"), ("html", "small.toml"), ("svg", "mine.csv")):
        (folder / f"linked.{name}").symlink_to(folder / source)
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = run_here(folder, *words, "--overwrite", code=2)
    assert "a file that this command reads" in done.stderr
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_kernel_of_several_classes_counts_once_as_in_tables(tmp_path):
    facts = {"rows": 4, "split": None, "objective": 1.0, "dual_objective": 1.0, "gap": 0.0}
    model = replace(made_up_model(["a", "b", "c"]), facts=facts | {"stop_reason": "converged"})
    first, *others = model.weights
    model = replace(model, weights=(np.where(np.arange(len(first)) == 0, 1e-4, first), *others))
    model.save(tmp_path / "a.model")
    kept = {i for one in model.functions for i in one.index}
    active = kept - (
        {model.functions[0].index[0]} - {i for f in model.functions[1:] for i in f.index}
    )
    assert len(active) < model.n_kernels
    said = f"active kernels: {len(active)}, support vectors: {model.n_support} (those of each class"
    assert any(said in line for line in _lines(model, tmp_path / "a.model"))


def test_a_model_of_views_is_given_their_files(tmp_path):
    facts = {"rows": 4, "split": None, "objective": 1.0, "dual_objective": 1.0, "gap": 0.0}
    model = replace(made_up_views(), facts=facts | {"stop_reason": "converged"})
    model.save(tmp_path / "a.model")
    said = "a.model DATA --view v=FILE --view k=FILE -o predictions.csv"
    assert _lines(model, tmp_path / "a.model")[-1].endswith(said)
    (tmp_path / "new.csv").write_text("row,a\nx,1\ny,2\n")
    (tmp_path / "v.csv").write_text("b,row,c\n1,y,0\n2,z,2\n")
    np.savez(tmp_path / "k.npz", grams=np.ones((2, 1, 4)), ids=["x"])
    words = ("--view", "v=v.csv", "--view", "k=k.npz", "-o", "out.csv")
    done = run_here(tmp_path, "predict", "a.model", "new.csv", *words)
    assert "note: view 'v': 1 of its 2 rows are not in the table and left out (z)" in done.stderr
    found = pd.read_csv(tmp_path / "out.csv")
    # 10 [K_0 + 4 K_2] + 1/2 without the view v; 2 [(b + 2c) - 3b] + 1/2 without the matrix
    assert found["row"].tolist() == ["x", "y"]
    np.testing.assert_allclose(found["prediction"], [10 * 5 + 0.5, 2 * (1 - 3) + 0.5])


@pytest.mark.slow
def test_predicting_a_table_imports_no_more_than_pandas(folder):
    words = ("predict", "mine.model", "new.csv", "-o", "light.csv")
    heavy = modules_of(*words, cwd=folder) & (HEAVY | {"rich"})
    assert heavy <= {"pandas", "pyarrow"}  # which pandas imports
