"""Gram matrices with negative eigenvalues against spectral formulas in numpy."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.errors import GramError, InputError, SpecError
from mkldist.fit.select import choose, refit
from mkldist.kernels import Gaussian, Precomputed

N, TRAIN, TEST = 30, np.arange(20), np.arange(20, 30)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
KINDS = ["clip", "flip", "shift"]
_NOISE = RNG.normal(size=(N, N))
PSD = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 2)
BAD = PSD + 0.15 * (_NOISE + _NOISE.T)
GRAMS = np.stack([PSD, BAD])


def changed(K: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix made semi-definite, and the factor of kernel values of new points."""
    values, V = np.linalg.eigh(K)
    if kind == "shift":
        return K - values[0] * np.eye(len(K)), np.eye(len(K))
    new = np.maximum(values, 0.0) if kind == "clip" else np.abs(values)
    factor = (values > 0.0).astype(float) if kind == "clip" else np.sign(values)
    return (V * new) @ V.T, (V * factor) @ V.T


def share(K: np.ndarray) -> str:
    values = np.linalg.eigvalsh(K)
    return f"{values[0] / values[-1]:.2g}"


def plan_of(keys: dict[str, Any], data: Any = None, **dataset: Any) -> Any:
    spec = {
        "name": "mine",
        "splits": {"kind": "kfold", "folds": 3},
        "datasets": [{"name": "d", **dataset}],
        "methods": [{"name": "uniform", "C": 1.0, "tol": 1e-9}],
        **keys,
    }
    return spec if data is None else (spec, {"d": data})


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", ["memory", "recompute"])
def test_a_bank_and_its_new_points_are_changed_by_one_projection(kind, backend):
    own = GRAMS[:, TRAIN[:, None], TRAIN]
    with pytest.raises(GramError, match=r'kernel 1: .*eigenvalue of -.*indefinite = "clip"'):
        mkldist.KernelBank.from_grams(own)
    with mkldist.KernelBank.from_grams(own, indefinite=kind, backend=backend) as bank:
        K, T = changed(own[1], kind)
        solution = mkldist.solve("uniform", bank, Y[TRAIN], C=1.0, tol=1e-9)
        plain = mkldist.KernelBank.from_grams(np.stack([own[0], K + 1e-12 * np.eye(20)]))
        expected = mkldist.solve("uniform", plain, Y[TRAIN], C=1.0, tol=1e-9)
        assert solution.objective == pytest.approx(expected.objective, rel=1e-6)
        between = GRAMS[:, TEST[:, None], TRAIN]
        found = solution.decision_function(bank.on(between))
        right = expected.decision_function(plain.on(np.stack([between[0], between[1] @ T])))
        np.testing.assert_allclose(found, right, atol=1e-6)
        said = f"1 of 2 Gram matrices had negative eigenvalues, down to {share(own[1])}"
        assert said in repr(bank)
        alone = mkldist.solve("uniform", bank[[1]], Y[TRAIN], C=1.0)
        again = alone.decision_function(bank[[1]].on(between[[1]]))
        assert np.isfinite(again).all()


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_beside_features_are_changed_alike(kind):
    own, between = BAD[np.ix_(TRAIN, TRAIN)], BAD[np.ix_(TEST, TRAIN)]
    kernels = [Gaussian(1.0), Precomputed(own, indefinite=kind)]
    bank = mkldist.KernelBank(X[TRAIN], kernels, normalisation="none")
    K, T = changed(own, kind)
    exact = [Gaussian(1.0), Precomputed(K + 1e-12 * np.eye(20))]
    plain = mkldist.KernelBank(X[TRAIN], exact, normalisation="none")
    one, two = (mkldist.solve("uniform", b, Y[TRAIN], C=1.0, tol=1e-9) for b in (bank, plain))
    found = one.decision_function(bank.on(X[TEST], grams={"given": between}))
    right = two.decision_function(plain.on(X[TEST], grams={"given": between @ T}))
    np.testing.assert_allclose(found, right, atol=1e-6)
    lacking = np.where(np.arange(20) < 3, np.nan, own)
    lacking[:3] = np.nan
    gaps = mkldist.KernelBank(
        X[TRAIN], [Precomputed(lacking, indefinite=kind)], normalisation="none", missing="zero"
    )
    [stored] = gaps._dataset.given["given"].grams
    np.testing.assert_allclose(stored[3:, 3:], changed(own[3:, 3:], kind)[0], atol=1e-10)
    assert not stored[:3].any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_sweep_says_what_it_changed(kind, dtype):
    bank = {"banks": [{"family": "precomputed"}]}
    np.savez("k.npz", grams=GRAMS.astype(dtype), y=Y)
    exact = np.stack([PSD, changed(BAD.astype(dtype).astype(float), kind)[0] + 1e-12 * np.eye(N)])
    for given, dataset in (
        (None, {"grams": "k.npz", "indefinite": kind}),
        ({"grams": GRAMS.astype(dtype), "y": Y}, {"indefinite": kind}),
    ):
        spec = plan_of({**bank, "name": "file" if given is None else "data"}, None, **dataset)
        data = None if given is None else {"d": given}
        plan = mkldist.plan(spec, data)
        said = f"1 of 2 Gram matrices had negative eigenvalues, down to {share(BAD)} of the largest"
        assert said in str(plan)
        found = mkldist.sweep(spec, data, workers=0, progress=False)
        spec = plan_of({**bank, "name": "exact"})
        right = mkldist.sweep(spec, {"d": {"grams": exact, "y": Y}}, workers=0, progress=False)
        objective = right["d/uniform"].objective.to_numpy()
        np.testing.assert_allclose(found["d/uniform"].objective, objective, rtol=1e-5)


