"""Banks that allow factors get them where the matrices of a solver do not fit in memory."""

from __future__ import annotations

import tomllib

import pytest

from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import most_points_of
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.solvers.grids import MethodGrid
from mkldist.spec.banks import BankSpec
from mkldist.spec.model import SweepSpec

TEXT = """
name = "choice"
memory = "{memory}"
[[datasets]]
name = "small"
source = "two_moons"
options = {{ n = 60 }}
[[datasets]]
name = "large"
source = "two_moons"
options = {{ n = 600 }}
[[banks]]
name = "gaussians"
{keys}
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
[[methods]]
name = "{method}"
"""
ALLOWED = 'allow = ["factors"]'


def resolved(tmp_path, memory="366MiB", keys=ALLOWED, method="level"):
    text = TEXT.format(memory=memory, keys=keys, method=method)
    spec = SweepSpec.model_validate(tomllib.loads(text))
    return spec, resolve(spec, (), tmp_path)


@pytest.mark.parametrize(
    ("memory", "keys", "expected"),
    [
        ("366MiB", ALLOWED, ["auto", "factors"]),
        ("2GiB", ALLOWED, ["auto", "auto"]),
        ("366MiB", "", ["auto", "auto"]),
        ("2GiB", 'backend = "factors"', ["factors", "factors"]),
    ],
)
def test_factors_are_chosen_by_name_where_matrices_do_not_fit(tmp_path, memory, keys, expected):
    spec, found = resolved(tmp_path, memory, keys)
    plan = make_plan(spec, found.facts, found.banks, found.grids, 1, None)
    backends = {bank.dataset: bank.spec.backend for bank in plan.banks}
    assert [backends[name] for name in ("small", "large")] == expected


def test_the_setting_that_needs_most_memory_decides():
    level = METHODS["level"]
    points = [level.params(acceleration=words) for words in ("none", "working-set")]
    grids = [MethodGrid(level, {}, tuple(some)) for some in (points, points[::-1], *zip(points))]
    both, reversed_both, *alone = (most_points_of(grid, 10**6, 2**30) for grid in grids)
    assert both == reversed_both == min(alone) < max(alone)


def test_methods_that_need_matrices_are_refused_only_where_factors_are_chosen(tmp_path):
    resolved(tmp_path, "2GiB", method="skm")
    with pytest.raises(SpecError, match=r"methods.skm: found skm on bank 'gaussians' of factors"):
        resolved(tmp_path, method="skm")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"allow": ["factors"], "backend": "stream"}, 'expected .*backend = "auto"'),
        ({"allow": ["factors"], "normalisation": "centre"}, "found allow"),
        ({"allow": ["memory"]}, "factors"),
        ({"rank": 5}, "found rank = 5"),
    ],
)
def test_what_factors_cannot_be_allowed_for_is_refused(keys, said):
    with pytest.raises(ValueError, match=said):
        BankSpec.model_validate({"kernels": [{"function": "gaussian", "widths": [1]}], **keys})
    allowed = {"kernels": [{"function": "gaussian", "widths": [1]}], "allow": ["factors"]}
    assert BankSpec.model_validate({**allowed, "rank": 5}).on_factors.backend == "factors"
