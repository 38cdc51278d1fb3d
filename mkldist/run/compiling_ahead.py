"""A process beside the workers of this machine that takes part in compiling before runs begin."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from mkldist.planning.model import BatchPlan, Plan
from mkldist.run.cluster import ConnectOptions

if TYPE_CHECKING:
    from mkldist.worker.warm_up import Specimen


def compiling_ahead(
    plan: Plan, batches: Iterable[BatchPlan], options: ConnectOptions
) -> AbstractContextManager[None]:
    """Return a context in which a process compiles what runs on workers of this machine need.

    Meanwhile workers start.  Isolated runs wait until their own worker has compiled, so that
    nothing runs beside them.

    Parameters
    ----------
    plan : Plan
        The plan of the sweep.
    batches : iterable of BatchPlan
        Its batches that are to be done.
    options : ConnectOptions
        The workers.
    """
    if plan.spec.execution == "isolated" or options.in_this_process or not options.are_local:
        return nullcontext()
    from mkldist.run.fork_server import process_beside
    from mkldist.worker.warm_up import compile_ahead, specimens

    banks = {bank.id: bank for bank in plan.banks}
    wanted: dict[Specimen, dict[str, Any]] = {}
    for batch in batches:
        wanted |= specimens(batch.runs, banks[batch.bank])
    if not wanted:
        return nullcontext()
    options.prepare()
    return process_beside(compile_ahead, wanted)
