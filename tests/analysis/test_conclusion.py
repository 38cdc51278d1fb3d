"""Conclusions as data: how two means must relate, and files with mistakes."""

from __future__ import annotations

import pytest

from mkldist.analysis.conclusion import Conclusion, Means, read_conclusions
from mkldist.errors import SpecError


def conclusion(**words: object) -> Conclusion:
    given = {"experiment": "made-up", "metric": "test_error", "first": "level", "second": "uniform"}
    return Conclusion.model_validate({"paper": "A", "words": "B", **given, **words})


def test_errors_decide_without_a_margin():
    assert conclusion().holds(Means(1.0, 1.01))
    assert conclusion().holds(Means(1.0, 1.01), margin=1.1) is None


def test_alike_by_a_factor_has_a_margin_of_times():
    one = conclusion(relation="alike", within_factor=3.0)
    held = [one.holds(Means(*two)) for two in ((1.0, 3.2), (3.2, 1.0), (1.0, 2.9))]
    assert held == [False, False, True]
    means = [Means(1.0, value) for value in (2.7, 3.2, 3.4)]
    assert [one.holds(two, margin=1.1) for two in means] == [True, None, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[conclusions]]\npaper="A"', "conclusion 1: found nothing; expected words = ..."),
        (
            '[[conclusions]]\npaper="A"\nwords="B"\nmetric="gap"',
            "conclusion 1: found a part of a test; expected experiment, metric, first and second",
        ),
        (
            '[[conclusions]]\npaper="A"\nwords="B"\nexperiment="C"\nmetric="gap"\nfirst="a"\n'
            'second="b"\nrivals=["c"]',
            "conclusion 1: found a part of a test; expected experiment, metric, first and second",
        ),
        (
            '[[conclusions]]\npaper="A"\nwords="B"\nuntestable="C"\n[[conclusions]]\npaper="A"\n'
            'words="B"\nuntestable="C"\nfactor=-1',
            "conclusion 2: found -1; expected a number above 0",
        ),
        (
            '[[conclusions]]\npaper="A"\nwords="B"\nexperiment="C"\nmetric="gap"\nfirst="a"\n'
            'second="b"\nwins=2\nscope="most"',
            "conclusion 1: found wins beside scope = 'most'; expected one of them",
        ),
        ("conclusions = 1", "toml: found 1; expected a list"),
        ("", "toml: found nothing; expected conclusions = ..."),
    ],
    ids=["missing", "part", "both", "value", "wins", "list", "empty"],
)
def test_a_file_with_a_mistake_is_refused(tmp_path, text, said):
    file = tmp_path / "conclusions.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_conclusions(file)
    assert said in str(caught.value)
