"""Banks of some kernels of another bank, which share its memory."""

from __future__ import annotations

from mkldist.arrays import Ints
from mkldist.gram.bank import Bank
from mkldist.gram.part import PartBank
from mkldist.gram.recomputed import RecomputedBank
from mkldist.gram.view import BankView
from mkldist.in_memory.bank_content import BankContent
from mkldist.in_memory.feature_origin import FeatureOrigin
from mkldist.in_memory.opened_bank import recomputed


def some_kernels(content: BankContent, index: Ints) -> BankContent:
    """Return the parts of a bank of some kernels.

    Parameters
    ----------
    content : BankContent
        Parts of the bank of all kernels.
    index : (S,) intp
        The kernels, in any order.
    """
    whole = content.view
    origin = content.origin.select(index)
    factored = None if content.factored is None else content.factored.select(index)
    if factored is not None:
        part: Bank = factored.factors
    elif isinstance(whole.bank, RecomputedBank) and isinstance(origin, FeatureOrigin):
        part = recomputed(origin.source)
    else:
        part = PartBank(whole.bank, index)
    traces = None if whole.traces is None else whole.traces[index]
    return BankContent(
        BankView(part, None, whole.scale[index], whole.centred, traces=traces),
        origin,
        content.backend,
        content.normalisation,
        content.temporary,
        content.inspection,
        content.passed[index] if content.inspection else content.passed,
        factored,
    )
