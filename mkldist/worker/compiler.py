"""Numba's compiler, made ready in the process that workers are forked from.

Before numba compiles a first function it registers all of Python and numpy that it can compile, for
a third of a second.  To import this module does that where a sweep will compile, so that no worker
does it for itself.  Where it fails, each worker does.
"""

from __future__ import annotations

from contextlib import suppress

from numba.core.registry import cpu_target

from mkldist.compiled import has_code_on_disk
from mkldist.kernels.gram_tiles import add_features

if not has_code_on_disk(add_features):  # a function that most sweeps need
    with suppress(Exception):
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
