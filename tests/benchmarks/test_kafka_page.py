"""The page of the demo on Kafka: its table, its charts, and that it needs nothing but itself."""

from __future__ import annotations

import re

from benchmarks.kafka.demo.page import cells, render
from benchmarks.kafka.demo.runs import Batch, Outcome

PLAIN = Outcome(
    (
        Batch(at=1.0, earliest=0.0, latest=2700.0, state_rows=12_000, dropped=0, records=9_000),
        Batch(at=2.5, earliest=60.0, latest=3600.0, state_rows=9_000, dropped=1_500, records=8_000),
    )
)
ALIGNED = Outcome((Batch(at=3.0, earliest=0.0, latest=15.0, state_rows=700, dropped=0, records=17_000),))
BOTH = {"plain": PLAIN, "aligned": ALIGNED}


def test_the_table_has_a_figure_of_each_run() -> None:
    assert cells(BOTH) == [
        ("records too late, dropped", "1,500", "0"),
        ("event time going back", "2,640 s", "0 s"),
        ("peak state, rows", "12,000", "700"),
        ("batches", "2", "1"),
        ("time to the end", "2.5 s", "3.0 s"),
    ]


def test_the_page_shows_event_time_state_and_what_was_dropped() -> None:
    page = render(BOTH, "two topics <of 400k>")
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        "Event time read, earliest and latest of each batch",
        "Rows in the join&#x27;s state",
        "Records dropped as too late, by batch",
    ]
    charts = re.findall(r"<svg.*?</svg>", page)
    assert [chart.count("<polyline") for chart in charts] == [4, 2, 2], "two lines of each run, then one"
    assert "two topics &lt;of 400k&gt;" in page


def test_the_page_needs_nothing_but_itself() -> None:
    for outcomes in (BOTH, dict.fromkeys(BOTH, ALIGNED)):  # the other: nothing was dropped by either
        assert not re.search(r"https?:|//[a-z]|@import|url\(|<link|<script|src=", render(outcomes, "x"))
