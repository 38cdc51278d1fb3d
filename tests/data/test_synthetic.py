"""Synthetic data, against moments, Bayes errors and generators that are published."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_friedman1, make_moons

from mkldist.data.dataset import RawData
from mkldist.data.synthetic import GENERATORS, generate
from mkldist.errors import SpecError
from mkldist.spec import kinds
from tests.data.mistakes import mistake

MANY = 40_000


def draw(name: str, seed: int = 0, **options: Any) -> tuple[np.ndarray, np.ndarray, RawData]:
    found = generate(name, options, seed, "data set 't'")
    assert found.x is not None
    return found.x, found.labels, found


@pytest.mark.parametrize("name", GENERATORS)
def test_drawn_from_the_seed_alone(name):
    x, labels, found = draw(name, n=60)
    again, same, _ = draw(name, n=60)
    np.testing.assert_array_equal(x, again)
    np.testing.assert_array_equal(labels, same)
    assert not np.array_equal(x, draw(name, seed=1, n=60)[0])
    np.testing.assert_array_equal(draw(name, seed=1, n=60)[0], draw(name, n=60, seed=1)[0])
    assert len(x) == len(labels) == 60
    assert len(found.feature_names) == x.shape[1]
    assert name in found.origin


@pytest.mark.slow
def test_ringnorm_has_breimans_moments():
    x, labels, _ = draw("ringnorm", n=MANY)
    wide, narrow = x[labels == 1], x[labels == 2]
    np.testing.assert_allclose(wide.mean(axis=0), 0, atol=0.07)
    np.testing.assert_allclose(np.cov(wide.T), 4 * np.eye(20), atol=0.2)
    np.testing.assert_allclose(narrow.mean(axis=0), 2 / np.sqrt(20), atol=0.04)
    np.testing.assert_allclose(np.cov(narrow.T), np.eye(20), atol=0.05)


def test_twonorm_has_breimans_bayes_error():
    x, labels, _ = draw("twonorm", n=MANY)
    # The optimal rule is the sign of the sum; its error is Φ(-2) = 2.3 %.
    wrong = np.mean((x.sum(axis=1) > 0) != (labels == 1))
    assert abs(wrong - 0.02275) < 0.003


def test_waveform_mixes_two_of_three_triangles():
    x, labels, _ = draw("waveform", n=MANY)
    assert np.unique(labels).tolist() == [1, 2, 3]
    triangle = np.array([0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0, *[0] * 8])
    left, middle, right = triangle, np.roll(triangle, 4), np.roll(triangle, 8)
    for label, pair in ((1, (middle, right)), (2, (middle, left)), (3, (right, left))):
        points = x[labels == label]
        np.testing.assert_allclose(points.mean(axis=0), sum(pair) / 2, atol=0.06)
        # A uniform mixture has variance (difference of the waves)² / 12, plus the noise.
        expected = 1 + (pair[0] - pair[1]) ** 2 / 12
        np.testing.assert_allclose(points.var(axis=0), expected, rtol=0.06)


@pytest.mark.slow
def test_moons_are_those_of_scikit_learn():
    x, labels, _ = draw("two_moons", n=2000, noise=0)
    moons, which = make_moons(4000, noise=0)
    for label in (1, 2):
        near = np.abs(x[labels == label][:, None] - moons[which == label - 1]).sum(axis=2)
        assert near.min(axis=1).max() < 0.01
    assert np.bincount(labels).tolist() == [0, 1000, 1000]


def test_circles_lie_in_each_other():
    x, labels, _ = draw("two_circles", n=301, noise=0, factor=0.25)
    np.testing.assert_allclose(np.hypot(*x.T), np.where(labels == 1, 1, 0.25))
    assert np.bincount(labels).tolist() == [0, 151, 150]


@pytest.mark.parametrize(("points", "inner"), [(5, 0.5), (4, 0.3), (3, 0.5)])
def test_stars_are_polygons(points, inner):
    x, labels, _ = draw("star", n=600, points=points, inner=inner)
    angle = np.pi / points * np.arange(2 * points)
    radius = np.where(np.arange(2 * points) % 2, inner, 1.0)
    corners = np.column_stack([radius * np.sin(angle), radius * np.cos(angle)])
    np.testing.assert_array_equal(labels == 2, within(corners, x))
    assert np.bincount(labels).tolist() == [0, 300, 300]


def within(corners: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return which points lie in a polygon, by counting the edges to the right of each."""
    inside = np.zeros(len(x), dtype=bool)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        crosses = (y0 > x[:, 1]) != (y1 > x[:, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            inside ^= crosses & (x[:, 0] < x0 + (x[:, 1] - y0) / (y1 - y0) * (x1 - x0))
    return inside


def test_a_gap_around_a_star():
    x, labels, _ = draw("star", n=600, gap=0.25)
    whole, labels_of_whole, _ = draw("star", n=600)
    radius = np.hypot(*x[labels == 2].T)
    assert radius.max() <= 0.75 < np.hypot(*whole[labels_of_whole == 2].T).max()
    outside = cdist(x[labels == 1], x[labels == 2]).min()
    assert outside > 5 * cdist(whole[labels_of_whole == 1], whole[labels_of_whole == 2]).min()


def test_only_the_support_bears_on_the_class():
    x, labels, found = draw("mkl_known_support", n=MANY, d=6, support=2, noise=0)
    np.testing.assert_array_equal(labels == 2, np.sin(np.pi * x[:, :2]).sum(axis=1) > 0)
    assert found.groups == {"support": (0, 1), "noise": (2, 3, 4, 5)}
    assert found.feature_names[:3] == ("support_0", "support_1", "noise_0")
    correlation = [abs(np.corrcoef(np.sin(np.pi * f), labels)[0, 1]) for f in x.T]
    assert min(correlation[:2]) > 0.3
    assert max(correlation[2:]) < 0.03
    assert "noise" not in draw("mkl_known_support", d=2, support=2)[2].groups


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("two_moons", {"nois": 1}, ("options.nois", "an unknown key", "Did you mean 'noise'?")),
        ("two_moons", {"d": 3}, ("options.d", "one of n, noise, seed")),
        ("two_moons", {"n": 10.5}, ("options.n", "10.5", "a whole number")),
        ("two_moons", {"n": 3}, ("at least 4",)),
        ("two_moons", {"noise": "much"}, ('"much"', "a number")),
        ("two_moons", {"noise": -1}, ("at least 0",)),
        ("two_moons", {"noise": float("nan")}, ("nan",)),
        ("two_moons", {"noise": float("inf")}, ("inf",)),
        ("two_circles", {"factor": 0}, ("a number above 0",)),
        ("mkl_known_support", {"support": 30}, ("options.support", "at most d = 20")),
    ],
)
def test_wrong_options(name, options, words):
    with mistake("data set 't': options.", *words):
        generate(name, options, 0, "data set 't'")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("two_moons", {"n": 7 * 10**7},
         "t: options.n: found 70,000,000 points, which need 11.0 GiB of memory; "
         "expected at most 1,000,000. Draw fewer."),
        ("two_moons", {"n": 10**400}, "t: options.n: found more than 1,000,000,000,000,000 points"),
        ("ringnorm", {"n": 7 * 10**7, "d": 1}, "which need 0.5 GiB of memory; expected at most 1,"),
        ("ringnorm", {}, "t: options.d: found 7,400 points, which need 0.0 GiB"),
        ("ringnorm", {"n": 10**4}, "t: options.n: found 10,000 points"),
        ("twonorm", {"d": 10**5}, "t: options.d: found 7,400 points, which need 5.5 GiB of memory"),
    ],
)  # fmt: skip
def test_too_many_points_are_refused_with_what_they_need(monkeypatch, name, options, words):
    monkeypatch.setattr(kinds, "physical_memory", lambda: 10**6)
    with mistake(words, error=SpecError):
        generate(name, options, 0, "t")


def test_friedman1_is_that_of_scikit_learn_but_for_the_noise():
    x, y, found = draw("friedman1", n=200, d=7, noise=0)
    expected = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    np.testing.assert_allclose(y, expected + 10 * x[:, 3] + 5 * x[:, 4])
    assert found.task == "regression"
    assert found.groups == {"support": (0, 1, 2, 3, 4), "noise": (5, 6)}
    noisy = draw("friedman1", n=MANY, noise=3)
    _, clean = make_friedman1(MANY, noise=0, random_state=0)
    assert noisy[1].var() == pytest.approx(clean.var() + 9, rel=0.05)
    with mistake("options.d", "at least 5"):
        generate("friedman1", {"d": 4}, 0, "t")
