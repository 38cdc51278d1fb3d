"""Places of runs in the tree, and the variables of its nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.errors import SpecError
from mkldist.results.layout import TreeFacts, tree_layout
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
