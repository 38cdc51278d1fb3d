"""Kernels as objects: the entries of a sweep file with the same keys."""

from __future__ import annotations

import numpy as np
import pytest

import mkldist
from mkldist import KernelBank, kernels
from mkldist.errors import SpecError
from mkldist.kernels.objects import Precomputed

X = np.random.default_rng(0).normal(size=(12, 3))


@pytest.mark.parametrize(
    ("kernel", "entry"),
    [
        (
            kernels.Gaussian(widths=[0.5, 2.0], features=["all", "each"]),
            {"function": "gaussian", "widths": [0.5, 2.0], "features": ["all", "each"]},
        ),
        (
            kernels.Gaussian(widths={"start": 1, "stop": 4, "num": 3, "scale": "log"}),
            {"function": "gaussian", "widths": [1.0, 2.0, 4.0]},
        ),
        (kernels.Laplacian(widths=np.array([3.0])), {"function": "laplacian-rbf", "widths": [3.0]}),
        (
            kernels.Polynomial(degrees=(2, 3), offset=0.5),
            {"function": "polynomial", "degrees": [2, 3], "offset": 0.5},
        ),
        (kernels.Linear(features={"count": 4}), {"function": "linear", "features": {"count": 4}}),
    ],
)
def test_an_object_is_an_entry(kernel, entry):
    by_object, by_entry = KernelBank(X, [kernel]), KernelBank(X, [entry])
    assert by_object.kernels.equals(by_entry.kernels)


def test_objects_and_entries_stand_side_by_side():
    bank = KernelBank(X, [kernels.Linear(), {"function": "polynomial", "degrees": [2]}])
    assert bank.kernels["function"].tolist() == ["linear", "polynomial"]


def test_mistakes_are_those_of_a_sweep_file():
    with pytest.raises(SpecError, match=r"kernels\[0\]\.widths"):
        KernelBank(X, [kernels.Gaussian(widths=-1.0)])


def test_the_names_are_found_from_the_package():
    assert mkldist.kernels.Gaussian is kernels.Gaussian
    assert "Gaussian" in dir(mkldist.kernels)
    with pytest.raises(AttributeError, match="Gausian"):
        mkldist.kernels.Gausian  # noqa: B018, the access is what is tested


def test_the_entry_names_the_view_and_holds_no_matrix():
    given = mkldist.kernels.Precomputed(np.eye(3), name="strings")
    assert isinstance(given, Precomputed)
    assert given.entry() == {"function": "precomputed", "features": "strings"}
    assert repr(given) == "Precomputed(name='strings')"
    assert given != Precomputed(np.eye(3), name="strings")
    assert len({given, given}) == 1
