"""What a test asks a running query again and again costs its JVM little."""

from __future__ import annotations

import json
from collections import Counter, deque
from types import SimpleNamespace
from typing import Any

from support.spark import batch_sizes, progress, reports

KEPT = 4
"""Reports that Spark keeps, of a hundred."""


class Query:
    """Reports in a ring, as Spark has them."""

    def __init__(self) -> None:
        self.written: Counter[int] = Counter()
        self._jsq = SimpleNamespace(
            recentProgress=lambda: list(self._kept),
            lastProgress=lambda: self._kept[-1] if self._kept else None,
        )
        self._kept: deque[Any] = deque(maxlen=KEPT)
        self._made = 0

    def reports(self, batch: int, rows: int = 0) -> None:
        self._made += 1
        number = self._made

        def json_text() -> str:
            self.written[number] += 1
            return json.dumps({"batchId": batch, "numInputRows": rows, "number": number})

        self._kept.append(
            SimpleNamespace(batchId=lambda: batch, timestamp=lambda: f"at {number}", json=json_text)
        )


def numbers(query: Any) -> list[int]:
    return [report["number"] for report in reports(query)]


def test_each_report_is_written_once_however_often_it_is_asked_for() -> None:
    query: Any = Query()
    assert progress(query) == []
    query.reports(batch=0, rows=7)
    query.reports(batch=1)
    assert batch_sizes(query) == batch_sizes(query) == [7]
    query.reports(batch=1)
    query.reports(batch=1, rows=5)
    assert batch_sizes(query) == [7, 5]
    assert numbers(query) == [1, 2, 3, 4]
    assert query.written == dict.fromkeys(range(1, 5), 1)


def test_what_spark_does_not_keep_any_more_stays_known() -> None:
    query: Any = Query()
    for batch in range(3):
        query.reports(batch)
        assert numbers(query) == list(range(1, batch + 2))
    for batch in range(3, 3 + KEPT):
        query.reports(batch)
    assert numbers(query) == list(range(1, 8))
    for batch in range(7, 8 + 2 * KEPT):
        query.reports(batch)
    assert numbers(query)[-KEPT:] == list(range(13, 17)), "and what came and went between two looks is not"
