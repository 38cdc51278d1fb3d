"""Regions of a file, against a map of its bytes."""

from __future__ import annotations

import numpy as np

from mkldist.bank.factor_bank import FileRegions


def test_no_two_regions_share_a_byte_and_those_given_back_are_taken_again():
    rng, regions = np.random.default_rng(0), FileRegions()
    taken: dict[int, int] = {}
    most = 0
    for _ in range(3000):
        if taken and (rng.random() < 0.5 or len(taken) > 20):
            offset = int(rng.choice(list(taken)))
            regions.free(offset, taken.pop(offset))
        else:
            n_bytes = int(rng.integers(0, 9))
            offset = regions.take(n_bytes)
            if n_bytes:
                taken[offset] = n_bytes
        used = np.zeros(max(regions.end, 1), dtype=int)
        for offset, n_bytes in taken.items():
            used[offset : offset + n_bytes] += 1
        assert used.max() <= 1
        assert regions.end == max((o + n for o, n in taken.items()), default=0)
        most = max(most, regions.end)
    assert most <= 300  # 21 regions of at most 8 bytes, and holes between them


def test_a_region_is_taken_where_it_fits_first():
    regions = FileRegions()
    first, second, third = (regions.take(n) for n in (10, 20, 30))
    assert (first, second, third, regions.end) == (0, 10, 30, 60)
    regions.free(second, 20)
    assert regions.take(5) == 10
    assert regions.take(20) == 60
    assert regions.take(15) == 15
