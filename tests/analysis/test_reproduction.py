"""Published numbers within ±, and those of other data, on results made up."""

from __future__ import annotations

import math
from dataclasses import replace

from mkldist.analysis.explanations import Explanation
from mkldist.analysis.outcomes import outcome_of
from mkldist.analysis.published import against_published
from mkldist.analysis.published_number import Published
from mkldist.analysis.reproduction import DataFacts, by_data, experiments, has_verdict, within
from tests.analysis.two_sweeps import made

NUMBER = Published("made-up", "heart", "level", "", "test_error", 0.25, 0.1, "Table 1")


def test_numbers_within_are_counted_by_the_published_deviation_or_ours(tmp_path):
    errors = {("heart", "level"): [0.1, 0.3], ("heart", "uniform"): [0.3, 0.3]}
    results = made(tmp_path, errors, split_names=("s0", "s1"))  # 0.2, sd 0.141
    published = [
        NUMBER,
        replace(NUMBER, sd=0.04),
        replace(NUMBER, sd=math.nan),
        replace(NUMBER, mean=0.35, sd=0.0),
        replace(NUMBER, method="silp"),
        replace(NUMBER, experiment="other"),
    ]
    outcomes = {"made-up": outcome_of(results, published, [])}
    own, other = experiments(outcomes, published, [], {})
    assert (own.name, own.complete, own.n_runs, own.n_published) == ("made-up", 8, 8, 5)
    assert within(own.compared, published=True) == (1, 2)
    assert within(own.compared, published=False) == (1, 2)
    assert (other.name, other.n_runs, other.compared, other.n_published) == ("other", 0, [], 1)


def test_of_one_split_without_a_deviation_the_published_mean_alone_counts(tmp_path):
    results = made(tmp_path, {("heart", "level"): [0.25]}, split_names=("s0",))
    published = [replace(NUMBER, sd=math.nan), replace(NUMBER, sd=math.nan, mean=0.26)]
    (own,) = experiments({"made-up": outcome_of(results, published, [])}, published, [], {})
    assert within(own.compared, published=False) == (1, 1)
    assert [has_verdict(cell) for cell in own.cells] == [True, False]


def test_what_ran_is_an_experiment_without_numbers_too(tmp_path):
    results = made(tmp_path, {("heart", "level"): [0.25]}, split_names=("s0",))
    (own,) = experiments({"made-up": outcome_of(results, [], [])}, [], [], {})
    assert (own.name, own.complete, own.n_published, own.cells) == ("made-up", 2, 0, ())


def test_numbers_of_other_data_are_told_apart_by_the_first_fact(tmp_path):
    results = made(tmp_path, {("heart", "level"): [0.1, 0.3]}, split_names=("s0", "s1"))
    cells = against_published(results, [NUMBER, replace(NUMBER, sd=0.04)])
    facts = [
        Explanation("made-up", "heart", "silp", "*", "Of silp.", "line 2"),
        Explanation("made-up", "heart", "*", "test_error", "Of errors.", "line 3"),
        Explanation("*", "*", "*", "*", "Of all.", "line 4"),
    ]
    assert by_data(cells, DataFacts(other=facts)) == ([], {}, {"Of errors.": cells})
    assert by_data(cells, DataFacts(other=facts[:1])) == (cells, {}, {})
    assert by_data(cells, DataFacts(facts[:1], facts[1:])) == ([], {"Of errors.": cells}, {})
    assert by_data(cells, DataFacts(facts[2:], facts)) == ([], {}, {"Of all.": cells})
