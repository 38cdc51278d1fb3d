"""Sweeps with few labels: rows that methods see, and graph Laplacians, built once and checked."""

import itertools
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

import mkldist
from mkldist.bank.byte_store import LAPLACIANS, open_bytes
from mkldist.bank.store import list_banks
from mkldist.errors import DataError
from mkldist.kernels.graph import graph_laplacian
from mkldist.run import bank_refs
from mkldist.run.bank_refs import (
    cached_laplacian,
    checked_laplacians,
    laplacian,
    laplacian_id,
)
from mkldist.spec.datasets import GraphSpec
from tests.run.few_labels import METHODS as METHOD_WORDS
from tests.run.few_labels import do, grams, save_npz, text, zscored
from tests.run.sweeps import kill_after, record_times, run_process

LAPSVM = '[[methods]]\nname = "lapsvm"\n'


@pytest.fixture
def built(monkeypatch):
    """Count the points of every Laplacian that is built."""
    sizes = []

    def counted(points, spec):
        sizes.append(len(points))
        return graph_laplacian(points, spec)

    monkeypatch.setattr(bank_refs, "graph_laplacian", counted)
    return sizes


@pytest.mark.slow
@pytest.mark.parametrize(("fit", "features"), [("train", "raw"), ("all", "preprocessed")])
def test_a_run_is_that_of_solve_by_hand(tmp_path, fit, features):
    graph = f'[graph]\nneighbours = 5\nweights = "heat"\nfeatures = "{features}"'
    done = do(text(fit=fit, graph=graph), tmp_path)
    x, y = done.dataset.x, done.dataset.y
    assert len(done.records) == 2 * 7
    for (name, number, _), record in done.records.items():
        split = done.splits[number]
        semi_supervised = name != "uniform"
        learnt = split.known if semi_supervised else split.train
        points = zscored(x, split.known if fit == "train" else np.arange(len(x)))
        kernels = grams(points)
        traces = kernels[:, learnt, learnt].sum(axis=1)
        labels = np.where(np.isin(learnt, split.train), y[learnt], 0.0)
        shown = (x if features == "raw" else points)[split.known]
        wanted = GraphSpec(neighbours=5, weights="heat")
        given = {"laplacian": graph_laplacian(shown, wanted)} if name.startswith("lap") else {}
        own = kernels[:, learnt[:, None], learnt] / traces[:, None, None]
        said = {k: v for k, v in record.params.items() if k in ("C", "gamma_a", "gamma_i", "tol")}
        solution = mkldist.solve(name, own, labels, **given, **said)
        rows = np.concatenate([split.test, split.unlabelled])
        np.testing.assert_array_equal(record.test_rows, rows)
        np.testing.assert_array_equal(record.train_rows, learnt)
        across = kernels[:, rows[:, None], learnt] / traces[:, None, None]
        values = solution.decision_function(across)
        np.testing.assert_allclose(record.decision_values, values, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(record.objective, solution.objective, rtol=1e-6)


@pytest.mark.slow
def test_distances_of_a_file_are_those_that_a_run_takes(tmp_path):
    graph = '[graph]\nneighbours = 5\nweights = "heat"\n'
    wanted = do(text(graph=f'{graph}features = "raw"'), tmp_path)
    x = wanted.dataset.x
    np.save(tmp_path / "far.npy", cdist(x, x))
    given = f'{graph}distances = "far.npy"'
    found = do(text(graph=given), tmp_path)
    assert found.dataset.fingerprint != wanted.dataset.fingerprint
    for place, record in wanted.records.items():
        assert found.records[place].objective == pytest.approx(record.objective, rel=1e-6)
    y = np.array(wanted.dataset.classes)[wanted.dataset.class_numbers]
    np.savez(tmp_path / "grams.npz", grams=grams(x), y=y)
    changes = {"source": f'grams = "{tmp_path}/grams.npz"', "normalisation": '"none"'}
    kernels = '[[banks.kernels]]\nfunction = "gaussian"\nwidths = [0.3, 1.0, 3.0]\n'
    of_grams = text(graph=given, **changes).replace(kernels, 'family = "precomputed"\n')
    plain = text(graph=given, normalisation='"none"').replace('fit = "train"', 'scale = "none"')
    same = do(plain, tmp_path)
    for place, record in do(of_grams, tmp_path).records.items():
        assert record.objective == pytest.approx(same.records[place].objective, rel=1e-6)


def test_without_test_points_there_are_no_scores_of_them(tmp_path):
    splits = 'kind = "semi-supervised"\nlabelled = 8'
    done = do(text(splits=splits), tmp_path)
    for record in done.records.values():
        assert {name for name in record.scores if not name.startswith("unlabelled")} == {
            "train_error"
        }
        assert len(record.decision_values) == 70 - 8


@pytest.mark.parametrize("normalisation", ['"none"', '["centre", "variance"]'])
def test_unlabelled_points_are_predicted_from_the_bank_as_test_points_from_features(
    tmp_path, normalisation
):
    draw = np.random.default_rng(2)
    x, y = draw.normal(size=(40, 2)), np.where(np.arange(40) % 2, 1.0, -1.0)
    # The unlabelled points once more, as test points.
    x, y = np.concatenate([x, x[10:]]), np.concatenate([y, y[10:]])
    rows = {"idx_labs": np.arange(10), "idx_unls": np.arange(10, 40), "idx_test": np.arange(40, 70)}
    source = save_npz(tmp_path / "twice.npz", x=x, y=y, **rows)
    toml = text(source=source, splits='kind = "predefined"', normalisation=normalisation)
    for (name, _, _), record in do(toml, tmp_path).records.items():
        test, unlabelled = record.decision_values.reshape(2, 30)
        np.testing.assert_allclose(unlabelled, test, rtol=1e-9, atol=1e-9, err_msg=name)
        assert record.scores["unlabelled_error"] == record.scores["test_error"]


@pytest.mark.slow
def test_labels_of_unlabelled_and_test_points_influence_nothing(tmp_path):
    draw = np.random.default_rng(5)
    x, y = draw.normal(size=(50, 3)), np.where(np.arange(50) % 2, 1.0, -1.0)
    rows = {"idx_labs": np.arange(8), "idx_unls": np.arange(8, 40), "idx_test": np.arange(40, 50)}
    records = []
    for folder, labels in (
        (tmp_path / "as they are", y),
        (tmp_path / "turned", np.where(np.arange(50) < 8, y, -y)),
    ):
        folder.mkdir()
        source = save_npz(folder / "data.npz", x=x, y=labels, **rows)
        graph = "[graph]\nneighbours = 5\n[selection]\nfolds = 3"
        toml = text(source=source, splits='kind = "predefined"', graph=graph)
        toml += '[[methods]]\nname = "svm"\n'
        records.append(do(toml, folder).records)
    one, other = records
    assert len(one) == 8
    for place, record in one.items():
        turned = other[place]
        np.testing.assert_array_equal(record.decision_values, turned.decision_values)
        np.testing.assert_array_equal(record.coefficients, turned.coefficients)
        assert turned.objective == record.objective
        assert turned.scores["validation_error"] == record.scores["validation_error"]
        for score in ("test_error", "unlabelled_error"):
            assert turned.scores[score] == pytest.approx(1 - record.scores[score])


@pytest.mark.slow
def test_one_laplacian_a_split_however_many_runs(tmp_path, built):
    second = '[[banks]]\nname = "two"\nnormalisation = "none"\n[[banks.kernels]]\n'
    second += 'function = "gaussian"\nwidths = [0.2, 2.0]\n'
    for fit, n_files in (("train", 2), ("all", 4)):
        done = do(text(second + METHOD_WORDS, fit=fit), tmp_path)
        assert len(done.plan.runs) == 2 * 2 * 7
        assert len(list((tmp_path / "banks" / "laplacians").glob("*.npz"))) == n_files
        assert built == [56] * n_files
    do(text(second + METHOD_WORDS, fit="all"), tmp_path)
    laplacian.cache_clear()
    do(text(METHOD_WORDS.replace("0.01", "0.02"), fit="all"), tmp_path)
    assert built == [56] * 4


@pytest.mark.slow
def test_a_killed_sweep_keeps_its_laplacians_and_repeats_no_run(tmp_path):
    output = tmp_path / "out" / "few"
    output.parent.mkdir()
    slow = '[[methods]]\nname = "slow"\nC = [1.0, 2.0, 3.0, 4.0]\n'
    toml = text(LAPSVM + slow).replace("tol =", 'execution = "isolated"\ntol =')
    before = kill_after(2, toml, output)
    folder = output.parent / "banks" / "laplacians"
    laplacians = {path: path.stat().st_mtime_ns for path in folder.glob("*.npz")}
    assert 2 <= len(before) < 10
    assert laplacians
    code, said = run_process(toml, output)
    assert code == 0, said
    after = record_times(output)
    assert len(after) == 10
    assert {name: after[name] for name in before} == before
    assert {path: path.stat().st_mtime_ns for path in laplacians} == laplacians
    assert len(list(folder.glob("*.npz"))) == 2


def ids(done):
    return {(run.key, run.split, str(run.params)): run.id for run in done.plan.runs}


def test_the_graph_is_part_of_what_a_run_is_for_methods_that_need_one(tmp_path):
    before = ids(do(text(), tmp_path))
    after = ids(do(text(graph="[graph]\nneighbours = 6"), tmp_path))
    changed = {key for (key, *_), i in before.items() if i not in after.values()}
    assert changed == {"lapsvm", "laprls", "lapmkl"}
    toml = '[graph]\nneighbours = 5\nfeatures = "preprocessed"\ndistance = "euclidean"'
    assert ids(do(text(graph=toml), tmp_path)) == before
    raw = ids(do(text(graph=toml.replace("preprocessed", "raw")), tmp_path))
    assert all((raw[place] == before[place]) == (place[0] in ("uniform", "rls")) for place in raw)


def test_a_data_set_has_splits_and_a_graph_of_its_own(tmp_path):
    source = 'source = "two_moons"\nsplits = { kind = "semi-supervised", labelled = 6 }\n'
    source += "graph = { neighbours = 3 }"
    done = do(text(LAPSVM, source=source, graph="", splits="repeats = 7"), tmp_path)
    assert len(done.plan.runs) == 1
    assert done.plan.runs[0].graph.neighbours == 3
    assert len(done.splits[0].train) == 6


SPEC = GraphSpec(neighbours=3, weights="heat")


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[GraphSpec]:
    """Every Laplacian that was computed."""
    calls: list[GraphSpec] = []

    def counting(points: Any, spec: GraphSpec) -> sparse.csr_array:
        calls.append(spec)
        return graph_laplacian(points, spec)

    monkeypatch.setattr(bank_refs, "graph_laplacian", counting)
    return calls


def only_file(folder: Path) -> Path:
    (file,) = (folder / LAPLACIANS).glob("*.npz")
    return file


def same(found: sparse.csr_array, x: Any, spec: GraphSpec = SPEC) -> None:
    expected = graph_laplacian(x, spec)
    assert isinstance(found, sparse.csr_array)
    assert_array_equal(found.toarray(), expected.toarray())
    assert found.nnz == expected.nnz


def test_built_once(x, tmp_path, computed):
    for points in (x, x.copy(), np.asfortranarray(x), x.tolist()):
        same(cached_laplacian(points, SPEC, tmp_path / "new" / "folder"), x)
    assert len(computed) == 1
    assert list((tmp_path / "new" / "folder" / ".partial").iterdir()) == []


def test_their_folder_among_banks_is_none(x, tmp_path):
    cached_laplacian(x, SPEC, tmp_path)
    (tmp_path / "bank").mkdir()
    assert list_banks(tmp_path) == ["bank"]


def test_sparse_points_by_any_representation(tmp_path, computed):
    rng = np.random.default_rng(1)
    x = sparse.csr_array(rng.normal(size=(30, 50)) * (rng.uniform(size=(30, 50)) < 0.2))
    entries = x.tocoo()
    halves = (np.tile(entries.data / 2, 2), (np.tile(entries.row, 2), np.tile(entries.col, 2)))
    twice = sparse.coo_array(halves, shape=x.shape)
    for points in (x, sparse.csc_matrix(x), sparse.coo_array(x), twice):
        same(cached_laplacian(points, SPEC, tmp_path), x)
    assert len(computed) == 1


def test_whatever_matters_has_a_file_of_its_own(x, tmp_path):
    specs = [
        SPEC,
        SPEC.model_copy(update={"distance": "cosine"}),
        SPEC.model_copy(update={"neighbours": 4}),
        SPEC.model_copy(update={"weights": "binary"}),
        SPEC.model_copy(update={"width": 0.5}),
        SPEC.model_copy(update={"laplacian": "normalised"}),
        SPEC.model_copy(update={"power": 2}),
        GraphSpec(kind="epsilon", epsilon=0.5),
        GraphSpec(kind="epsilon", epsilon=0.6),
    ]
    other = x.copy()
    other[0, 0] = np.nextafter(other[0, 0], 1)
    pairs = list(itertools.product((x, other, x[:-1], sparse.csr_array(x)), specs))
    for points, spec in pairs:
        same(cached_laplacian(points, spec, tmp_path), points, spec)
    assert len(list((tmp_path / LAPLACIANS).glob("*.npz"))) == len(pairs)
    assert len({laplacian_id(points, spec) for points, spec in pairs}) == len(pairs)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "footer", "other"])
