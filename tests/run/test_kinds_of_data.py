"""Missing values, sparse features, texts, views, functions of the user, against hand-made ones."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.sparse import csr_array, random_array
from sklearn.datasets import dump_svmlight_file
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mkldist
from mkldist.bank.bank_kernels import BankKernels
from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.view import make_views
from mkldist.data.dataset import Dataset, Split
from mkldist.data.snapshot import load_snapshot
from mkldist.fit.decision import NewPoints
from mkldist.fit.engine import BankInputs
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import PreprocessingSpec
from tests.methods.instances import Instance
from tests.methods.references.simplex_svm import simplex_optimum
from tests.refit.sweeps import recorded
from tests.run.sweeps import records, run_here

N = 60
SWEEP = """
name = "views"
tol = 1e-6
[[datasets]]
name = "patients"
file = "clinical.csv"
label = "ill"
id = "patient"
impute = "mean"
[[datasets.views]]
name = "clinical"
[[datasets.views]]
name = "genes"
file = "genes.csv"
missing = "zero"
[[datasets.views]]
name = "strings"
grams = "strings.npz"
missing = "zero"
[splits]
repeats = 2
[[banks]]
name = "mine"
normalisation = "{normalisation}"
backend = "{backend}"
[[banks.kernels]]
function = "gaussian"
widths = [1, 3]
features = "views"
[[banks.kernels]]
function = "precomputed"
features = "strings"
[[methods]]
name = "level"
C = {C}
[outputs]
predictions = true
coefficients = true
"""


def write_views(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write three views in different orders; return their values in the order of the patients.

    A quarter of the patients have no genes and another quarter no string; some cells are missing.
    """
    rng = np.random.default_rng(11)
    y = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    names = np.array([f"p{i:02d}" for i in range(N)])
    clinical = np.round(rng.normal(size=(N, 2)) + 0.5 * y[:, None], 2)
    clinical[[3, 30], 1] = np.nan
    genes = np.round(rng.normal(size=(N, 5)), 2)
    genes[:, 0] += y
    genes[4, 2] = np.nan
    genes[rng.permutation(N)[:15]] = np.nan
    factors = rng.normal(size=(N, 3))
    factors[:, 0] += y
    has_string = np.ones(N, dtype=bool)
    has_string[rng.permutation(N)[:15]] = False
    strings = (factors @ factors.T) * np.outer(has_string, has_string)

    def line(*values: object) -> str:
        return ",".join("" if str(value) == "nan" else str(value) for value in values)

    words = np.where(y > 0, "yes", "no")
    lines = [line(*row) for row in zip(names, *clinical.T, words, strict=True)]
    (folder / "clinical.csv").write_text("\n".join(["patient,age,bmi,ill", *lines, ""]))
    order = [i for i in rng.permutation(N) if not np.isnan(genes[i]).all()]
    lines = [line(names[i], *genes[i]) for i in order]
    (folder / "genes.csv").write_text(
        "\n".join(["patient,a,b,c,d,e", *lines, "other,1,2,3,4,5", ""])
    )
    own = rng.permutation(np.flatnonzero(has_string))
    np.savez(folder / "strings.npz", grams=strings[np.ix_(own, own)], ids=names[own])
    return clinical, genes, strings


