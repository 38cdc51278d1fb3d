"""Documents of banks of factors and `array_documents`: sizes, and what they say of others."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from mkldist.errors import StoreError
from mkldist.gram import factor_documents
from mkldist.gram.array_documents import GROUP, DamagedDescriptionError, encoded
from mkldist.gram.factor_documents import FactorShape, describes_factors, documents, parsed


@pytest.mark.parametrize(("n", "pieces"), [(1, 1), (100, 1), (101, 2), (50_000, 500)])
def test_sizes_are_those_of_the_pieces(n, pieces):
    shape = FactorShape(3, n, "float32")
    assert (shape.n_pieces, shape.piece_bytes) == (pieces, 100 * n * 4 + 4)


def test_documents_tell_shape_and_attributes():
    shape = FactorShape(3, 120, "float32")
    content = documents(shape, {"label": "some"})
    assert parsed("here", content) == (shape, {"label": "some"})
    assert describes_factors(content[GROUP])
    assert not describes_factors(None)
    assert not describes_factors(b"[]")
    assert not describes_factors(encoded({"attributes": {"bank": {}}}))


def test_a_changed_byte_is_told_or_harmless():
    shape, rng = FactorShape(3, 120, "float64"), np.random.default_rng(0)
    content = documents(shape, {"label": "some"})
    for _ in range(300):
        name = list(content)[rng.integers(len(content))]
        changed = bytearray(content[name])
        changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
        outcome: object = None
        with suppress(DamagedDescriptionError):
            outcome = parsed("here", {**content, name: bytes(changed)})
        assert outcome in (None, (shape, {"label": "some"}))


@pytest.mark.parametrize("fact", [b'"version": 2', b'"piece": 100', b'"n_points": 120'])
def test_a_changed_fact_is_damage_and_not_another_layout(fact):
    content = documents(FactorShape(3, 120, "float64"), {"label": "some"})
    assert fact in content[GROUP]
    changed = content[GROUP].replace(fact, fact[:-1] + bytes([fact[-1] ^ 2]))
    with pytest.raises(DamagedDescriptionError, match="fail their checksum"):
        parsed("here", {**content, GROUP: changed})


def test_another_layout_is_named(monkeypatch):
    with monkeypatch.context() as other:
        other.setattr(factor_documents, "VERSION", 99)
        content = documents(FactorShape(3, 120, "float64"), {})
    with pytest.raises(StoreError, match="version 99"):
        parsed("here", content)
