"""Data, splits, kernels and grids of a sweep, loaded and checked."""

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, random_array

from mkldist.bank.bank_kernels import BankKernels
from mkldist.core.checksums import array_id
from mkldist.data.dataset import Dataset, GramView, View
from mkldist.errors import InputError, SpecError
from mkldist.kernels.graph import graph_kernels, graph_spec
from mkldist.methods.registry import METHODS
from mkldist.planning.checks import (
    RUN_BYTES,
    check_folds,
    check_graph,
    check_graph_views,
    check_number_of_runs,
    check_presence,
    check_unlabelled,
    check_unscaled,
    resolve_methods,
)
from mkldist.planning.planner import BUFFER_BYTES, WORKER_BASE_BYTES
from mkldist.planning.resolved import Resolved, resolve, with_graph_views
from mkldist.solvers.base import most_points
from mkldist.spec import kinds
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from mkldist.spec.model import SweepSpec
from tests.data.mistakes import mistake
from tests.planning import plans
from tests.planning.plans import labelled, split, sweep

SWEEP = """
name = "s"
tol = 0.001
datasets = [{ name = "two_moons", options = { n = 40 } }, { name = "friedman1", options = { n = 30 } }]
[preprocessing]
target = "zscore"
[splits]
repeats = 3
train_fraction = 0.5
[[banks]]
name = "mine"
[[banks.kernels]]
function = "gaussian"
widths = [0.1, 1.0]
[[methods]]
name = "spicymkl"
loss = "squared"
C = { start = 0.01, stop = 1.0, num = 3, scale = "log" }
[[methods]]
name = "primalmkl"
label = "primal"
loss = "squared"
"""  # noqa: E501


def resolved(words: str, base: Path = Path()) -> Resolved:
    return resolve(SweepSpec.model_validate(tomllib.loads(words)), (), base)


