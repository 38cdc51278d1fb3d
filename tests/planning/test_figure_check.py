"""Data sets of which no decision boundary can be drawn."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.errors import SpecError
from mkldist.planning import data_checks as figure_check
from mkldist.planning.data_checks import check_figures
from tests.planning.words import dataset, sweep

DRAWN = sweep('[[methods]]\nname = "level"\n[outputs]\nfigures = ["decision-boundary"]').outputs
PLAIN = sweep('[[methods]]\nname = "level"').outputs
THREE = dataset([-1, 1], x=np.zeros((2, 3)))
GRAMS = dataset([-1, 1], x=None, grams=np.zeros((1, 2, 2)))
VALUES = dataset([0.5, 1.5], classes=None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (THREE, "'a', which has 3 features"),
        (GRAMS, "'a', which holds Gram matrices"),
        (VALUES, "'a', a data set of regression"),
    ],
)
def test_boundaries_need_two_features_and_classes(given, said):
    check_figures(PLAIN, given)
    with pytest.raises(SpecError, match=f'outputs.figures: found "decision-boundary" of {said}'):
        check_figures(DRAWN, given)


def test_boundaries_in_a_plane_are_drawn():
    check_figures(DRAWN, dataset([-1, 1]))


def test_figures_without_matplotlib_say_what_installs_it(monkeypatch):
    monkeypatch.setattr(figure_check, "find_spec", lambda name: None)
    check_figures(PLAIN, dataset([-1, 1]))
    with pytest.raises(SpecError, match=r"pip install 'mkldist\[figures\]'"):
        check_figures(DRAWN, dataset([-1, 1]))