def test_damaged_files_are_computed_again(x, tmp_path, computed, damage):
    cached_laplacian(x, SPEC, tmp_path)
    file = only_file(tmp_path)
    sound = file.read_bytes()
    if damage == "other":
        other = cached_laplacian(x[:20], SPEC, tmp_path / "other")
        assert other.shape == (20, 20)
        file.write_bytes(only_file(tmp_path / "other").read_bytes())
    else:
        middle = len(sound) // 2
        bad = {
            "flip": sound[:middle] + bytes([sound[middle] ^ 1]) + sound[middle + 1 :],
            "cut": sound[:middle],
            "empty": b"",
            "footer": sound[:-1] + bytes([sound[-1] ^ 128]),
        }
        file.write_bytes(bad[damage])
    before = len(computed)
    same(cached_laplacian(x, SPEC, tmp_path), x)
    same(cached_laplacian(x, SPEC, tmp_path), x)
    assert len(computed) == before + 1
    assert file.read_bytes() == sound


@pytest.mark.parametrize("place", ["memory://laplacians-to-check", "here"])
def test_damaged_files_are_named(x, tmp_path, place):
    folder = place if "://" in place else str(tmp_path / place)
    assert checked_laplacians(folder) == {}
    for points in (x, x[:20]):
        cached_laplacian(points, SPEC, folder)
    names = [f"{laplacian_id(points, SPEC)}.npz" for points in (x, x[:20])]
    assert checked_laplacians(folder) == dict.fromkeys(names, True)
    blobs = open_bytes(folder, LAPLACIANS)
    content = blobs.get(names[0])
    assert content is not None
    blobs.put(names[0], [content[:100], bytes([content[100] ^ 1]), content[101:]])
    assert checked_laplacians(folder) == {names[0]: False, names[1]: True}


