"""Kernels that say nothing: nearly the identity, constant, or equal to others, counted."""

import json

import numpy as np

import mkldist
from mkldist.bank import bank_kernels
from mkldist.bank.bank_kernels import BankKernels, SayNothing
from mkldist.data.dataset import Dataset
from mkldist.spec.banks import KernelChoice
from mkldist.spec.datasets import PreprocessingSpec

X = np.random.default_rng(1).normal(size=(80, 300))
DATA = Dataset("d", X, np.sign(X[:, 0]), ("no", "yes"), tuple(f"f{j}" for j in range(300)))
TRAIN = np.arange(0, 80, 2)


def counted(*entries: dict[str, object], cosine: bool = False) -> SayNothing:
    choice = KernelChoice.model_validate({"kernels": list(entries)})
    kernels = BankKernels.of(choice, DATA, 3, PreprocessingSpec())
    return SayNothing.in_bank(kernels, DATA, TRAIN, PreprocessingSpec(), cosine=cosine, seed=0)


def test_each_kernel_is_counted_once():
    found = counted(
        {"function": "gaussian", "widths": [0.5, 2, 25, 1e4]},
        {"function": "linear"},
        {"function": "polynomial", "degrees": [1], "offset": [0]},
    )
    assert (found.of, found.seen, found.rows) == (6, 6, 40)
    assert (found.identity, found.constant, found.equal) == (2, 1, 1)


def test_relative_widths_of_random_subsets_say_something():
    subsets = {"count": 20}
    absolute = counted({"function": "gaussian", "widths": [0.5, 1, 2], "features": subsets})
    relative = counted(
        {"function": "gaussian", "relative_widths": [0.5, 1, 2], "features": subsets}
    )
    assert absolute.identity > 40
    assert (relative.identity, relative.constant, relative.equal) == (0, 0, 0)
    assert not relative.words


def test_cosines_of_one_feature_are_no_constants():
    entry = {"function": "linear", "features": ["f0", "f1"]}
    assert counted(entry).constant == counted(entry, cosine=True).constant == 0


def test_matrices_of_the_data_set_are_counted():
    grams = np.stack([np.eye(80), np.ones((80, 80)), X @ X.T, 3.0 * (X @ X.T)])
    data = Dataset("d", None, DATA.y, DATA.classes, grams=grams)
    found = SayNothing.in_bank(None, data, TRAIN, PreprocessingSpec(), cosine=False, seed=0)
    assert (found.identity, found.constant, found.equal) == (1, 1, 1)


def test_many_kernels_are_drawn(monkeypatch):
    monkeypatch.setattr(bank_kernels, "SAMPLED_KERNELS", 30)
    found = counted({"function": "gaussian", "widths": [0.1], "features": "each"})
    assert (found.of, found.seen) == (300, 30)


def test_results_hold_the_counts(tmp_path):
    kernels = [{"function": "gaussian", "widths": [0.5, 25]}]
    spec = {
        "name": "silent",
        "datasets": [{"name": "d"}],
        "banks": [{"name": "b", "kernels": kernels}],
        "methods": [{"name": "uniform"}],
    }
    data = {"d": (X, np.where(X[:, 0] > 0, "yes", "no"))}
    tree = mkldist.sweep(spec, data, output=tmp_path / "silent", progress=False, workers=0)
    words = json.loads(tree.attrs["data"])["d"]["kernels"]["b"]
    assert words.startswith("of 2, 1 is nearly the identity on 40 training rows")