def prepared(x: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Impute single cells by the mean and scale, by the training points that have the view."""
    absent = np.isnan(x).all(axis=1)
    x = np.where(np.isnan(x) & ~absent[:, None], np.nanmean(x[train], axis=0), x)
    own = x[train][~absent[train]]
    return (x - own.mean(axis=0)) / own.std(axis=0)


def grams_by_hand(
    views: tuple[np.ndarray, ...], train: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the five Gram matrices of all patients, and which patients have which."""
    clinical, genes, strings = views
    grams, has = [], []
    for x in (clinical, genes):
        points = prepared(x, train)
        present = ~np.isnan(points).any(axis=1)
        for width in (1.0, 3.0):
            gram = rbf_kernel(np.nan_to_num(points), gamma=0.5 / width**2)
            grams.append(gram * np.outer(present, present))
            has.append(present)
    return np.array([*grams, strings]), np.array([*has, np.diag(strings) > 0])


def normalised(
    grams: np.ndarray, has: np.ndarray, train: np.ndarray, how: str
) -> tuple[np.ndarray, np.ndarray]:
    """Fix the mean of k(x, x), or the variance, over training patients who have the view."""
    factors = []
    for gram, present in zip(grams, has, strict=True):
        own = train[present[train]]
        mean = np.diag(gram)[own].mean()
        if how == "variance":
            factors.append(1.0 / (mean - gram[np.ix_(own, own)].mean()))
        else:
            factors.append(1.0 / (len(train) * mean))
    return np.array(factors)[:, None, None] * grams, np.array(factors)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("normalisation", "backend", "C"), [("trace", "auto", 50.0), ("variance", "recompute", 1.0)]
)
def test_a_sweep_over_views_solves_the_problem_of_explicit_matrices(
    normalisation, backend, C, tmp_path, scheduler
):
    views, said = write_views(tmp_path), StringIO()
    text = SWEEP.format(normalisation=normalisation, backend=backend, C=C)
    outcome = run_here(
        text, tmp_path / "out", scheduler, console=lambda: Console(file=said, width=200)
    )
    assert (
        "genes, 5 features; 15 of 60 points lack it: its kernels are zero there" in said.getvalue()
    )
    assert "1 of its 46 rows are not in the data set and left out (other)" in said.getvalue()
    [path] = (outcome.path / "snapshots").iterdir()
    dataset, splits = load_snapshot(path)
    found = records(outcome.path).values()
    assert len(found) == 2
    for record in found:
        train, test = splits[record.split].train, splits[record.split].test
        grams, has = grams_by_hand(views, train)
        scaled, _ = normalised(grams, has, train, normalisation)
        own = scaled[:, train[:, None], train]
        y = dataset.y[train]
        optimum = simplex_optimum(Instance("views", own, y, C), y, {"C": C})
        assert record.dual_objective <= optimum * (1 + 1e-6)
        assert record.objective == pytest.approx(optimum, rel=1e-5)
        weights = np.zeros(5)
        weights[record.kernels] = record.weights
        between = np.einsum("m,mij->ij", weights, scaled[:, test[:, None], train])
        values = between @ record.coefficients + record.bias
        np.testing.assert_allclose(record.decision_values, values, rtol=1e-8, atol=1e-10)
        assert (~has[:, test]).any()


WIDTH = 1.5
IMPUTATION_SWEEP = f"""
name = "gaps"
[[datasets]]
name = "gaps"
file = "gaps.csv"
label = "ill"
impute = "{{impute}}"
[preprocessing]
fit = "{{fit}}"
[splits]
repeats = 2
[[banks]]
normalisation = "none"
kernels = [{{{{ function = "gaussian", widths = [{WIDTH}] }}}}]
[[methods]]
name = "uniform"
C = 10
[outputs]
predictions = true
coefficients = true
"""


def write_gaps(folder: Path) -> None:
    """Write 60 points of three skewed features, of which every seventh value is missing."""
    rng = np.random.default_rng(3)
    x = np.round(rng.exponential(size=(60, 3)), 1)
    ill = np.where(x.sum(axis=1) + rng.normal(size=60) > 3, "yes", "no")
    x.ravel()[::7] = np.nan
    rows = [",".join("" if np.isnan(v) else f"{v}" for v in row) for row in x]
    lines = [f"{row},{word}" for row, word in zip(rows, ill, strict=True)]
    (folder / "gaps.csv").write_text("\n".join(["a,b,c,ill", *lines]) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fit", "impute"), [("train", "median"), ("all", "mean"), ("train", "most_frequent")]
)
def test_decision_values_are_those_of_imputers_fitted_on_the_same_rows(
    fit, impute, tmp_path, scheduler
):
    write_gaps(tmp_path)
    text, said = IMPUTATION_SWEEP.format(fit=fit, impute=impute), StringIO()
    outcome = run_here(text, tmp_path / "out", scheduler, console=lambda: Console(file=said))
    assert "26 of 60 rows miss values in 3 columns: filled with the" in said.getvalue()
    [path] = (outcome.path / "snapshots").iterdir()
    x = np.genfromtxt(tmp_path / "gaps.csv", delimiter=",", skip_header=1, usecols=(0, 1, 2))
    _, splits = load_snapshot(path)
    found = records(outcome.path).values()
    assert sorted(record.split for record in found) == [0, 1]
    for record in found:
        fitted = splits[record.split].train if fit == "train" else slice(None)
        assert np.isnan(x[record.test_rows]).any()
        prepared = make_pipeline(SimpleImputer(strategy=impute), StandardScaler())
        points = prepared.fit(x[fitted]).transform(x)
        test, train = points[record.test_rows], points[record.train_rows]
        kernel = rbf_kernel(test, train, gamma=1 / (2 * WIDTH**2))
        values = kernel @ record.coefficients * record.kernel_weights[0] + record.bias
        np.testing.assert_allclose(record.decision_values, values, rtol=1e-10, atol=1e-10)


