"""Places of runs in the tree, and the variables of its nodes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.bank.bank_kernels import BankKernels, GivenKernel
from mkldist.errors import SpecError
from mkldist.kernels.families import kernel_list
from mkldist.planning.model import RunPlan
from mkldist.results.layout import (
    TreeFacts,
    bank_coordinates,
    kernel_coordinates,
    of_runs,
    of_values,
    tree_layout,
)
from mkldist.spec.banks import BankSpec
from tests.results.sweeps import GRIDS, made_up_facts, made_up_plan

grids = st.dictionaries(
    st.sampled_from(["level", "simplemkl", "uniform"]),
    st.dictionaries(
        st.sampled_from(["C", "lam", "tau"]),
        st.lists(st.floats(0.01, 100), min_size=1, max_size=4, unique=True),
        max_size=3,
    ),
    min_size=1,
)


@pytest.mark.slow
@given(grids, st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_every_run_has_one_place_and_its_own_coordinates(grids, n_splits, n_banks):
    banks = [f"b{i}" for i in range(n_banks)]
    plan = made_up_plan(grids, datasets=["heart", "wdbc"], banks=banks, n_splits=n_splits)
    layout = tree_layout(plan, made_up_facts(plan, grids))
    runs = {run.id: run for run in plan.runs}
    placed = {}
    for node in layout.nodes:
        for place, run_id in np.ndenumerate(node.run_ids):
            placed[run_id] = node.path
            run = runs[run_id]
            assert place[0] == run.split
            for index, (name, values) in zip(place[1:], node.coordinates.items(), strict=True):
                assert values.values[index] == run.params[name]
            parts = (
                [run.dataset, run.key] if n_banks == 1 else [run.dataset, run.bank_label, run.key]
            )
            assert node.path == "/".join(parts)
    assert placed.keys() == runs.keys()


def test_coordinates_are_numbers_where_the_values_are():
    grids = {
        "level": {"a": [1, 2.5], "b": [1, 2], "c": [True, False], "d": ["x", "y"], "e": [1, "x"]}
    }
    plan = made_up_plan(grids)
    coordinates = tree_layout(plan, made_up_facts(plan, grids)).nodes[0].coordinates
    kinds = {name: c.values.dtype.kind for name, c in coordinates.items()}
    assert kinds == {"a": "f", "b": "i", "c": "b", "d": "O", "e": "O"}
    assert coordinates["e"].values.tolist() == ["1", "x"]


def test_shared_settings_are_told_apart_from_hyperparameters():
    plan = made_up_plan()
    node = tree_layout(plan, made_up_facts(plan)).nodes[0]
    assert node.attributes == {
        "method": "level", "bank": "xu2008", "task": "classification", "settings": '{"tol": 0.01}',
        "dataset_series": "heart", "bank_series": "xu2008", "metric": "error",
    }  # fmt: skip


def test_id_follows_what_is_laid_out():
    plan = made_up_plan()
    layout = tree_layout(plan, made_up_facts(plan))
    again = tree_layout(made_up_plan(), made_up_facts(plan))
    assert layout.id == again.id
    for other in (
        made_up_plan(n_splits=5),
        made_up_plan(predictions=True),
        made_up_plan(weights=False),
    ):
        assert tree_layout(other, made_up_facts(other)).id != layout.id


@pytest.mark.parametrize("name", ["gap", "split", "kernel", "state", "width", "n_train"])
def test_a_hyperparameter_cannot_take_the_name_of_a_variable(name):
    grids = {"level": {name: [1.0]}}
    plan = made_up_plan(grids)
    with pytest.raises(ValueError, match=name):
        tree_layout(plan, made_up_facts(plan, grids))


@pytest.mark.parametrize("name", ["kernel", "width", "repeat"])
def test_a_method_cannot_take_the_name_of_a_coordinate(name):
    grids = {name: {"C": [1.0]}}
    plan = made_up_plan(grids)
    with pytest.raises(SpecError, match=name):
        tree_layout(plan, made_up_facts(plan, grids))


def test_parameters_of_kernels_keep_clear_of_other_names():
    grids = {"level": {"C": [1.0], "nu": [2.0]}, "period": {}}
    plan = made_up_plan(grids)
    facts = made_up_facts(plan, grids)
    own = {"nu": np.arange(7.0), "period": np.arange(7.0), "length": np.arange(7.0)}
    facts = replace(facts, kernels={place: {**k, **own} for place, k in facts.kernels.items()})
    shared = tree_layout(plan, facts).shared["heart"]
    assert {"kernel_nu", "kernel_period", "length"} <= shared.keys()
    assert not {"nu", "period"} & shared.keys()
    assert shared["length"].variable.dims == ("kernel",)


def test_nodes_know_their_classes_and_sizes():
    plan = made_up_plan(datasets=["heart", "iris"])
    facts = replace(
        made_up_facts(plan),
        classes={"heart": ("healthy", "ill"), "iris": ("a", "b", "c")},
        n_features={"heart": 13, "iris": 4},
    )
    nodes = {node.path: node for node in tree_layout(plan, facts).nodes}
    two, three = nodes["heart/level"], nodes["iris/level"]
    assert two.attributes["positive_class"] == "ill"
    assert "positive_class" not in three.attributes
    alone = {name: c.values.item() for name, c in two.sizes.items() if not c.values.ndim}
    assert alone == {"n_kernels": 7, "n_features": 13}
    names = [{v.name for v in node.variables} for node in (two, three)]
    assert {"sensitivity", "confusion"} <= names[0]
    assert "sensitivity" not in names[1]
    assert {"confusion", "class_bias"} <= names[1]
    assert "class_bias" not in names[0]


def test_kernels_without_names_have_no_coordinate():
    plan = made_up_plan()
    layout = tree_layout(plan, TreeFacts({"heart": GRIDS}))
    assert all(set(arrays) == {"split"} for arrays in layout.shared.values())
    assert layout.nodes[0].vectors == {"kernel": 7}


def test_a_bank_for_each_split_or_one_for_all():
    [one] = made_up_plan().banks
    found = bank_coordinates([one], 3)
    assert found["bank_bytes"].values.tolist() == [8 * 7 * 100] * 3
    assert np.isnan(found["build_seconds"].values).all()
    each = [replace(one, split=s, n_bytes=10 * s) for s in (0, 2, 5)]
    np.testing.assert_array_equal(bank_coordinates(each, 3)["bank_bytes"].values, [0, np.nan, 20])


def test_no_time_builds_a_bank_that_is_not_stored():
    [one] = made_up_plan().banks
    found = bank_coordinates([replace(one, backend="recompute")], 2)
    for name in ("build_seconds", "build_cpu_seconds"):
        assert found[name].values.tolist() == [0, 0]
        assert found[name].variable.units == "s"


def run(split: int, trial: int, params: dict[str, Any]) -> RunPlan:
    return RunPlan("id", "d", "b", "bank", split, "level", "level", params, at={"trial": trial})


@pytest.mark.parametrize(
    ("series", "dtype", "values"),
    [
        ([1, 2], "int64", [1, 2]),
        ([1, 2.5], "float64", [1.0, 2.5]),
        ([True, False], "bool", [True, False]),
        (["a", 2], "string", ["a", "2"]),
    ],
)
def test_values_are_numbers_if_all_are(series, dtype, values):
    found = of_values("C", series, "level")
    assert (found.variable.dtype, found.variable.dims) == (dtype, ("C",))
    assert found.values.tolist() == values
    assert found.variable.description.startswith("C: ")


def test_dims_of_a_search_say_what_they_are():
    found = of_values("trial", [0, 1, 2], "level")
    assert found.variable.description == "number of the trial of a search"
    assert found.variable.dtype == "int64"


def test_numbers_of_trials_are_nan_where_there_is_no_trial():
    runs = [run(0, 0, {"C": 3}), run(0, 1, {"C": 2.5}), run(1, 1, {"C": 9.0})]
    found = of_runs("C", runs, 2, {"trial": [0, 1], "tol": [0.1]})
    np.testing.assert_array_equal(found.values, [[3.0, 2.5], [np.nan, 9.0]])
    assert (found.variable.dtype, found.variable.dims) == ("float64", ("split", "trial"))


def test_other_values_of_trials_are_texts():
    runs = [run(0, 0, {"loss": "hinge"}), run(0, 1, {"loss": True})]
    found = of_runs("loss", runs, 1, {"trial": [0, 1, 2]})
    assert found.values.tolist() == [["hinge", "True", ""]]
    assert found.variable.dtype == "string"


def test_a_parameter_that_another_method_gives_lies_along_all_dims():
    runs = [
        RunPlan("id", "d", "b", "bank", split, "level", "level", {"C": C, "near": near}, at=at)
        for split, C, near, at in (
            (0, 7.0, 0.9, {"source_C": 0.5}), (1, 8.0, 0.8, {"source_C": 2.0})
        )
    ]  # fmt: skip
    found = of_runs("C", runs, 2, {"source_C": [0.5, 2.0], "near": [0.8, 0.9]})
    assert found.variable.dims == ("split", "source_C", "near")
    nothing = [np.nan, np.nan]
    np.testing.assert_array_equal(
        found.values, [[[np.nan, 7.0], nothing], [nothing, [8.0, np.nan]]]
    )
    of_source = of_values("source_C", [0.5, 2.0], "level").variable
    assert of_source.description == "C of the method that gives C"


NAMES = ["age", "height", "weight", "pulse"]
BANK = BankSpec.model_validate(
    {
        "name": "mine",
        "normalisation": ["centre", "trace"],
        "kernels": [
            {"function": "gaussian", "widths": [0.5, 2.0], "features": ["all", "each", "body"]},
            {"function": "polynomial", "degrees": [2], "offset": 0.5, "features": "age"},
            {"function": "linear", "features": {"count": 1, "size": 3}},
        ],
    }
)


def test_every_kernel_has_its_function_parameters_and_features():
    kernels = kernel_list(BANK, 4, NAMES, {"body": (1, 2)}, 0)
    names = kernels.names(NAMES)
    found = kernel_coordinates(BANK, names, BankKernels(kernels), NAMES)
    rows = {
        name: tuple(found[key][m] for key in ("function", "width", "degree", "offset", "features"))
        for m, name in enumerate(names)
    }
    np.testing.assert_equal(
        rows["gaussian(2)[height]"], ("gaussian", 2.0, np.nan, np.nan, "height")
    )
    np.testing.assert_equal(rows["gaussian(0.5)[all]"][1:], (0.5, np.nan, np.nan, "all"))
    np.testing.assert_equal(
        rows["polynomial(2, offset=0.5)[age]"], ("polynomial", np.nan, 2.0, 0.5, "age")
    )
    [linear] = [name for name in names if name.startswith("linear")]
    np.testing.assert_equal(rows[linear][:4], ("linear", np.nan, np.nan, np.nan))
    groups = dict(zip(names, found["feature_group"].tolist(), strict=True))
    assert groups["gaussian(0.5)[all]"] == "all"
    assert groups["gaussian(0.5)[weight]"] == "single"
    assert groups["gaussian(0.5)[body]"] == "body"
    assert groups["polynomial(2, offset=0.5)[age]"] == "single"
    assert groups[linear] == "several"


def test_the_view_of_a_kernel_has_all_of_its_features():
    kernels = BankKernels(kernel_list(BANK, 4, NAMES, {"body": (1, 2)}, 0))
    views = {"clinic": (0, 3), "body": (1, 2)}
    found = kernel_coordinates(BANK, kernels.names(NAMES), kernels, NAMES, views)
    shown = dict(zip(found["features"].tolist(), found["view"].tolist(), strict=True))
    [random] = [name for name in shown if "+" in name]
    assert shown == {
        "all": "", "body": "body", "age": "clinic", "pulse": "clinic", "height": "body",
        "weight": "body", random: "",
    }  # fmt: skip
    assert "view" not in kernel_coordinates(BANK, kernels.names(NAMES), kernels, NAMES)


def test_what_a_bank_shares_stands_at_every_kernel():
    kernels = kernel_list(BANK, 4, NAMES, {"body": (1, 2)}, 0)
    found = kernel_coordinates(BANK, kernels.names(NAMES), BankKernels(kernels), NAMES)
    shared = {name: set(found[name].tolist()) for name in ("family", "normalisation", "bank")}
    assert shared == {"family": {"custom"}, "normalisation": {"centre+trace"}, "bank": {"mine"}}
    assert {len(values) for values in found.values()} == {len(kernels)}


def test_precomputed_matrices_have_names_and_no_parameters():
    bank = BankSpec(family="precomputed")
    found = kernel_coordinates(bank, ["gram[0]", "gram[1]"], None)
    assert found["function"].tolist() == ["precomputed"] * 2
    assert found["kernel"].tolist() == ["gram[0]", "gram[1]"]
    assert not {"width", "degree", "features"} & found.keys()


def test_gram_matrices_of_views_follow_the_functions():
    kernels = kernel_list(BANK, 4, NAMES, {"body": (1, 2)}, 0)
    bank = BankKernels(kernels, (GivenKernel("strings", 0, ""), GivenKernel("images", 1, "1")))
    found = kernel_coordinates(BANK, bank.names(NAMES), bank, NAMES)
    assert all(len(values) == len(kernels) + 2 for values in found.values())
    assert found["function"][-2:].tolist() == ["precomputed", "precomputed"]
    assert found["features"][-2:].tolist() == ["strings", "images"]
    assert found["kernel"][-1] == "precomputed(1)[images]"
    assert np.isnan(found["width"][-2:]).all()
    alone = kernel_coordinates(BANK, ["precomputed[strings]"], BankKernels(None, bank.given[:1]))
    assert alone["features"].tolist() == ["strings"]