def test_facts_are_those_of_the_loaded_data():
    found = resolved(SWEEP)
    for name, n in (("two_moons", 40), ("friedman1", 30)):
        dataset, splits = found.datasets[name]
        facts = found.facts[name]
        assert facts.n_points == n == len(dataset.x)
        assert facts.fingerprint == dataset.fingerprint
        assert facts.known_sizes == tuple(len(split.train) for split in splits) == (n // 2,) * 3
        assert facts.known_fingerprints == tuple(array_id(split.train) for split in splits)
        assert len(set(facts.split_fingerprints)) == 3
        assert (facts.n_problems, facts.inner_folds, facts.precomputed) == (1, (), False)
        assert found.banks[name, "mine"].n_kernels == len(found.kernels[name, "mine"]) == 2
        assert len(found.kernel_names(name, "mine")) == 2
    assert [facts.target for facts in found.facts.values()] == ["none", "zscore"]


def test_dims_and_settings_are_those_of_the_methods():
    found = resolved(SWEEP)
    for name in ("two_moons", "friedman1"):
        grids = found.grids[name]
        dims = {key: grid.dims for key, grid in grids.items()}
        assert list(dims) == ["spicymkl", "primal"]
        assert dims["spicymkl"]["C"] == pytest.approx([0.01, 0.1, 1.0])
        assert dims["primal"] == {"C": [grids["primal"].points[0].C]}
        assert [point["tol"] for point in grids["spicymkl"].settings] == [0.001] * 3


def test_a_selection_has_inner_folds_for_every_split():
    facts = resolved(SWEEP + "[selection]\nfolds = 4\n").facts
    assert {facts.inner_folds for facts in facts.values()} == {(4, 4, 4)}


def test_precomputed_matrices_have_their_own_bank(tmp_path):
    factor = np.random.default_rng(0).normal(size=(3, 20, 4))
    np.savez(tmp_path / "k.npz", grams=factor @ factor.swapaxes(1, 2), y=np.arange(20) % 2)
    words = (
        'name = "s"\ndatasets = [{ name = "k", grams = "k.npz" }]\n'
        'banks = [{ family = "precomputed" }]\nmethods = [{ name = "level" }]\n'
    )
    found = resolved(words, tmp_path)
    assert found.facts["k"].precomputed
    assert found.banks["k", "precomputed"].n_kernels == 3
    assert found.kernel_names("k", "precomputed") == ["gram[0]", "gram[1]", "gram[2]"]
    assert not found.kernels
    with pytest.raises(
        SpecError, match=r"banks\.xu2008: found kernels of features for 'k', which holds"
    ):
        resolved(words.replace("precomputed", "xu2008"), tmp_path)


def test_mistakes_are_found_before_data_are_read():
    spec = SweepSpec.model_validate(tomllib.loads(SWEEP.replace('"primalmkl"', '"primal"')))
    with pytest.raises(
        SpecError, match=r"methods\.primal\.name: found the unknown method 'primal'"
    ):
        resolve_methods(spec)
    with pytest.raises(InputError, match="two_suns"):
        resolved(SWEEP.replace("two_moons", "two_suns"))


COUNTS = """
name = "s"
datasets = [{ name = "counts", file = "counts.csv" }]
[preprocessing]
scale = "none"
[[banks]]
name = "mine"
[[banks.kernels]]
function = "intersection"
features = ["all", "b"]
[[methods]]
name = "uniform"
"""


def test_functions_of_numbers_of_at_least_0_take_counts_as_they_are(tmp_path):
    file = tmp_path / "counts.csv"
    file.write_text("a,b,class\n1,0,x\n0,2,y\n3,1,x\n2,5,y\n0,0,x\n4,2,y\n")
    kernels = resolved(COUNTS, tmp_path).kernels["counts", "mine"]
    assert kernels.names(["a", "b"]) == ["intersection[all]", "intersection[b]"]
    for scale in ("zscore", "minmax"):
        words = f'banks.mine: found an intersection kernel of features that scale = "{scale}" makes'
        with pytest.raises(SpecError, match=words):
            resolved(COUNTS.replace('"none"', f'"{scale}"'), tmp_path)
    file.write_text(file.read_text().replace("2,5,y", "2,-5,y"))
    with pytest.raises(InputError, match=r"counts: found -5 in line 5, column 'b', for an int"):
        resolved(COUNTS, tmp_path)


def test_functions_of_the_user_are_tried_on_points_as_kernels_see_them(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "counting_kernels.py").write_text(
        "seen = []\ndef k(x, z):\n    seen.append(x)\n    return x @ z.T\n"
    )
    sweep = COUNTS.replace('"intersection"', '"counting_kernels:k"').replace('"none"', '"minmax"')
    rows = "".join(f"{i},{-i},{'xy'[i % 2]}\n" for i in range(8))
    (tmp_path / "counts.csv").write_text(f"a,b,class\n{rows}")
    resolved(sweep, tmp_path)
    seen = sys.modules["counting_kernels"].seen
    assert [points.shape for points in seen] == [(4, 2), (4, 1)]
    assert seen[0].min(axis=0).tolist() == [-1.0, -1.0]
    assert seen[0].max(axis=0).tolist() == [1.0, 1.0]


FAR = np.abs(np.subtract.outer(np.arange(7.0) ** 2, np.arange(7.0) ** 2))
LAPSVM = '[[methods]]\nname = "lapsvm"\n'
SPLITS = [split(6), split(3, 2, 2)]


def check(graph, given=None, methods=LAPSVM):
    spec = sweep(f"{methods}[graph]\n{graph}\n")
    grids = resolve_methods(spec)[spec.datasets[0].name].values()
    check_graph(spec, spec.datasets[0], given or labelled([-1, 1] * 3 + [1]), SPLITS, grids)


def test_graphs_that_the_points_form_are_taken():
    for graph in ("neighbours = 4", 'kind = "epsilon"\nepsilon = 10.0'):
        check(graph)
    gaps = labelled([-1, 1] * 3 + [1], x=np.where(np.eye(7, 2), np.nan, 1.0), impute="mean")
    for features in ("raw", "preprocessed"):
        check(f'kind = "epsilon"\nepsilon = 10.0\nfeatures = "{features}"', gaps)
    for words in ({}, {"x": None, "grams": np.zeros((1, 7, 7))}):  # distances need no features
        given = labelled([-1, 1] * 3 + [1], distances={"d.npy": FAR}, **words)
        check('distances = "d.npy"\nneighbours = 4', given)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("neighbours = 5", "graph.neighbours: found 5 neighbours among 5 points of 'a'; "
         "expected at most 4"),
        ('kind = "epsilon"\nepsilon = 1e-9', "graph.epsilon: found no two of 6 points of 'a' "
         "within "
         "1e-09"),
    ],
)  # fmt: skip
def test_graphs_that_the_points_cannot_form_are_refused(graph, said):
    with pytest.raises(SpecError) as caught:
        check(graph)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("distances", "found"),
    [
        (np.zeros((39, 39)), "float64 of shape (39, 39); expected numbers of shape (40, 40)"),
        (np.zeros((40, 40), dtype=complex), "complex128 of shape"),
        (np.triu(np.ones((40, 40))), "entry (0, 0) of 1"),
        (-np.ones((40, 40)), "entry (0, 0) of -1"),
    ],
)
def test_distances_that_are_none_are_refused(distances, found, tmp_path):
    np.save(tmp_path / "far.npy", distances)
    views = '{ n = 40 }, views = [{ name = "near", graphs = [{ distances = "far.npy" }] }]'
    with pytest.raises(InputError) as caught:
        resolved(SWEEP.replace("{ n = 40 }", views), tmp_path)
    where = f"datasets.two_moons.views.near.graphs.distances ({tmp_path}/far.npy)"
    assert str(caught.value).startswith(f"{where}: found {found}")