POINTS = csr_array(random_array((60, 40), density=0.1, rng=np.random.default_rng(0)))
SPARSE_SWEEP = """
name = "sparse"
tol = 1e-6
[[datasets]]
name = "wide"
file = "wide.svm"
{sparse}
[preprocessing]
scale = "none"
[splits]
repeats = 2
[[banks]]
normalisation = "cosine"
kernels = [{{ function = "gaussian", widths = [1, 3], features = ["all", "f1"] }},
           {{ function = "polynomial", degrees = 2 }}, {{ function = "linear" }}]
[[methods]]
name = "level"
C = 1
[outputs]
predictions = true
"""


@pytest.mark.parametrize("scale", ["none", "tfidf"])
@pytest.mark.slow
def test_a_sweep_over_sparse_features_equals_one_over_dense_ones(
    scale: str, tmp_path: Path, scheduler
):
    y = np.where(POINTS.sum(axis=1) > np.median(POINTS.sum(axis=1)), 1, -1)
    dump_svmlight_file(POINTS, y, str(tmp_path / "wide.svm"), zero_based=False)
    found = {}
    for key in ("sparse = true", ""):
        text = SPARSE_SWEEP.format(sparse=key).replace('scale = "none"', f'scale = "{scale}"')
        outcome = run_here(text, tmp_path / (key[:6] or "dense"), scheduler)
        found[key] = sorted(records(outcome.path).values(), key=lambda record: record.split)
    for sparse, dense in zip(*found.values(), strict=True):
        assert sparse.objective == pytest.approx(dense.objective, rel=1e-6)
        np.testing.assert_array_equal(sparse.test_rows, dense.test_rows)
        np.testing.assert_allclose(sparse.decision_values, dense.decision_values, atol=1e-3)


TEXTS_N = 48
TEXTS_SWEEP = """
name = "texts"
tol = 1e-6
[[datasets]]
name = "proteins"
file = "t.csv"
texts = ["chain"]
[[datasets.views]]
name = "dna"
columns = ["chain"]
missing = "zero"
[splits]
repeats = 2
[preprocessing]
scale = "none"
[[banks]]
name = "mine"
normalisation = "none"
backend = "{backend}"
[[banks.kernels]]
function = "gaussian"
widths = 1
[[banks.kernels]]
function = "spectrum"
length = [1, 2]
features = "dna"
[[methods]]
name = "level"
C = 1
[outputs]
predictions = true
coefficients = true
"""


def write_table(folder: Path) -> np.ndarray:
    """Write points of a number and a text, which two lack; return their kernels, (3, n, n)."""
    rng = np.random.default_rng(5)
    y = rng.permutation(TEXTS_N) % 2
    x = np.round(rng.normal(size=TEXTS_N) + 0.5 * y, 3)
    chains = ["".join(rng.choice(list("abc"), 5)) + "ab" * 2 * one for one in y]
    chains[3] = chains[20] = ""
    rows = [f"{a},{b},{c}" for a, b, c in zip(x, chains, y, strict=True)]
    (folder / "t.csv").write_text("\n".join(["x,chain,label", *rows]) + "\n")
    grams = [rbf_kernel(x[:, None], gamma=0.5)]
    for length in (1, 2):
        counter = CountVectorizer(analyzer="char", ngram_range=(length, length))
        counts = counter.fit_transform(chains)
        grams.append((counts @ counts.T).toarray())
    return np.array(grams)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["mmap", "recompute"])
