"""The report as one HTML file: what was dropped, how much state was held, and how event time went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from benchmarks.demo.chart import Chart, seconds_scale, value_scale
from benchmarks.demo.page import STYLE
from benchmarks.kafka.demo.runs import Batch, Outcome

SERIES = {"plain": "plain_low_latency", "aligned": "governed"}
"""Class of the style for each run."""


def cells(outcomes: Mapping[str, Outcome]) -> list[tuple[str, ...]]:
    """Return the rows of the table: a label, then a value for each run."""
    found = outcomes.values()
    return [
        ("records too late, dropped", *(f"{each.dropped:,}" for each in found)),
        ("event time going back", *(f"{each.went_back_seconds:,.0f} s" for each in found)),
        ("peak state, rows", *(f"{each.peak_state_rows:,}" for each in found)),
        ("batches", *(f"{len(each.batches):,}" for each in found)),
        ("time to the end", *(f"{each.seconds:.1f} s" for each in found)),
    ]


def render(outcomes: Mapping[str, Outcome], subtitle: str) -> str:
    """Return the page."""
    body = [
        "<h1>One join of two topics: plain and aligned</h1>",
        f'<p class="soft">{escape(subtitle)}</p>',
        table(outcomes),
        legend(),
        plot(outcomes, "Event time read, earliest and latest of each batch", "minutes", span),
        plot(outcomes, "Rows in the join's state", "rows", lambda batch: [float(batch.state_rows)]),
        plot(
            outcomes, "Records dropped as too late, by batch", "records", lambda batch: [float(batch.dropped)]
        ),
    ]
    head = f'<meta charset="utf-8"><title>Headgate: the Kafka demo</title><style>{STYLE.read_text()}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def span(batch: Batch) -> list[float]:
    """Return the event times of a batch, in minutes."""
    return [batch.earliest / 60, batch.latest / 60]


def table(outcomes: Mapping[str, Outcome]) -> str:
    """Return the figures side by side."""
    head = "".join(f"<th>{escape(name)}</th>" for name in ["", *outcomes])
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells(outcomes)
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'


def legend() -> str:
    """Say which colour is which run."""
    keys = "".join(f'<span><i class="key {style}"></i>{name}</span>' for name, style in SERIES.items())
    return f'<div class="legend">{keys}</div>'


def plot(
    outcomes: Mapping[str, Outcome], title: str, unit: str, values: Callable[[Batch], Sequence[float]]
) -> str:
    """Return a chart of what `values` says of each batch, over the time of the run."""
    batches = [batch for outcome in outcomes.values() for batch in outcome.batches]
    x = seconds_scale(max(batch.at for batch in batches))
    chart = Chart(title, x, value_scale([value for batch in batches for value in values(batch)]), unit)
    for name, outcome in outcomes.items():
        for line in zip(*(values(batch) for batch in outcome.batches), strict=True):
            chart.line(SERIES[name], [(b.at, v) for b, v in zip(outcome.batches, line, strict=True)])
    return f"<h2>{escape(title)}</h2>{chart.render()}"