def test_gram_matrices_have_no_graph():
    grams = labelled([-1, 1] * 3 + [1], x=None, grams=np.zeros((1, 7, 7)))
    with pytest.raises(SpecError, match="graph: found a graph over 'a', which has Gram matrices"):
        check("neighbours = 4", grams)


Y = [-1, 1] * 3 + [1]
X = np.random.default_rng(0).normal(size=(7, 4)) * [1.0, 10.0, 1.0, 1.0]
ZSCORE = PreprocessingSpec(scale="zscore")


def entry(*graphs):
    return DatasetSpec.model_validate(
        {"name": "a", "views": [{"name": "near", "graphs": list(graphs)}]}
    )


def test_matrices_are_those_of_the_graphs_in_their_order():
    asked = entry(
        {"neighbours": [1, 3]},
        {"neighbours": 2, "features": "raw"},
        {"distances": "d.npy", "neighbours": 2},
    )
    found = with_graph_views(asked, ZSCORE, labelled(Y, x=X, distances={"d.npy": FAR}))
    points = (X - X.mean(axis=0)) / X.std(axis=0)
    two = graph_spec({"neighbours": 2})
    given = graph_spec({"distance": "precomputed", "neighbours": 2})
    expected = [
        *graph_kernels(points, [graph_spec({"neighbours": k}) for k in (1, 3)]),
        *graph_kernels(X, [two]),
        *graph_kernels(FAR, [given]),
    ]
    assert_array_equal(found.given["near"].grams, expected)
    assert found.given["near"].present.all()
    assert found.summary.views == ("near, 4 Gram matrices of graphs",)


def test_the_data_set_is_told_by_its_points_and_graphs_not_by_the_last_bits(monkeypatch):
    def found(*graphs):
        return with_graph_views(entry(*graphs), ZSCORE, labelled(Y, x=X)).fingerprint

    one, two = found({"neighbours": 2}), found({"neighbours": 3})
    assert len({one, two, labelled(Y, x=X).fingerprint}) == 3
    monkeypatch.setattr(
        "mkldist.planning.resolved.graph_kernels",
        lambda x, specs: graph_kernels(x, specs) * (1.0 + 1e-15),
    )
    assert found({"neighbours": 2}) == one


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ({"neighbours": [2, 7]}, "found 7 neighbours among 7 points of 'a'; expected at most"),
        ({"kind": "epsilon", "epsilon": 1e-9}, "found no edge in graph 0"),
    ],
)
def test_views_of_graphs_that_the_points_cannot_form_are_refused(graph, said):
    with pytest.raises(SpecError) as caught:
        with_graph_views(entry(graph), ZSCORE, labelled(Y, x=X))
    assert str(caught.value).startswith("datasets.a.views.near.graphs")
    assert said in str(caught.value)


