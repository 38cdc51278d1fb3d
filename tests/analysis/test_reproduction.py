"""Published numbers within ±, and those of other data, on results made up."""

from __future__ import annotations

import math
from dataclasses import replace

from mkldist.analysis.explanations import Explanation
from mkldist.analysis.published import Published, against_published
from mkldist.analysis.reproduction import by_data, experiments, within
from tests.analysis.two_sweeps import made

LEVEL = Published("made-up", "heart", "level", "", "test_error", 0.15, 0.1, "Table 1")
PUBLISHED = [
    LEVEL,  # ours is 0.2: within 0.1
    replace(LEVEL, mean=0.31),  # 0.11 away
    replace(LEVEL, sd=math.nan),  # within our standard deviation, 0.141
    replace(LEVEL, mean=0.05, sd=0.0),  # 0.15 away
    replace(LEVEL, method="silp"),
    replace(LEVEL, experiment="other"),
]


def test_numbers_within_are_counted_by_the_published_deviation_or_ours(tmp_path):
    errors = {("heart", "level"): [0.1, 0.3], ("heart", "uniform"): [0.3, 0.3]}
    results = {"made-up": made(tmp_path, errors, split_names=("s0", "s1"))}
    own, other = experiments(results, PUBLISHED, [], {})
    assert (own.name, own.complete, own.n_runs, own.n_published) == ("made-up", 8, 8, 5)
    assert len(own.compared) == 4
    assert within(own.compared, published=True) == (1, 2)
    assert within(own.compared, published=False) == (1, 2)
    assert (other.name, other.n_runs, other.compared, other.n_published) == ("other", 0, [], 1)


def test_numbers_of_other_data_are_told_apart_by_the_first_fact(tmp_path):
    results = made(tmp_path, {("heart", "level"): [0.1, 0.3]}, split_names=("s0", "s1"))
    cells = against_published(results, PUBLISHED[:2])
    facts = [
        Explanation("made-up", "heart", "silp", "*", "Of silp.", "line 2"),
        Explanation("made-up", "heart", "*", "test_error", "Of errors.", "line 3"),
        Explanation("*", "*", "*", "*", "Of all.", "line 4"),
    ]
    assert by_data(cells, facts) == ([], {"Of errors.": cells})
    assert by_data(cells, facts[:1]) == (cells, {})
