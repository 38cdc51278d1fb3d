"""More runs than a plan can hold are refused before it is made."""

from __future__ import annotations

import pytest

from mkldist.errors import SpecError
from mkldist.planning.data_checks import RUN_BYTES, check_number_of_runs
from mkldist.planning.spec_checks import resolve_methods
from mkldist.spec import checks
from tests.planning.plans import dataset
from tests.planning.words import sweep

WORDS = """
[[methods]]
name = "level"
C = [1, 10, 100]
[[methods]]
name = "uniform"
C = { low = 1, high = 10 }
[search]
kind = "random"
trials = 3
"""


def test_the_runs_of_all_data_sets_count_and_those_of_a_search_do_not(monkeypatch):
    spec = sweep(WORDS)
    facts = {name: dataset(name, n_splits=7) for name in ("a", "b")}
    monkeypatch.setattr(checks, "physical_memory", lambda: 2 * 42 * RUN_BYTES)
    check_number_of_runs(spec, facts, resolve_methods(spec))
    monkeypatch.setattr(checks, "physical_memory", lambda: 2 * 42 * RUN_BYTES - 1)
    with pytest.raises(SpecError, match=r"methods: found 42 runs, which need .* splits\.repeats"):
        check_number_of_runs(spec, facts, resolve_methods(spec))