def test_distances_tell_data_sets_apart_and_not_their_files():
    def found(first, second, **distances):
        asked = entry(*({"distances": file, "neighbours": 2} for file in (first, second)))
        given = labelled(Y, x=X, distances=distances)
        return with_graph_views(asked, ZSCORE, given).fingerprint

    one = found("a", "b", a=FAR, b=2.0 * FAR)
    assert found("c", "d", c=FAR, d=2.0 * FAR) == one
    others = [found("a", "a", a=FAR, b=2.0 * FAR), found("a", "b", a=FAR, b=3.0 * FAR)]
    assert len({one, *others}) == 3


def test_points_need_features():
    grams = labelled(Y, x=None, grams=np.zeros((1, 7, 7)))
    with pytest.raises(SpecError, match="'a', which has Gram matrices"):
        with_graph_views(entry({"neighbours": 2}), ZSCORE, grams)


def test_splits_may_not_hide_points():
    asked, points = entry({"neighbours": 2}), labelled(Y, x=X)
    check_graph_views(asked, points, [split(3, 4, 0)])
    check_graph_views(DatasetSpec(name="a"), points, [split(3, 2, 2)])
    with pytest.raises(SpecError, match="of which a split tests 2; expected splits without a test"):
        check_graph_views(asked, points, [split(3, 2, 2)])


SIGNS_AND_ZERO = labelled([0, 1, 2, 0, 1, 2], classes=("-1", "0", "1"))


def test_zero_may_stand_for_no_label_only_where_the_entry_says_nothing():
    entry = sweep('[[methods]]\nname = "level"').datasets[0]
    with pytest.raises(
        SpecError, match=r"datasets\.a: found labels -1, 0 and 1, and unlabelled points"
    ):
        check_unlabelled(entry, SIGNS_AND_ZERO, [split(4, 0, 2), split(3, 2)])
    check_unlabelled(entry, SIGNS_AND_ZERO, [split(4, 0, 2)])
    named = entry.model_copy(update={"classes": ("-1", "0", "1")})
    check_unlabelled(named, SIGNS_AND_ZERO, [split(3, 2)])
    check_unlabelled(entry, labelled([-1, 1, -1, 1]), [split(2, 1)])


LEARNS = """
name = "s"
tol = 0.001
datasets = [{ name = "a", source = "SOURCE" }]
METHOD
[[banks]]
name = "mine"
[[banks.kernels]]
function = "gaussian"
widths = [1.0]
"""
FEW = '[splits]\nkind = "semi-supervised"\nlabelled_per_class = 3\n'


@pytest.mark.parametrize(
    ("source", "method", "said"),
    [
        ("friedman1", '[[methods]]\nname = "level"\n', "level with loss hinge, which learns two"),
        ("iris", '[[methods]]\nname = "spicymkl"\nloss = "hinge"\n[[methods]]\nname = "level"\n'
         'C = { from = "spicymkl" }\n', "expected a data set of two classes"),
        ("signs.npz", FEW + '[[methods]]\nname = "uniform"\n', "labels -1, 0 and 1"),
        ("two_moons", FEW + '[graph]\nkind = "epsilon"\nepsilon = 1e-9\n'
         '[[methods]]\nname = "lapsvm"\n', "no two of .* points of 'a' within 1e-09"),
    ],
    ids=["labels", "two classes", "unlabelled", "graph"],
)  # fmt: skip
def test_methods_are_tried_on_the_loaded_data_and_their_splits(tmp_path, source, method, said):
    np.savez(tmp_path / "signs.npz", x=np.arange(60.0).reshape(30, 2), y=np.arange(30) % 3 - 1)
    words = LEARNS.replace("SOURCE", source).replace("METHOD", method)
    words = words.replace('source = "signs.npz"', 'file = "signs.npz"')
    with pytest.raises(SpecError, match=said):
        resolved(words, tmp_path)


