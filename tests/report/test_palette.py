"""Colours of methods."""

from __future__ import annotations

import itertools

import numpy as np

from mkldist.report.palette import COLOURS, looks

# Viénot, Brettel & Mollon (1999): what a reader without L or M cones sees, in linear RGB.
TO_LMS = np.array(
    [[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]]
)
MISSING = {
    "protan": np.array([[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]]),
    "deutan": np.array([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]]),
}


def seen(colour: str, kind: str) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    lms = MISSING[kind] @ TO_LMS @ rgb**2.2
    return np.clip(np.linalg.solve(TO_LMS, lms), 0, 1) ** (1 / 2.2)


def test_colour_blind_readers_can_tell_colours_apart():
    for kind in MISSING:
        for one, two in itertools.combinations(COLOURS, 2):
            assert np.abs(seen(one, kind) - seen(two, kind)).max() > 0.08, (kind, one, two)


def test_many_methods_still_differ():
    names = [f"method{i}" for i in range(20)]
    assert len(set(looks(names).values())) == 20
    assert list(looks(["a", "b", "a"])) == ["a", "b"]
