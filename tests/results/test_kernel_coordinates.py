"""Coordinates along the kernels of a bank, against the kernels that the sweep file asks for."""

from __future__ import annotations

import numpy as np

from mkldist.bank.bank_kernels import BankKernels, GivenKernel
from mkldist.kernels.families import kernel_list
from mkldist.results.layout import kernel_coordinates
from mkldist.spec.banks import BankSpec

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
    bank = BankKernels(kernels, (GivenKernel("strings", 0, True), GivenKernel("images", 1, False)))
    found = kernel_coordinates(BANK, bank.names(NAMES), bank, NAMES)
    assert all(len(values) == len(kernels) + 2 for values in found.values())
    assert found["function"][-2:].tolist() == ["precomputed", "precomputed"]
    assert found["features"][-2:].tolist() == ["strings", "images"]
    assert found["kernel"][-1] == "precomputed(1)[images]"
    assert np.isnan(found["width"][-2:]).all()
    alone = kernel_coordinates(BANK, ["precomputed[strings]"], BankKernels(None, bank.given[:1]))
    assert alone["features"].tolist() == ["strings"]
