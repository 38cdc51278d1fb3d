"""Lists that memory could not hold are refused by their number, before they are made."""

from __future__ import annotations

import pytest

from mkldist.errors import SpecError
from mkldist.spec import sizes
from mkldist.spec.sizes import check_fits


def test_half_of_the_memory_may_be_taken_and_no_more(monkeypatch):
    monkeypatch.setattr(sizes, "physical_memory", lambda: 2**31)
    check_fits(2**20, 2**10, "here", "things")
    with pytest.raises(SpecError) as caught:
        check_fits(2**20 + 1, 2**10, "here", "things", "Take fewer")
    assert str(caught.value) == (
        "here: found 1,048,577 things, which need 1.0 GiB of memory; expected at most 1.0 GiB, "
        "half of this machine's memory. Take fewer."
    )