def test_folds_that_the_user_gave_fit_the_smallest_class_of_every_split():
    given = labelled([-1, 1, -1, 1, -1, 1])
    splits = [split(5), split(4, 0, 2)]  # the second has two labelled points of each class
    three = resolve_methods(sweep('[[methods]]\nname = "svm"\nfolds = 3\n'))["a"]
    check_folds(three, labelled([0.5] * 6, classes=None), splits)
    with pytest.raises(SpecError) as caught:
        check_folds(three, given, splits)
    assert str(caught.value) == (
        "methods.svm.folds: found 3; expected at most 2, the labelled points of the smallest class "
        "in a training part of 'a'. Lower it, or omit it."
    )
    for words in ("folds = 2\n", ""):
        grids = resolve_methods(sweep('[[methods]]\nname = "svm"\n' + words))["a"]
        check_folds(grids, given, splits)


GAPS = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 1.0]])
DATASET = Dataset(
    "d",
    GAPS,
    np.array([-1.0, 1.0, 1.0]),
    ("a", "b"),
    ("left", "right"),
    groups={"own": (0,), "genes": (1,)},
    views={"own": View((0,)), "genes": View((1,), "zero")},
    given={
        "whole": GramView(np.eye(3)[None], np.ones(3, dtype=bool)),
        "half": GramView(np.diag([1.0, 1.0, 0.0])[None], np.array([True, True, False]), "zero"),
    },
)


def check_centred(view: str, normalisation: list[str]) -> None:
    function = "precomputed" if view in DATASET.given else "linear"
    entry = {"function": function, "features": view}
    bank = BankSpec.model_validate(
        {"name": "mine", "kernels": [entry], "normalisation": normalisation}
    )
    check_presence(bank, DATASET, BankKernels.of(bank, DATASET, 0))


@pytest.mark.parametrize("view", ["genes", "half", "all"])
def test_kernels_that_points_lack_are_not_centred(view):
    check_centred(view, ["trace"])
    with pytest.raises(
        SpecError, match=r"banks\.mine\.normalisation: found 'centre' for kernels that"
    ):
        check_centred(view, ["centre", "trace"])


@pytest.mark.parametrize("view", ["own", "whole"])
def test_kernels_that_all_points_have_are_centred(view):
    check_centred(view, ["centre", "trace"])


POINTS = csr_array(random_array((60, 40), density=0.1, rng=np.random.default_rng(0)))
SPARSE = Dataset("d", None, np.ones(60), ("a", "b"), tuple(map(str, range(40))), sparse=POINTS)


def test_scaling_is_refused_with_its_size_and_place():
    entry = DatasetSpec(name="d")
    check_unscaled(PreprocessingSpec(scale="none"), entry, SPARSE)
    check_unscaled(PreprocessingSpec(scale="tfidf"), entry, SPARSE)
    own = DatasetSpec(name="d", preprocessing=PreprocessingSpec(scale="minmax"))
    with pytest.raises(
        SpecError, match=r"^preprocessing.scale: found \"zscore\" for the sparse .* 18\.75 kiB as "
    ):
        check_unscaled(PreprocessingSpec(), entry, SPARSE)
    with pytest.raises(SpecError, match=r"^datasets\.d\.preprocessing\.scale: found \"minmax\""):
        check_unscaled(own.preprocessing or PreprocessingSpec(), own, SPARSE)


def test_city_block_distances_are_refused_with_the_size_of_dense_features():
    spec = BankSpec.model_validate(
        {"name": "mine", "kernels": [{"function": "laplacian-rbf", "widths": 1.0}]}
    )
    message = (
        "banks.mine: found a laplacian-rbf kernel of sparse features, dense 18.75 kiB; expected g"
    )
    with pytest.raises(SpecError, match=message):
        BankKernels.of(spec, SPARSE, 0)


WORDS = """
[[methods]]
name = "level"
C = [1, 10, 100]
[[methods]]
name = "uniform"
C = { low = 1, high = 10 }
[search]
kind = "random"
trials = 3
"""