def test_a_bank_of_numbers_and_texts_is_learnt_from_and_predicts(
    backend: str, tmp_path: Path, scheduler: str | None
) -> None:
    grams = write_table(tmp_path)
    outcome = run_here(TEXTS_SWEEP.format(backend=backend), tmp_path / "results", scheduler)
    found = list(records(outcome.path).values())
    assert len(found) == 2
    for record in found:
        assert record.state == "complete"
        train, test = record.train_rows, record.test_rows
        own = grams[:, train[:, None], train]
        combined = np.einsum("m,mij->ij", record.kernel_weights, grams)
        values = combined[test[:, None], train] @ record.coefficients + record.bias
        np.testing.assert_allclose(record.decision_values, values, rtol=1e-8, atol=1e-8)
        labels = np.loadtxt(tmp_path / "t.csv", delimiter=",", skiprows=1, usecols=2)
        signs = np.where(labels[train] > 0, 1.0, -1.0)
        optimum = simplex_optimum(Instance("texts", own, signs, 1.0), signs, {"C": 1.0})
        assert record.dual_objective <= optimum * (1 + 1e-6)
        assert record.objective >= optimum * (1 - 1e-6)
        assert record.gap <= 1e-6


WIDTHS = (0.5, 1.0, 2.0, 4.0)
SPLIT = Split(train=np.array([5, 1, 7, 2]), test=np.array([0, 9, 4]))
RNG = np.random.default_rng(3)
X = RNG.normal(size=(10, 2))
GRAMS = np.array([(k + 1.0) * rbf_kernel(X, gamma=1 / (2 * w**2)) for k, w in enumerate(WIDTHS)])


def on_features() -> BankInputs:
    data = Dataset("d", X, np.ones(10), ("no", "yes"), ("a", "b"))
    entry = {"function": "gaussian", "widths": list(WIDTHS)}
    kernels = BankKernels.of(BankSpec.model_validate({"kernels": [entry]}), data, seed=0)
    return BankInputs(data, (SPLIT,), None, X, kernels, (), PreprocessingSpec(), seed=0)


def on_grams(*, cosine: bool = True) -> BankInputs:
    data = Dataset("d", None, np.ones(10), ("no", "yes"), (), grams=GRAMS)
    steps = ("cosine",) if cosine else ()
    return BankInputs(data, (SPLIT,), None, None, None, steps, PreprocessingSpec(), seed=0)


def kernels_by_hand(*, cosine: bool = True) -> np.ndarray:
    kernels = np.array([K / K[0, 0] for K in GRAMS]) if cosine else GRAMS
    return kernels[:, SPLIT.test[:, None], SPLIT.train]


def points_of(inputs: BankInputs, cached_bytes: int = 0) -> NewPoints:
    bank = RecomputedBank(inputs.source())
    [view] = make_views(bank, [SPLIT.train], ())
    return inputs.new_points(view, SPLIT.test, SPLIT.train, cached_bytes)


@pytest.mark.parametrize("cached_bytes", [0, 2**20])
@pytest.mark.parametrize("inputs", [on_features, on_grams])
def test_values_are_weighted_sums_of_kernels(inputs, cached_bytes):
    points = points_of(inputs(), cached_bytes)
    weights, bias = np.array([-1.0, 0.0, 4.0, 0.25]), 0.5
    used = np.flatnonzero(weights)
    for coefficients in (RNG.normal(size=4), RNG.normal(size=(3, 4)), np.array([0.5, 0, -2, 1])):
        found = points.decision_values(weights, coefficients, bias)
        each = np.broadcast_to(coefficients, (3, 4))
        by_hand = np.einsum("s,sti,si->t", weights[used], kernels_by_hand()[used], each) + bias
        np.testing.assert_allclose(found, by_hand, rtol=1e-12)


def test_precomputed_kernels_are_scaled_to_cosines_only_if_asked_for():
    points = points_of(on_grams(cosine=False))
    found = points.decision_values(np.array([0.0, 0.0, 0.0, 1.0]), np.ones(4), 0.0)
    np.testing.assert_allclose(found, kernels_by_hand(cosine=False)[3].sum(axis=1), rtol=1e-12)