def test_a_folder_that_cannot_be_written_costs_the_computation(x, tmp_path, computed):
    (tmp_path / "file").write_text("in the way")
    for _ in range(2):
        same(cached_laplacian(x, SPEC, tmp_path / "file"), x)
    assert len(computed) == 2


def test_a_folder_in_the_place_of_the_file(x, tmp_path):
    (tmp_path / LAPLACIANS / f"{laplacian_id(x, SPEC)}.npz").mkdir(parents=True)
    same(cached_laplacian(x, SPEC, tmp_path), x)


def test_behind_a_url(x, computed):
    for _ in range(2):
        same(cached_laplacian(x, SPEC, "memory://laplacian-cache-test"), x)
    assert len(computed) == 1


def test_what_cannot_be_computed_leaves_nothing(x, tmp_path):
    with pytest.raises(DataError):
        cached_laplacian(x, GraphSpec(neighbours=40), tmp_path)
    with pytest.raises(DataError):
        cached_laplacian([[np.nan]], SPEC, tmp_path / "nan")
    assert not list(tmp_path.rglob("*.npz"))


def _build(folder: str, log: str) -> None:
    x = np.random.default_rng(0).normal(size=(40, 3))

    def logging(points: Any, spec: GraphSpec) -> sparse.csr_array:
        with Path(log).open("a") as file:
            file.write("computed\n")
        return graph_laplacian(points, spec)

    bank_refs.graph_laplacian = logging  # type: ignore[assignment]
    same(cached_laplacian(x, SPEC, folder), x)


@pytest.mark.slow
def test_of_many_processes_one_computes(tmp_path):
    context = multiprocessing.get_context("spawn")
    log = tmp_path / "log"
    processes = [
        context.Process(target=_build, args=(str(tmp_path / "shared"), str(log))) for _ in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert log.read_text() == "computed\n"
