"""Calls side by side in threads, their results in order, few of them at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from mkldist.processors import n_processors

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` of each item, in order.

    An item is taken when a thread is about to be free, so that no more than one item beyond the
    threads is in memory.

    Parameters
    ----------
    function : callable
        Function that releases the interpreter's lock.
    items : iterable
        Its arguments, taken by the calling thread.
    n_threads : int, optional
        Number of threads; by default one for each processor.
    """
    threads = n_processors() if n_threads is None else n_threads
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="mkldist-predict") as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
