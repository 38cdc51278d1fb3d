"""Sparse features are made dense by no scaling and no kernel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from mkldist.bank.bank_kernels import BankKernels
from mkldist.data.dataset import Dataset
from mkldist.errors import SpecError
from mkldist.planning.data_checks import check_unscaled
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec

POINTS = csr_array(random_array((60, 40), density=0.1, rng=np.random.default_rng(0)))
DATASET = Dataset("d", None, np.ones(60), ("a", "b"), tuple(map(str, range(40))), sparse=POINTS)


def test_scaling_is_refused_with_its_size_and_place():
    entry = DatasetSpec(name="d")
    check_unscaled(PreprocessingSpec(scale="none"), entry, DATASET)
    check_unscaled(PreprocessingSpec(scale="tfidf"), entry, DATASET)
    own = DatasetSpec(name="d", preprocessing=PreprocessingSpec(scale="minmax"))
    with pytest.raises(
        SpecError, match=r"^preprocessing.scale: found \"zscore\" for the sparse .* 18\.75 kiB as "
    ):
        check_unscaled(PreprocessingSpec(), entry, DATASET)
    with pytest.raises(SpecError, match=r"^datasets\.d\.preprocessing\.scale: found \"minmax\""):
        check_unscaled(own.preprocessing or PreprocessingSpec(), own, DATASET)


def test_city_block_distances_are_refused_with_the_size_of_dense_features():
    spec = BankSpec.model_validate(
        {"name": "mine", "kernels": [{"function": "laplacian-rbf", "widths": 1.0}]}
    )
    message = (
        "banks.mine: found a laplacian-rbf kernel of sparse features, dense 18.75 kiB; expected g"
    )
    with pytest.raises(SpecError, match=message):
        BankKernels.of(spec, DATASET, 0)