def view_of(kind: str | None) -> dict[str, Any]:
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.assign(label=Y.astype(int), id=[f"P{i}" for i in range(N)]).to_csv("t.csv", index=False)
    np.savez("k.npz", grams=BAD, ids=[f"P{i}" for i in range(N)])
    view = {"name": "strings", "grams": "k.npz"} | ({"indefinite": kind} if kind else {})
    return plan_of(
        {"banks": [{"kernels": [{"function": "precomputed", "features": "strings"}]}]},
        None, file="t.csv", label="label", id="id", views=[view],
    )  # fmt: skip


def test_a_model_of_a_changed_view_is_refused_but_for_a_shift():
    with pytest.raises(GramError, match=r"'strings'.*k.npz.*smallest eigenvalue"):
        mkldist.plan(view_of(None))
    assert "view 'strings': 1 of 1 Gram matrix had" in str(mkldist.plan(view_of("clip")))
    for kind in KINDS:
        spec = {**view_of(kind), "name": kind}
        tree = mkldist.sweep(spec, workers=0, progress=False)
        assert tree["d/uniform"].sizes["split"] == 3
        results = Path("results") / kind
        if kind == "shift":
            assert refit(results, choose(results)).needed_views == ("strings",)
            continue
        with pytest.raises(InputError, match=f'indefinite = "{kind}".*expected.*shift'):
            refit(results, choose(results))


def test_kernel_values_given_apart_are_projected():
    own, between = BAD[np.ix_(TRAIN, TRAIN)], BAD[np.ix_(TEST, TRAIN)]
    np.savez("k.npz", K_train=own, K_test=between, y_train=Y[TRAIN], y_test=Y[TEST])
    spec = plan_of(
        {
            "banks": [{"family": "precomputed", "normalisation": "none"}],
            "splits": {"kind": "predefined"},
            "outputs": {"predictions": True},
        },
        None,
        grams="k.npz",
        indefinite="clip",
    )
    found = mkldist.sweep(spec, workers=0, progress=False)["d/uniform"]
    K, T = changed(own, "clip")
    solution = mkldist.solve("uniform", (K + 1e-12 * np.eye(20))[None], Y[TRAIN], C=1.0)
    right = solution.decision_function((between @ T)[None])
    values = found.decision_values.squeeze().dropna("sample").to_numpy()
    np.testing.assert_allclose(values, right, atol=1e-2)


def test_wrong_uses_are_refused():
    with pytest.raises(SpecError, match="indefinite: found 'cut'"):
        mkldist.KernelBank.from_grams(GRAMS, indefinite="cut")
    with pytest.raises(SpecError, match="indefinite: found check='none'"):
        mkldist.KernelBank.from_grams(GRAMS, indefinite="clip", check="none")
    with pytest.raises(InputError, match=r'indefinite = "clip" for features'):
        mkldist.plan(*plan_of({"banks": [{"family": "default"}]}, (X, Y), indefinite="clip"))