def test_the_runs_of_all_data_sets_count_and_those_of_a_search_do_not(monkeypatch):
    spec = sweep(WORDS)
    facts = {name: plans.dataset(name, n_splits=7) for name in ("a", "b")}
    monkeypatch.setattr(kinds, "physical_memory", lambda: 2 * 42 * RUN_BYTES)
    check_number_of_runs(spec, facts, resolve_methods(spec))
    monkeypatch.setattr(kinds, "physical_memory", lambda: 2 * 42 * RUN_BYTES - 1)
    with pytest.raises(SpecError, match=r"methods: found 42 runs, which need .* splits\.repeats"):
        check_number_of_runs(spec, facts, resolve_methods(spec))


TEXT = """
name = "device"
[[datasets]]
name = "two_moons"
options = {{ n = 60 }}
[[banks]]
name = "b"
backend = "{backend}"
device = "{device}"
[[banks.kernels]]
function = "{function}"
widths = [0.5, 2.0]
[[methods]]
name = "level"
"""


def resolved_on(tmp_path, device, backend="recompute", function="gaussian"):
    text = TEXT.format(backend=backend, device=device, function=function)
    return resolve(SweepSpec.model_validate(tomllib.loads(text)), (), tmp_path)


@pytest.mark.parametrize("backend", ["recompute", "factors"])
def test_a_device_that_is_there(tmp_path, backend):
    pytest.importorskip("array_api_strict")
    assert resolved_on(tmp_path, "array_api_strict", backend).banks["two_moons", "b"].n_kernels == 2


def test_one_that_is_not(tmp_path):
    with mistake("banks.b.device", '"cuba"', "not there", error=SpecError):
        resolved_on(tmp_path, "cuba")


def test_kernels_that_devices_do_not_compute(tmp_path):
    pytest.importorskip("array_api_strict")
    with mistake("banks.b.device", "laplacian-rbf", error=SpecError):
        resolved_on(tmp_path, "array_api_strict", function="matern")


FACTORED = """
name = "factors"
memory = "2GiB"
[[datasets]]
name = "two_moons"
options = {{ n = 60 }}
{splits}
[[banks]]
name = "thin"
backend = "factors"
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
[[banks]]
name = "whole"
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
{methods}
"""
SEMI = '[splits]\nkind = "semi-supervised"\nlabelled_per_class = 6\nrepeats = 1'


def factored(tmp_path, methods, splits=""):
    text = FACTORED.format(methods=methods, splits=splits)
    return resolve(SweepSpec.model_validate(tomllib.loads(text)), (), tmp_path)


def test_methods_that_need_matrices_are_refused_with_the_points_that_fit(tmp_path):
    with pytest.raises(SpecError) as raised:
        factored(tmp_path, '[[methods]]\nname = "level"\n[[methods]]\nname = "skm"')
    method = METHODS["skm"]
    most = most_points(method, method.params(), 2, 2 * 2**30 - WORKER_BASE_BYTES - BUFFER_BYTES)
    said = str(raised.value)
    assert said.startswith("methods.skm: found skm on bank 'thin' of factors")
    assert f"1.5 GiB of a solver hold up to {most:,} points" in said
    assert "level" in said
    assert "uniform" in said


def test_methods_that_need_factors_below_their_kernels_are_refused_on_rounded_ones(
    tmp_path, monkeypatch
):
    rounded = FACTORED.replace('backend = "factors"', 'backend = "factors"\ndtype = "float32"')
    monkeypatch.setitem(globals(), "FACTORED", rounded)
    assert factored(tmp_path, '[[methods]]\nname = "level"').grids
    with pytest.raises(SpecError) as raised:
        factored(tmp_path, '[[methods]]\nname = "level"\n[[methods]]\nname = "spicymkl"')
    said = str(raised.value)
    assert said.startswith("methods.spicymkl: found spicymkl on bank 'thin' of factors")
    assert "a method on rounded factors: " in said
    assert 'dtype = "float64"' in said
    assert "lp_mkl" not in said


def test_such_methods_run_on_the_other_banks(tmp_path):
    both = '[[methods]]\nname = "level"\n[[methods]]\nname = "skm"\nbanks = ["whole"]'
    assert factored(tmp_path, both).grids["two_moons"].keys() == {"level", "skm"}


def test_unlabelled_rows_are_refused(tmp_path):
    with pytest.raises(SpecError, match="'two_moons', which has unlabelled rows"):
        factored(tmp_path, '[[methods]]\nname = "level"', SEMI)
