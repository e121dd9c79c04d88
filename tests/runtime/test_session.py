"""A query that has started is governed, or stopped: none runs on that nobody knows of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate_spark.engine.governor import Governor
from headgate_spark.launch import session
from support.engine import MadeUpCheckpoint, Unmeasured


class Query:
    """One that Spark has started."""

    runId, id, name = "r1", "1", "copy"  # noqa: N815
    stopped = 0

    def stop(self) -> None:
        self.stopped += 1


def test_a_query_that_cannot_be_registered_is_stopped_and_the_job_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lost(*_: object) -> Any:
        raise ConnectionError("the JVM has closed the connection")

    monkeypatch.setattr(session.shim, "progress", lost)
    monkeypatch.setattr(session, "_silence", lambda *_: None)
    query = Query()
    plan = SimpleNamespace(toString=lambda: "WriteToStream")
    frame = SimpleNamespace(queryExecution=lambda: SimpleNamespace(analyzed=lambda: plan))
    spark = SimpleNamespace(sparkContext=None, _sc=SimpleNamespace(_jvm=None))
    writer = SimpleNamespace(_spark=spark, _df=SimpleNamespace(_jdf=frame))
    governor = Governor(
        acquire_lock=lambda _: None, open_checkpoint=lambda _: MadeUpCheckpoint(), observer=Unmeasured()
    )
    with pytest.raises(ConnectionError, match="closed the connection"):
        session._start(governor, lambda _: None, lambda *_, **__: None, lambda _: query, writer)
    assert query.stopped == 1
    assert not governor.has_seen_a_query
