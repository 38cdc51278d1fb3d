"""Tests of `validation`, through the grids that are validated."""

from __future__ import annotations

import pytest

from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.grids import expand
from mkldist.solvers.solver_params import validate

SPICY = METHODS["spicymkl"]


def test_a_parameter_may_matter_for_some_losses_of_a_grid():
    grid = expand(SPICY, "m", {"loss": ["squared", "epsilon"], "epsilon": 0.2}, None)
    assert [(p.loss, p.epsilon) for p in grid.points] == [("squared", 0.2), ("epsilon", 0.2)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "squared", "epsilon": [0.1, 0.2]}, "m.epsilon: found epsilon with "
         'loss = "squared", where it has no effect; expected loss = "epsilon", or no epsilon'),
        ({"loss": ["epsilon", "squared"], "epsilon": [0.1, 0.2]}, "m.epsilon: found epsilon with "
         'loss = "squared", where it has no effect; expected loss = "epsilon", or no epsilon. '
         "Give the others an entry of [[methods]] with a label of its own."),
        ({"q": 1.2}, 'm.q: found q with regularizer = "block1", where it has no effect; expected '
         'regularizer = "block-q", or no q'),
    ],
)  # fmt: skip
def test_parameters_that_would_only_repeat_runs_are_refused(settings, message):
    with pytest.raises(SpecError) as caught:
        expand(SPICY, "m", settings, None)
    assert str(caught.value) == message


def test_a_parameter_that_no_method_has_is_named_with_the_one_that_is_meant():
    with pytest.raises(SpecError, match=r"spicymkl.regulariser: .*Did you mean 'regularizer'"):
        validate(SPICY.params, "spicymkl", {"regulariser": "block1"})
