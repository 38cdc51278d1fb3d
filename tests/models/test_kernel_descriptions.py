"""Models with kernel functions of one's own: named in the file, called only where that is asked."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.svm import SVC

import mkldist
from mkldist.cli.models import predict_command as predict
from mkldist.core.checksums import unframed
from mkldist.errors import SpecError, StoreError
from mkldist.fit.estimators import BANKS
from mkldist.kernels import Custom, Gaussian

RNG = np.random.default_rng(1)
X = RNG.integers(1, 9, size=(40, 3)).astype(float)
Y = np.where(X[:, 0] > X[:, 1], "yes", "no")
CODE = """
from pathlib import Path

Path(__file__).with_suffix(".called").touch()


def hellinger(left, right, power=0.5):
    return left**power @ (right**power).T


def ends(left, right):
    return (left[:, :1] == right[:, 0]).astype(float)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return a folder with a module of kernel functions, which no process has imported."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_kernels", raising=False)
    (tmp_path / "own_kernels.py").write_text(CODE)
    return tmp_path


def fitted(folder: Path, **settings: object) -> mkldist.MKLClassifier:
    """Return a classifier on a function of the module, saved as a model beside it."""
    BANKS.clear()
    sys.path.insert(0, str(folder))
    kernels = [Custom("own_kernels:hellinger", {"power": [0.5, 1.0]}), Gaussian(2.0)]
    model = mkldist.MKLClassifier(
        "uniform", kernels=kernels, scale=None, normalisation="none", tol=1e-8, **settings
    ).fit(X, Y)
    model.to_model().save(folder / "a.model")
    sys.path.remove(str(folder))
    del sys.modules["own_kernels"]
    (folder / "own_kernels.called").unlink()
    return model


def test_a_model_calls_functions_of_the_user_only_where_asked(folder):
    model = fitted(folder)
    with pytest.raises(StoreError, match=r"a.model: found kernel functions that are not mkldist's: "
                       r"'own_kernels:hellinger'; expected .*allow_code=True"):  # fmt: skip
        mkldist.load_model(folder / "a.model")
    assert not (folder / "own_kernels.called").exists()
    again = mkldist.load_model(folder / "a.model", allow_code=True)
    assert (folder / "own_kernels.called").exists()
    found = again.decision_function(X)
    np.testing.assert_allclose(found, model.decision_function(X), rtol=1e-12)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    total = (np.sqrt(X) @ np.sqrt(X).T + X @ X.T + np.exp(-squares / 8)) / 3
    svm = SVC(kernel="precomputed", tol=1e-10).fit(total, Y)
    np.testing.assert_allclose(found, svm.decision_function(total), atol=2e-3)
    header, _ = unframed((folder / "a.model").read_bytes()) or ({}, {})
    assert header["functions"][0]["kernels"][0]["arguments"] == {"power": 0.5}


def test_a_function_that_has_changed_is_refused(folder):
    fitted(folder)
    text = CODE.replace("left**power @", "2.0 * left**power @")
    (folder / "own_kernels.py").write_text(text)
    with pytest.raises(StoreError, match="function 'own_kernels:hellinger' with values that"):
        mkldist.load_model(folder / "a.model", allow_code=True)
    (folder / "own_kernels.py").write_text("# another file")
    del sys.modules["own_kernels"]
    with pytest.raises(SpecError, match="'own_kernels:hellinger', which cannot be imported"):
        mkldist.load_model(folder / "a.model", allow_code=True)


def test_a_command_predicts_with_functions_of_the_user_only_where_asked(folder):
    model = fitted(folder)
    table, out = folder / "new.csv", folder / "out.csv"
    pd.DataFrame(X, columns=["x0", "x1", "x2"]).to_csv(table, index=False)
    words = [str(folder / "a.model"), str(table), "-o", str(out)]
    refused = CliRunner().invoke(predict, words)
    assert isinstance(refused.exception, StoreError)
    assert "Repeat the command with --allow-code" in str(refused.exception)
    assert CliRunner().invoke(predict, [*words, "--allow-code"]).exit_code == 0
    assert pd.read_csv(out)["prediction"].tolist() == model.predict(X).tolist()


def test_functions_without_a_name_are_not_saved(tmp_path):
    def local(left, right):
        return left @ right.T

    for call, name in ((local, "local"), (lambda x, z: x @ z.T, "<lambda>")):
        model = mkldist.MKLClassifier(kernels=[call]).fit(X, Y).to_model()
        assert set(model.predict(X)) == {"yes", "no"}
        with pytest.raises(SpecError, match=f"function '{name}', which no name imports; expected"):
            model.save(tmp_path / "b.model")


def test_functions_of_texts_and_functions_at_hand_are_found_by_their_name(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    import own_kernels  # the module that the fixture wrote

    table = pd.DataFrame({"letter": np.where(Y == "yes", "a", "b")})
    table["letter"] = np.where(np.arange(len(Y)) % 5, table["letter"], "c")
    kernels = [Custom(own_kernels.ends, features="letter")]
    model = mkldist.MKLClassifier(kernels=kernels, texts=["letter"]).fit(table, Y)
    model.to_model().save(folder / "t.model")
    again = mkldist.load_model(folder / "t.model", allow_code=True)
    expected = model.decision_function(table)
    np.testing.assert_allclose(again.decision_function(table), expected, rtol=1e-12)
