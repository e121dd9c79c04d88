"""The connection on which a driver asks its planner's process, to one that hangs: nobody reads, nobody answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LINK = "dev.headgate.spark.Link"
BUDGET_NANOS = 500_000_000
MORE_THAN_SOCKETS_HOLD = "x" * (32 << 20)


class Link:
    """One of the shim's own, which are no business of anybody outside of its package."""

    def __init__(self, spark: SparkSession, port: int) -> None:
        self._jvm, self._new_array = spark._jvm, spark.sparkContext._gateway.new_array
        address = self._class(LINK + "$Address").getDeclaredConstructors()[0]
        address.setAccessible(True)
        to = self._method("to", self._class(LINK + "$Address"), self._jvm.java.lang.Long.TYPE)
        where = address.newInstance(self._array("Object", port, "token"))
        self._link = to.invoke(None, self._array("Object", where, self._until()))

    def ask(self, question: str) -> str:
        """Ask, and return the class of what that fails with."""
        of_texts = self._array("String", question)
        ask = self._method("ask", self._jvm.java.lang.Long.TYPE, of_texts.getClass())
        with pytest.raises(Py4JJavaError) as failed:
            ask.invoke(self._link, self._array("Object", self._until(), of_texts))
        return str(failed.value.java_exception.getCause().getClass().getSimpleName())

    def call(self, name: str) -> Any:
        return self._method(name).invoke(self._link, self._array("Object"))

    def _until(self) -> int:
        return int(self._jvm.java.lang.System.nanoTime()) + BUDGET_NANOS

    def _method(self, name: str, *takes: Any) -> Any:
        method = self._class(LINK).getDeclaredMethod(name, self._array("Class", *takes))
        method.setAccessible(True)
        return method

    def _class(self, name: str) -> Any:
        return self._jvm.java.lang.Class.forName(name)

    def _array(self, of: str, *members: Any) -> Any:
        made = self._new_array(getattr(self._jvm.java.lang, of), len(members))
        for place, member in enumerate(members):
            made[place] = member
        return made


@pytest.fixture
def link(spark: SparkSession) -> Iterator[Link]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = Link(spark, listening.getsockname()[1])
        yield made
        made.call("close")


def test_the_answer_to_a_question_that_was_sent_is_owed(link: Link) -> None:
    assert link.ask("plan") == "TimeoutException"
    assert not link.call("isFree")
    assert not link.call("isBack")


def test_nobody_owes_the_answer_to_half_a_question(link: Link) -> None:
    """A thread that waits for one would wait for as long as the process hangs, and ask no other."""
    assert link.ask(MORE_THAN_SOCKETS_HOLD) == "TimeoutException"
    assert not link.call("isFree")
    assert link.call("isBack")
