"""The name of the dimension of trials."""

from __future__ import annotations

from mkldist.results.schema import SEARCH_DIMS
from mkldist.spec.model import TRIAL


def test_the_results_know_the_dimension_by_its_name():
    assert [variable.dims for variable in SEARCH_DIMS if variable.name == TRIAL] == [(TRIAL,)]
