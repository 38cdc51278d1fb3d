"""Kernels of one entry: every combination of parameters, and mistakes in them."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.errors import SpecError
from mkldist.kernel_functions.definition import kernel_words
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.families import check_entry, kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec, KernelSpec


def kernels_of(*entries: dict, d: int = 2) -> KernelList:
    return kernel_list(BankSpec(kernels=entries), d, ["a", "b"][:d], {}, 0)


def products(left: np.ndarray, right: np.ndarray, scale: float = 1.0, kind: str = "") -> np.ndarray:
    return scale * left @ right.T


def test_two_parameters_stand_for_every_pair_of_values():
    entry = {"function": "matern", "widths": [1, 2], "nu": [0.5, 1.5, 3], "features": "all"}
    assert kernels_of(entry).names() == [
        f"matern({width}{nu})[all]" for width in (1, 2) for nu in (", nu=0.5", "", ", nu=3")
    ]
    entry = {"function": "polynomial", "degrees": [1, 2], "offset": [0, 1]}
    assert [kernels_of(entry).settings_of(m) for m in (0, 3)] == [
        {"degree": 1.0, "offset": 0.0},
        {"degree": 2.0, "offset": 1.0},
    ]


def test_parameters_without_a_default_are_needed_and_others_take_it():
    assert kernels_of({"function": "matern", "widths": 1}).offset.tolist() == [1.5]
    for name, function in FUNCTIONS.items():
        for parameter in function.parameters:
            others = {one.key: 1 for one in function.parameters if one is not parameter}
            entry = KernelSpec.model_validate({"function": name, **others})
            if parameter.default is None:
                with pytest.raises(
                    SpecError, match=f"{kernel_words(name)} without {parameter.key}"
                ):
                    check_entry(entry, "here")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"function": "linear", "period": 1},
            "period: found period of a linear kernel; expected none",
        ),
        (
            {"function": "matern", "widths": 1, "offset": 1},
            "offset .* expected widths, relative_widths, nu alone",
        ),
        (
            {"function": "matern", "widths": 1, "nu": 30},
            "nu: .*30.0.*; expected numbers above 0, at most 20",
        ),
        ({"function": "linear", "parameters": {"a": 1}}, "parameters of a linear kernel"),
        ({"function": products, "widths": 1}, "widths of a products kernel; expected parameters"),
        ({"function": products, "parameters": {"size": 1}}, "size, which products does not take"),
        ({"function": "no.module:k"}, "function: found 'no.module:k', which cannot be imported"),
        (
            {"function": "matern", "widths": "chi2", "nu": [1, 2], "features": {"count": 3}},
            "nu: found 2 with widths = 'chi2'; expected one",
        ),
    ],
)
def test_mistakes_are_told_by_place(entry, said):
    with pytest.raises(SpecError, match=rf"^banks\.bank\.kernels\[0\].*{said}"):
        kernels_of(entry)


def test_random_widths_go_with_one_value_of_the_other_parameter():
    entry = {"function": "matern", "widths": "chi2", "nu": 2.5, "features": {"count": 4}}
    found = kernels_of(entry)
    assert found.offset.tolist() == [2.5] * 4
    assert len(set(found.parameter.tolist())) == 4


def test_functions_of_the_user_take_every_combination_of_their_parameters():
    entry = {
        "function": products,
        "parameters": {"scale": [1, 2.5], "kind": ["a", "b"]},
        "features": ["all", "each"],
    }
    found = kernels_of({"function": "linear"}, entry, {"function": products})
    heads = [f"products(scale={s}, kind={k})" for s in (1, 2.5) for k in "ab"]
    assert found.names(["a", "b"]) == [
        "linear[all]",
        *(f"{head}[all]" for head in heads),
        "products[all]",
        *(f"{head}[{name}]" for name in "ab" for head in heads),
    ]
    assert found.settings_of(1) == {"scale": 1, "kind": "a"}
    assert found.select([3, 0]).names(["a", "b"]) == [f"{heads[2]}[all]", "linear[all]"]
