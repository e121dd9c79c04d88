"""Questions that nobody may wait for, each on a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def aside(name: str, work: Callable[[], T]) -> Future[T]:
    """Begin `work` on a thread that ends with it; `name` is the thread's."""
    thread = ThreadPoolExecutor(1, thread_name_prefix=name)
    try:
        return thread.submit(work)
    finally:
        thread.shutdown(wait=False)
