"""Files of models: read back unchanged, whole or absent, else refused; functions of the user."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.svm import SVC

import mkldist
from mkldist.core.checksums import frame, unframed
from mkldist.errors import OutputError, SpecError, StoreError
from mkldist.fit.estimators import BANKS
from mkldist.fit.model import FORMAT, Model, described, kernel_list, packed_points, unpacked_points
from mkldist.kernels import Custom, Gaussian, Linear
from tests.fit.made_up import made_up_model, made_up_table

TABLE = made_up_table()


def content_of(model: Model, folder: Path) -> tuple[dict, dict]:
    """Return header and arrays of a model's file."""
    model.save(folder / "a.model")
    return unframed((folder / "a.model").read_bytes())


def reread(header: dict, arrays: dict, folder: Path) -> Model:
    """Return the model of a file of this content."""
    (folder / "a.model").write_bytes(frame(header, arrays))
    return mkldist.load_model(folder / "a.model")


@pytest.mark.parametrize("classes", [("ill", "well"), (3, 1, 2), (False, True), None], ids=str)
@pytest.mark.parametrize("filled", [True, False])
def test_a_model_reads_back_to_the_last_bit(classes, filled, tmp_path):
    model = made_up_model(classes, filled=filled)
    model.save(tmp_path / "a.model")
    again = mkldist.load_model(tmp_path / "a.model")
    table = TABLE.fillna(0.0)
    np.testing.assert_array_equal(again.decision_function(table), model.decision_function(table))
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    assert again.predict(table).dtype == model.predict(table).dtype
    assert again.columns == model.columns
    assert again.facts.items() >= model.facts.items()
    assert repr(again) == repr(model)
    assert again.kernel_weights.equals(model.kernel_weights)


def test_support_vectors_that_functions_share_are_kept_once(tmp_path):
    model = made_up_model((1, 2, 3))
    doubled = replace(model, functions=(model.functions[0],) * 3)
    _, arrays = content_of(doubled, tmp_path)
    assert len(arrays["points"]) == len(model.functions[0].points)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.37, 0.5, 0.81, 0.9999])
def test_a_flipped_bit_is_refused_by_name(share, tmp_path):
    made_up_model().save(tmp_path / "a.model")
    content = bytearray((tmp_path / "a.model").read_bytes())
    content[int(share * len(content))] ^= 16
    (tmp_path / "a.model").write_bytes(content)
    fault = "found no model" if share == 0.0 else "found a file that is damaged or cut short"
    with pytest.raises(StoreError, match=f"a.model: {fault}"):
        mkldist.load_model(tmp_path / "a.model")


@pytest.mark.parametrize("other", [FORMAT + 1, FORMAT - 1, "five", None])
def test_another_format_is_refused_by_name(other, tmp_path):
    header, arrays = content_of(made_up_model(), tmp_path)
    changed = header | {"format": other, "mkldist": "9.1.0"}
    with pytest.raises(StoreError, match=rf"a.model: found format {other}, .* mkldist 9\.1\.0"):
        reread(changed, arrays, tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        {"functions": 3},
        {"functions": [{"cosine": False, "kernels": [["gaussian"]]}]},
        {"columns": ["a"]},
        {"labels": {}},
        {"texts": 1},
        {"functions": [{"kernels": [{"function": "gaussian", "width": "wide"}]}]},
    ],
)
def test_a_content_that_no_version_wrote_is_refused_by_name(changed, tmp_path):
    header, arrays = content_of(made_up_model(), tmp_path)
    with pytest.raises(StoreError, match=r"a.model: found a content that is no model's \("):
        reread(header | changed, arrays, tmp_path)


def test_other_versions_of_this_format_are_read(tmp_path):
    header, arrays = content_of(made_up_model(), tmp_path)
    other = reread({**header, "mkldist": "0.1.99"}, arrays, tmp_path)
    assert other.facts["mkldist"] == "0.1.99"


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_support_vectors_are_packed_once_to_the_last_bit(kind):
    one = np.array([[0.0, np.nan], [1.0, 2.0], [0.0, 0.0]])
    parts = [kind(one), kind(one[[2, 0]]), kind(np.array([[5.0, 0.0], [1.0, 2.0]]))]
    words = [["x", "", ""], ["", "x"], ["", ""]]
    texts = [np.array(own, dtype=object)[:, None] for own in words]
    for own_texts, n_points in ((texts, 4), ([one[:, :0] for one in texts], 4)):
        places, arrays = packed_points(parts, own_texts)
        together, of_texts = unpacked_points(arrays)
        assert together.shape == (n_points, 2)
        for place, part, own in zip(places, parts, own_texts, strict=True):
            found = together[place]
            dense = found.toarray() if kind is csr_array else found
            np.testing.assert_array_equal(dense, part.toarray() if kind is csr_array else part)
            assert of_texts[place].tolist() == own.tolist()
    texts[1][0, 0] = "y"  # the same features with another text
    assert unpacked_points(packed_points(parts, texts)[1])[0].shape == (5, 2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "found no model"),
        (b"a,b\n1,2\n", "found no model.*Fit one"),
        (frame({"format": 1}, {}), "found another file of mkldist"),
    ],
)
def test_another_file_is_refused_by_name(content, said, tmp_path):
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(StoreError, match=rf"table\.csv: {said}"):
        mkldist.load_model(tmp_path / "table.csv")


def test_a_missing_file_is_told_with_the_nearest_name(tmp_path):
    made_up_model().save(tmp_path / "wdbc.model")
    with pytest.raises(StoreError, match=r"no such file.*Did you mean 'wdbc\.model'"):
        mkldist.load_model(tmp_path / "wdbc.modell")
    with pytest.raises(StoreError, match="a folder; expected the file of a model"):
        mkldist.load_model(tmp_path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Move that file away"):
        made_up_model().save(tmp_path / "file" / "a.model")


@pytest.mark.slow
def test_a_killed_writer_leaves_the_former_model_and_the_next_one_tidies_up(tmp_path):
    script = """
import os, sys
from pathlib import Path
import mkldist.core.durable as durable
from tests.fit.made_up import made_up_model
durable._flush = lambda path: os.kill(os.getpid(), 9)
made_up_model(None).save(Path(sys.argv[1]))
"""
    path = tmp_path / "a.model"
    made_up_model().save(path)
    before = path.read_bytes()
    killed = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
    )
    assert killed.returncode == -9
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2
    made_up_model(None).save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.model"]
    assert mkldist.load_model(path).labels.classes is None


def test_kernels_of_one_subset_keep_each_its_label():
    features = np.random.default_rng(0).normal(size=(20, 2))
    kernels = [
        {"function": "gaussian", "widths": [0.5], "features": ["all", "both"]},
        {"function": "linear", "features": ["both", "all", "each"]},
    ]
    groups = {"both": [0, 1], "one": [0]}
    bank = mkldist.KernelBank(features, [*kernels, Linear(features="one")], groups=groups)
    own = bank.expansion(mkldist.solve("uniform", bank, np.sign(features[:, 0]), C=1.0)).kernels
    again = kernel_list(described(own))
    assert again.names() == own.names()
    assert {"gaussian(0.5)[all]", "gaussian(0.5)[both]", "linear[x0]", "linear[one]"} <= set(
        own.names()
    )


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
