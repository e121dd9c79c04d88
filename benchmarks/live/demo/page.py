"""The report as one HTML file: how fresh results were over time, and what that comes to."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from benchmarks.demo.chart import Chart, seconds_scale, value_scale
from benchmarks.demo.page import STYLE
from benchmarks.live.demo.runs import FRESH_SECONDS, RUNS, Outcome

SERIES = {"default": "plain_uncapped", "real_time": "plain_low_latency", "governed": "governed"}
"""Class of the style for each run."""
DRAWN_SECONDS = 0.1
LEAST_AGE = 0.02
"""What is younger is drawn so: the axis is logarithmic."""


def cells(outcomes: Mapping[str, Outcome]) -> list[tuple[str, ...]]:
    """Return the rows of the table: a label, then a value for each run."""
    found = outcomes.values()
    return [
        ("age of results before the outage, p50", *(seconds(each.live_age(50)) for each in found)),
        ("the same, p95", *(seconds(each.live_age(95)) for each in found)),
        (
            f"fresh again (no older than {FRESH_SECONDS:g} s) after",
            *(seconds(each.fresh_after) for each in found),
        ),
        ("records sent", *(f"{each.sent:,}" for each in found)),
        ("counted in the end", *(f"{each.counted:,}" for each in found)),
    ]


def seconds(value: float | None) -> str:
    """Return a time as a cell has it."""
    return "not within the run" if value is None else f"{value:.2f} s"


def render(outcomes: Mapping[str, Outcome], subtitle: str) -> str:
    """Return the page."""
    body = [
        "<h1>Live, an outage, live again: one job in three ways</h1>",
        f'<p class="soft">{escape(subtitle)}</p>',
        table(outcomes),
        '<div class="legend">',
        *(f'<span><i class="key {SERIES[key]}"></i>{escape(RUNS[key])}</span>' for key in outcomes),
        "</div>",
        "<h2>Age of the results over time</h2>",
        '<p class="soft">How long ago the latest record was due that is in the output; logarithmic. Where the driver '
        "stands still it grows by a second each second.</p>",
        plot(outcomes),
    ]
    head = f'<meta charset="utf-8"><title>Headgate: the live demo</title><style>{STYLE.read_text()}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def table(outcomes: Mapping[str, Outcome]) -> str:
    """Return the figures side by side."""
    head = "".join(f"<th>{escape(name)}</th>" for name in ["", *(RUNS[key] for key in outcomes)])
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells(outcomes)
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'


def plot(outcomes: Mapping[str, Outcome]) -> str:
    """Return the picture: the oldest that results were in each tenth of a second."""
    lines = {
        key: [(at, max(age, LEAST_AGE)) for at, age in worst(outcome)] for key, outcome in outcomes.items()
    }
    longest = max(outcome.ended for outcome in outcomes.values())
    ages = [age for line in lines.values() for _, age in line]
    chart = Chart("Age of results", seconds_scale(longest), value_scale(ages, is_log=True), "seconds old")
    for key, line in lines.items():
        chart.line(SERIES[key], line)
    for key, outcome in outcomes.items():
        if outcome.fresh_after is not None:
            at = outcome.outage[1] + outcome.fresh_after
            chart.mark(SERIES[key], (at, FRESH_SECONDS), f"fresh after {outcome.fresh_after:.1f} s")
    return chart.render()


def worst(outcome: Outcome) -> list[tuple[float, float]]:
    """Return the largest age of each step of the picture."""
    found: dict[int, float] = {}
    for at, age in outcome.sampled():
        step = int(at / DRAWN_SECONDS)
        found[step] = max(found.get(step, 0.0), age)
    return [(step * DRAWN_SECONDS, age) for step, age in found.items() if step >= 0]
