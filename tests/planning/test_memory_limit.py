"""Words for a limit of memory, and limits that no worker can keep."""

from __future__ import annotations

import math

import pytest

from mkldist.errors import SpecError
from mkldist.planning.costs import check_memory, parse_memory
from tests.planning.plans import dataset, grid, plan_of


@pytest.mark.parametrize(
    ("text", "n_bytes"), [(None, None), ("2GiB", 2**31), ("1.5 MiB", 1572864), ("3GB", 3 * 10**9)]
)
def test_words_stand_for_bytes(text, n_bytes):
    assert parse_memory(text) == n_bytes


@pytest.mark.parametrize("text", ["much", "-2GiB", "0", "16", "2 GiBs", "1e400"])
def test_other_words_are_refused(text):
    with pytest.raises(SpecError, match=r"memory: found .* expected a number of bytes such as"):
        parse_memory(text)


def planned(memory, backend="stream", names=("level",), **words):
    words = {"banks": [{"family": "xu2008", "backend": backend}]} | words
    words |= {"memory": memory} if memory else {}
    grids = {name: grid(name) for name in names}
    return plan_of({"a": dataset("a", 2000)}, grids, n_kernels=500, **words)


def test_a_limit_leaves_room_for_libraries_buffer_and_solver_of_every_thread():
    # 300 MiB of libraries, and for each thread 64 MiB of buffers and four matrices of 1000 points.
    one, two = 300 + 64 + 4 * 8e6 / 2**20, 300 + 2 * (64 + 4 * 8e6 / 2**20)
    check_memory(planned(None), 8)
    check_memory(planned(f"{one + 1:.0f}MiB"), 1)
    check_memory(planned(f"{two + 1:.0f}MiB"), 2)
    with pytest.raises(SpecError, match="at least 395 MiB, for the libraries, a buffer and one"):
        check_memory(planned(f"{one - 1:.0f}MiB"), 1)
    with pytest.raises(SpecError, match=r"at least 490 MiB, .* 1000 points in each of 2 threads"):
        check_memory(planned(f"{one + 1:.0f}MiB"), 2)


def test_a_limit_leaves_room_for_a_bank_that_is_to_be_loaded():
    with pytest.raises(SpecError, match=r'a whole bank .* Raise it, or remove backend = "memory"'):
        check_memory(planned("1GiB", "memory"), 1)


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (("level", "silp"), 'Set backend = "factors", which needs no matrix of all points'),
        (
            ("level", "skm", "silp", "smo_mkl"),
            'Give level and silp a bank with backend = "factors", which needs no matrix of all '
            "points; skm and smo_mkl need whole Gram matrices, for fewer points",
        ),
        (("gmkl",), "Use fewer points: gmkl needs whole Gram matrices"),
    ],
)
@pytest.mark.parametrize("limit", ["380MiB", None])
def test_factors_are_proposed_to_the_methods_that_take_them(names, hint, limit):
    with pytest.raises(SpecError) as refused:
        check_memory(planned(limit, names=names), 1, available=None if limit else 2**28)
    assert str(refused.value).endswith(f"{hint}.")


def test_the_bank_that_needs_most_decides_what_helps():
    with pytest.raises(SpecError, match="Lower rank, or use fewer points"):
        check_memory(planned("380MiB", "factors"), 1)
    banks = [
        {"family": "xu2008", "name": "thin", "backend": "factors", "rank": 1},
        {"family": "xu2008", "name": "whole", "backend": "stream"},
    ]
    runs = [{"name": "level", "banks": ["thin"]}, {"name": "skm", "banks": ["whole"]}]
    words = {"banks": banks, "methods": runs}
    plan = planned("310MiB", names=("level", "skm"), **words)
    with pytest.raises(SpecError, match="Use fewer points: skm needs whole Gram matrices"):
        check_memory(plan, 1)


def test_factors_need_memory_for_one_in_the_making_and_no_matrix():
    # A factor of 100 columns on 1000 points, a buffer, and three blocks of all points.
    in_making = (3 * 100 + 200) * 1000
    least = 300 + 64 + (in_making + 3 * 1000**2 + 200 * 1000) * 8 / 2**20
    check_memory(planned(f"{least + 1:.0f}MiB", "factors"), 1)
    with pytest.raises(SpecError, match=f"at least {math.ceil(least)} MiB"):
        check_memory(planned(f"{least - 1:.0f}MiB", "factors"), 1)


def test_more_than_the_machine_has_is_refused():
    check_memory(planned(None, "memory"), 1, available=2**34)
    with pytest.raises(SpecError, match=r"memory: found 1024 MiB in this machine; expected at least"
                       r" .*a whole bank .*Remove backend = \"memory\""):  # fmt: skip
        check_memory(planned(None, "memory"), 1, available=2**30)
    with pytest.raises(SpecError, match=r"found '64MiB'"):
        check_memory(planned("64MiB"), 1, available=2**34)
