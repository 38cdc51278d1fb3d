"""Kernels of texts in a bank, against scikit-learn's counts of substrings and counts by hand."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.bank.bank_kernels import BankKernels
from mkldist.data.dataset import Dataset, GramView, TextColumns, View
from mkldist.errors import SpecError
from mkldist.kernels import Spectrum
from mkldist.results.layout import kernel_coordinates
from mkldist.spec.banks import BankSpec

N = 40
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2))
DNA = ["".join(RNG.choice(list("acgt"), size)) for size in RNG.integers(1, 30, N)]
RNA = ["".join(RNG.choice(list("acgu"), size)) for size in RNG.integers(2, 9, N)]
LACKING = [4, 11, 12]
for row in LACKING:
    RNA[row] = ""
TREE = np.diag(np.arange(1.0, N + 1))
TEXTS = TextColumns.of({"dna": DNA, "rna": RNA})
assert TEXTS is not None
TEXTS.views["fold"] = View((1,), "zero")
DATASET = Dataset(
    "d",
    X,
    np.where(np.arange(N) % 2, 1.0, -1.0),
    ("no", "yes"),
    ("a", "b"),
    given={"tree": GramView(TREE[None], np.ones(N, dtype=bool))},
    texts=TEXTS,
)


def letters(left: Any, right: Any, power: float = 1.0) -> np.ndarray:
    """Return products of the numbers of letters of texts, (r, s) and (c, s), summed over s."""
    one, other = (np.array([[len(t) for t in row] for row in side]) for side in (left, right))
    values: np.ndarray = one**power @ (other**power).T
    return values


ENTRIES: tuple[dict[str, Any], ...] = (
    {"function": "precomputed", "features": "tree"},
    {"function": "spectrum", "length": [1, 3], "features": ["each", "all"]},
    {"function": "gaussian", "widths": 1.0},
    {"function": letters, "parameters": {"power": 0.5}, "features": "fold"},
    {"function": "spectrum", "length": 2, "features": "fold"},
)


def bank(*entries: dict[str, Any]) -> BankSpec:
    return BankSpec.model_validate({"name": "mine", "kernels": list(entries)})


def kernels_of(*entries: dict[str, Any]) -> BankKernels:
    return BankKernels.of(bank(*entries), DATASET, seed=0)


NAMES = [
    "gaussian(1)[all]", "spectrum(1)[all]", "spectrum(3)[all]", "spectrum(1)[dna]",
    "spectrum(3)[dna]", "spectrum(1)[rna]", "spectrum(3)[rna]", "letters(power=0.5)[fold]",
    "spectrum(2)[fold]", "precomputed[tree]",
]  # fmt: skip


def test_one_order_is_drawn_over_kernels_of_numbers_and_of_texts():
    entries = [
        {"function": "spectrum", "length": [1, 2, 3], "features": ["each", "all"]},
        {"function": "gaussian", "widths": [0.5, 1.0, 2.0], "features": ["each", "all"]},
    ]

    def drawn(size: int | None) -> BankKernels:
        words = {"name": "mine", "kernels": entries, "n_kernels": size}
        return BankKernels.of(BankSpec.model_validate(words), DATASET, seed=0)

    everything = drawn(None).names(("a", "b"))
    former: list[str] = []
    for size in range(1, len(everything) + 1):
        kernels = drawn(size)
        names = kernels.names(("a", "b"))
        assert len(kernels) == len(names) == len(kernels.groups) == size
        of_numbers = [name for name in former if name.startswith("gaussian")]
        assert names[: len(of_numbers)] == of_numbers
        assert set(former) < set(names)
        former = names
    assert sorted(former) == sorted(everything)
    half = {name.split("(")[0] for name in drawn(len(everything) // 2).names(("a", "b"))}
    assert half == {"gaussian", "spectrum"}
    with pytest.raises(SpecError, match=r"n_kernels: found 19; expected at most 18, all kernels"):
        drawn(19)


def test_groups_coordinates_and_fingerprints_tell_texts_from_numbers():
    kernels = kernels_of(*ENTRIES)
    groups = kernels.groups.tolist()
    assert len(set(groups)) == 6
    assert groups[7] == groups[8]  # both on "fold"
    assert groups[0] != groups[1]  # "all" features are not "all" texts
    found = kernel_coordinates(bank(*ENTRIES), NAMES, kernels, DATASET.feature_names)
    assert found["function"].tolist()[6:] == ["spectrum", "letters", "spectrum", "precomputed"]
    assert found["features"].tolist()[5:] == ["rna", "rna", "fold", "fold", "tree"]
    assert_array_equal(found["length"], [np.nan, 1, 3, 1, 3, 1, 3, np.nan, 2, np.nan])
    assert_array_equal(found["width"][:2], [1.0, np.nan])
    one, other = (kernels_of({**ENTRIES[4], "length": length}) for length in (2, 3))
    assert one.of_features is None
    assert one.fingerprint != other.fingerprint


def test_python_words_say_the_same():
    entry = Spectrum([1, 2], features="dna").entry()
    assert entry == {"function": "spectrum", "length": [1, 2], "features": "dna"}
    assert len(kernels_of(entry)) == 2


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"function": "spectrum", "length": 2, "features": "a"},
         r"features: found 'a', a feature or group of numbers, for a spectrum kernel; expected "
         r"columns of texts: dna, rna, fold"),
        ({"function": "spectrum", "length": 2, "features": "dns"}, "'dns' for .* mean 'dna'"),
        ({"function": "gaussian", "widths": 1, "features": "dna"},
         "features: found 'dna', a column of texts, for a gaussian kernel; expected features of"),
        ({"function": letters, "features": ["dna", "a"]}, "'dna', a column of texts, and 'a'"),
        ({"function": "spectrum"}, "a spectrum kernel without length"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_told(entry, said):
    with pytest.raises(SpecError, match=r"^banks\.mine\.kernels\[0\].*" + said):
        kernels_of(entry)


def test_data_without_texts_have_no_kernels_of_them():
    plain = Dataset("p", X, DATASET.y, ("no", "yes"), ("a", "b"))
    with pytest.raises(SpecError, match="found a spectrum kernel for data without texts; expected"):
        BankKernels.of(bank({"function": "spectrum", "length": 2}), plain, 0)
