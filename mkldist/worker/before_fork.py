"""What the process that workers are forked from does once, as it imports this, for all of them.

Before numba compiles a first function it registers all of Python and numpy that it can compile, for
a third of a second: here, where a sweep will compile.  Where that fails, each worker does it.  The
objects of all imports stay for good.  They are left out of later searches for garbage, which would
visit them in each worker, and so give it a copy of their memory.
"""

from __future__ import annotations

import gc
from contextlib import suppress

from numba.core.registry import cpu_target

from mkldist.compiled import has_code_on_disk
from mkldist.kernels.gram_tiles import add_features

if not has_code_on_disk(add_features):  # a function that most sweeps need
    with suppress(Exception):
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
gc.collect()
gc.freeze()
