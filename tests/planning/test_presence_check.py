"""Kernels that some points lack are not centred; others are."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.bank.bank_kernels import BankKernels
from mkldist.data.dataset import Dataset, GivenGrams, View
from mkldist.errors import SpecError
from mkldist.planning.data_checks import check_presence
from mkldist.spec.banks import BankSpec

X = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 1.0]])
DATASET = Dataset(
    "d",
    X,
    np.array([-1.0, 1.0, 1.0]),
    ("a", "b"),
    ("left", "right"),
    groups={"own": (0,), "genes": (1,)},
    views={"own": View((0,)), "genes": View((1,), "zero")},
    given={
        "whole": GivenGrams(np.eye(3)[None], np.ones(3, dtype=bool)),
        "half": GivenGrams(np.diag([1.0, 1.0, 0.0])[None], np.array([True, True, False]), "zero"),
    },
)


def check(view: str, normalisation: list[str]) -> None:
    function = "precomputed" if view in DATASET.given else "linear"
    entry = {"function": function, "features": view}
    bank = BankSpec.model_validate(
        {"name": "mine", "kernels": [entry], "normalisation": normalisation}
    )
    check_presence(bank, DATASET, BankKernels.of(bank, DATASET, 0))


@pytest.mark.parametrize("view", ["genes", "half", "all"])
def test_kernels_that_points_lack_are_not_centred(view: str) -> None:
    check(view, ["trace"])
    with pytest.raises(
        SpecError, match=r"banks\.mine\.normalisation: found 'centre' for kernels that"
    ):
        check(view, ["centre", "trace"])


@pytest.mark.parametrize("view", ["own", "whole"])
def test_kernels_that_all_points_have_are_centred(view: str) -> None:
    check(view, ["centre", "trace"])
