"""`keeping`: settings of banks of Gram matrices, and their words."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.errors import SpecError
from mkldist.fit.bank import Keeping, bank_spec


@pytest.mark.parametrize("normalisation", ["none", ["none"], "trace", ("centre", "trace")])
def test_settings_of_grams_are_those_of_a_sweep_file(normalisation):
    spec = bank_spec("precomputed", normalisation=normalisation, backend="auto", dtype="auto")
    keeping = Keeping.of_grams(normalisation, "auto", "auto")
    assert keeping == Keeping.of(spec)
    assert keeping.stored_type == np.float64


@pytest.mark.parametrize("words", [("trase", "auto", "auto"), ("none", "disk", "auto")])
def test_unknown_words_are_refused(words):
    with pytest.raises(SpecError):
        Keeping.of_grams(*words)


def test_normalisations_are_named_in_order():
    assert str(Keeping()) == "none"
    assert str(Keeping(("centre", "trace"), dtype="float32")) == "centre, trace"
