"""What stays in memory is not collected again and again, and what becomes garbage is collected all the same."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from headgate_spark.launch.garbage import set_aside


class Node:
    """Something that can be part of a cycle."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def no_trace() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_is_there_is_left_out_of_collections():
    set_aside()
    frozen = gc.get_freeze_count()
    assert frozen > 1000
    assert len(gc.get_objects()) < frozen / 10


def test_garbage_is_not_set_aside():
    gone = weakref.ref(Node())
    set_aside()
    assert gone() is None


def test_what_was_set_aside_and_became_garbage_goes_when_the_next_query_starts():
    node = Node()
    gone = weakref.ref(node)
    set_aside()
    del node
    gc.collect()
    assert gone() is not None
    set_aside()
    assert gone() is None