CUSTOM_KERNELS_SWEEP = """
name = "own"
[[datasets]]
name = "table"
file = "table.csv"
[splits]
kind = "kfold"
folds = 2
[preprocessing]
scale = "none"
[[banks]]
name = "mine"
[[banks.kernels]]
function = "beside:hellinger"
parameters = { power = [0.5, 1] }
[[banks.kernels]]
function = "jaccard"
[outputs]
predictions = true
[[methods]]
name = "level"
C = 10
tol = 1e-6
"""
CODE = """
def hellinger(left, right, power=0.5):
    return left**power @ (right**power).T
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Return a sweep file with its table and its code beside it."""
    x = np.random.default_rng(0).integers(1, 9, size=(30, 3))
    rows = [f"{a},{b},{c},{'yes' if a > b else 'no'}" for a, b, c in x.tolist()]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c,class", *rows]))
    (tmp_path / "beside.py").write_text(CODE)
    (tmp_path / "own.toml").write_text(CUSTOM_KERNELS_SWEEP)
    return tmp_path / "own.toml"


def called(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of mkldist; in a folder other than that of the sweep file."""
    command = [sys.executable, "-m", "mkldist", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_code_runs_only_if_allowed_and_again_if_it_changes(sweep, tmp_path):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    for command in (("plan", sweep), ("sweep", sweep), ("bank", "build", sweep)):
        refused = called(*command, cwd=elsewhere)
        assert refused.returncode == 2
        assert (
            "kernels[0].function: found 'beside:hellinger', code that would run" in refused.stderr
        )
    assert not list(elsewhere.iterdir())

    planned = called("plan", sweep, "--allow-code", cwd=elsewhere)
    assert planned.returncode == 0, planned.stderr
    assert "runs code that is not mkldist's: beside:hellinger" in planned.stderr
    done = called("sweep", sweep, "--allow-code", "--workers", "1", cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    tree = mkldist.open_results(elsewhere / "results" / "own")
    node = tree["table/level"]
    assert node["kernel"].to_numpy().tolist() == [
        "beside:hellinger(power=0.5)[all]",
        "beside:hellinger(power=1)[all]",
        "jaccard[all]",
    ]
    again = called("sweep", sweep, "--allow-code", cwd=elsewhere)
    assert "Nothing to do" in again.stdout
    _fit_and_predict(sweep, elsewhere)

    (sweep.parent / "beside.py").write_text(CODE.replace("return", "return 0.5 *"))
    planned = called("plan", sweep, "--allow-code", cwd=elsewhere)
    assert "recorded:  0 of 2 runs" in planned.stdout


def _fit_and_predict(sweep: Path, cwd: Path) -> None:
    """Fit a model and predict with it; both call the function only where that is allowed."""
    refused = called("fit", "own", cwd=cwd)
    assert refused.returncode == 2
    assert "found 'beside:hellinger', code that would run" in refused.stderr
    fit = called("fit", "own", "--split", "0", "--allow-code", "-o", sweep.with_suffix(".model"),
                 cwd=cwd)  # fmt: skip
    assert fit.returncode == 0, fit.stderr
    assert fit.stdout.rstrip().endswith("DATA --allow-code -o predictions.csv")
    words = ("predict", sweep.with_suffix(".model"), sweep.parent / "table.csv", "-o", "out.csv")
    refused = called(*words, cwd=cwd)
    assert refused.returncode == 2
    assert "not mkldist's: 'beside:hellinger'" in refused.stderr
    done = called(*words, "--allow-code", cwd=cwd)
    assert done.returncode == 0, done.stderr
    [record] = [one for one in recorded(cwd / "results" / "own") if one.split == 0]
    found = pd.read_csv(cwd / "out.csv")["decision"].to_numpy()[record.test_rows]
    np.testing.assert_allclose(found, record.decision_values.ravel(), rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_function_that_is_no_kernel_stops_the_command_before_any_run(sweep):
    (sweep.parent / "beside.py").write_text(CODE.replace("return", "return -1 *"))
    stopped = called("sweep", sweep, "--allow-code", cwd=sweep.parent)
    assert stopped.returncode == 2
    assert "kernel function beside:hellinger(power=0.5): found an eigenvalue of -" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not (sweep.parent / "results").exists()
