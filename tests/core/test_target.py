"""Kinds of labels: each is written in records by its value, and has words for messages."""

from __future__ import annotations

import pytest

from mkldist.core.target import LABELS, LEARNT, Target


@pytest.mark.parametrize("words", [LEARNT, LABELS])
def test_every_kind_has_words_of_its_own(words):
    assert set(words) == set(Target)
    assert len(set(words.values())) == len(Target)


def test_kinds_are_read_back_from_their_values():
    assert [Target(str(kind)) for kind in Target] == list(Target)
    with pytest.raises(ValueError, match="three classes"):
        Target("three classes")
