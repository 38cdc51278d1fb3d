"""Gram matrices in a list of kernels: an entry that names their view."""

import numpy as np

import mkldist
from mkldist.kernels.precomputed import Precomputed


def test_the_entry_names_the_view_and_holds_no_matrix():
    given = mkldist.kernels.Precomputed(np.eye(3), name="strings")
    assert isinstance(given, Precomputed)
    assert given.entry() == {"function": "precomputed", "features": "strings"}
    assert repr(given) == "Precomputed(name='strings')"
    assert given != Precomputed(np.eye(3), name="strings")
    assert len({given, given}) == 1
