"""Banks of given Gram matrices: checked, packed, and normalised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.arrays import Array
from mkldist.blas_threads import threads_for
from mkldist.gram.bank import Bank
from mkldist.identity import array_id, content_id
from mkldist.in_memory.bank_content import BankContent, normalised
from mkldist.in_memory.bank_size import Backend, BankSize, backend_for
from mkldist.in_memory.gram_stack import Inspection, gram_stack, inspected_stack, packed_bank
from mkldist.in_memory.keeping import Keeping
from mkldist.in_memory.origins import GramOrigin, given_names

if TYPE_CHECKING:
    from mkldist.in_memory.opened_bank import StoredBank


def bank_of_grams(
    grams: Any,
    keeping: Keeping,
    check: str,
    names: Sequence[str] | None,
    folder: str | Path | None,
) -> BankContent:
    """Return a bank of Gram matrices; see :meth:`mkldist.KernelBank.from_grams`."""
    keeping.check_one_process()
    stack = gram_stack(grams)
    keeping.check_given()
    inspection = Inspection.of(check, stack.dtype)
    origin = GramOrigin(stack.shape[1], given_names(names, len(stack)))
    size = BankSize(len(stack), stack.shape[1], keeping.stored_type)
    kept = backend_for(keeping.backend, size, "stream")
    temporary = None
    with threads_for(size.n_points):
        if kept == "memory":
            bank: Bank = packed_bank(stack, inspection, size.dtype)
        else:
            opened = _stored(stack, inspection, size, kept, folder)
            bank, temporary = opened.bank, opened.temporary
        view = normalised(bank, keeping)
    return BankContent(
        view,
        origin,
        kept,
        str(keeping),
        temporary,
        inspection if check == "active" else None,
        np.zeros(len(stack), dtype=bool),
    )


def _stored(
    stack: Array,
    inspection: Inspection,
    size: BankSize,
    backend: Backend,
    folder: str | Path | None,
) -> StoredBank:
    """Check matrices and store them in a folder, and open the bank there."""
    from mkldist.gram.sources import ArraySource
    from mkldist.in_memory.opened_bank import stored

    passed = inspected_stack(stack, inspection)
    identity = content_id(grams=array_id(passed))
    return stored(lambda: ArraySource(passed), identity, size, backend, folder)
