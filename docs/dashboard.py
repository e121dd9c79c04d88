"""The dashboard of applications as a picture: its own panels, over the answers that `benchmarks.live.dashboard` kept.

Grafana draws finer; what is drawn here is what its panels get to draw, at their places. `make generate` draws it and
`make lint` compares.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from benchmarks.demo.chart import Scale, short
from charts.generate.dashboards.drivers import BEHIND, IN_FORCE
from charts.generate.dashboards.panels import WIDTH, Row, placed

RECORDED: Final = Path("docs/images/dashboard.json")
STEP: Final = 10
"""Seconds between two points of a line that has no gap."""
ROWS: Final = (BEHIND, IN_FORCE)
"""What one looks at first."""
COLUMN, LINE = 40, 27
"""Pixels of one unit of a panel's place, across and down."""
EDGE: Final = 4
INSIDE: Final = {"left": 58, "right": 12, "top": 36, "bottom": 24}
LEGEND: Final = 15
MINUTE: Final = 60
PALETTE: Final = ("#0f766e", "#d97706", "#6d5bd0", "#b91c1c")
"""Of the lines of a panel; what is beyond them is not drawn."""
COLOURS: Final = {"green": "#2f9e6e", "orange": "#e8963a"}
UNITS: Final = {"s": " s", "cps": "/s"}
STYLE: Final = """
svg { font-family: system-ui, sans-serif; } text { fill: #17202a; font-size: 12px; }
.paper { fill: #f4f5f7; } .panel { fill: #fff; stroke: #dfe3e8; } .title { font-size: 13px; font-weight: 600; }
.row { font-size: 15px; font-weight: 600; } .grid { stroke: #e8ebee; } .tick { fill: #5b6774; font-size: 11px; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .stat { font-size: 40px; font-weight: 600; }
.band { fill: #fff; font-size: 11px; }
"""
Points = Sequence[tuple[float, float]]


def draw(recorded: Mapping[str, Any]) -> str:
    """Return the picture: the panels that found something, placed as the dashboard places them."""
    lines = recorded["panels"]
    rows = [Row(row.title, [panel for panel in row.panels if lines[panel.title]]) for row in ROWS]
    panels = list(placed([row for row in rows if row.panels]))
    width = WIDTH * COLUMN
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * LINE
    parts = (drawn(panel, lines.get(panel["title"], ()), float(recorded["seconds"])) for panel in panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="The dashboard of applications through an outage">'
        f'<style>{STYLE}</style><rect class="paper" width="{width}" height="{height}"/>{"".join(parts)}</svg>\n'
    )


def drawn(panel: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], end: float) -> str:
    """Return one panel, or the heading of a row, at its place."""
    x, y, w, h = (panel["gridPos"][name] for name in "xywh")
    x, y, title = x * COLUMN, y * LINE, escape(panel["title"])
    if panel["type"] == "row":
        return f'<text class="row" x="{EDGE * 2}" y="{y + 20}">{title}</text>'
    width, height = w * COLUMN - EDGE, h * LINE - EDGE
    inside = {"stat": stat, "state-timeline": bands, "timeseries": series}[panel["type"]]
    parts = inside(panel["fieldConfig"]["defaults"], lines, end, width, height)
    return (
        f'<g transform="translate({x + EDGE / 2:g} {y + EDGE / 2:g})"><rect class="panel" width="{width}" '
        f'height="{height}" rx="3"/><text class="title" x="10" y="19">{title}</text>{"".join(parts)}</g>'
    )


def stat(
    defaults: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], end: float, width: float, height: float
) -> Iterator[str]:
    """Yield the last value."""
    del end
    value = f"{lines[0]['points'][-1][1]:.3g}{UNITS.get(defaults['unit'], '')}"
    yield f'<text class="stat" x="{width / 2:g}" y="{height / 2 + 22:g}" text-anchor="middle">{value}</text>'


def bands(
    defaults: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], end: float, width: float, height: float
) -> Iterator[str]:
    """Yield a band for each stretch of time in which a line has one value."""
    x = Scale(0, end, 150, width - INSIDE["right"])
    states = defaults["mappings"][0]["options"]
    tall = (height - INSIDE["top"] - INSIDE["bottom"]) / len(lines)
    for number, line in enumerate(lines):
        y = INSIDE["top"] + number * tall
        yield f'<text class="tick" x="10" y="{y + tall / 2 + 4:g}">{escape(line["legend"])}</text>'
        for begin, until, value in stretches(line["points"]):
            state = states[f"{value:g}"]
            left, right = x.at(begin), x.at(until)
            yield (
                f'<rect x="{left}" y="{y + 2:g}" width="{max(right - left, 1):g}" height="{tall - 4:g}" '
                f'fill="{COLOURS[state["color"]]}"/><text class="band" x="{left + 6:g}" '
                f'y="{y + tall / 2 + 4:g}">{state["text"] if right - left > 60 else ""}</text>'
            )
    yield from time_axis(x, height)


def series(
    defaults: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], end: float, width: float, height: float
) -> Iterator[str]:
    """Yield a line for each series, and what each is called."""
    shown = lines[: len(PALETTE)]
    x = Scale(0, end, INSIDE["left"], width - INSIDE["right"])
    bottom = height - INSIDE["bottom"] - LEGEND * ((len(shown) + 1) // 2)
    highest = max((value for line in lines for _, value in line["points"]), default=1.0)
    y = Scale(0, highest * 1.1 or 1, bottom, INSIDE["top"])
    for tick in y.ticks()[::2]:
        at = y.at(tick)
        text = short(tick) + UNITS.get(defaults["unit"], "")
        yield f'<line class="grid" x1="{x.start:g}" x2="{x.end:g}" y1="{at}" y2="{at}"/>'
        yield f'<text class="tick" x="{x.start - 6:g}" y="{at + 4:g}" text-anchor="end">{text}</text>'
    yield from time_axis(x, bottom + INSIDE["bottom"])
    for number, line in enumerate(shown):
        colour = PALETTE[number]
        for piece in pieces(line["points"]):
            path = " ".join(f"{x.at(at)},{y.at(value)}" for at, value in piece)
            yield f'<polyline class="line" stroke="{colour}" points="{path}"/>'
        left, top = 12 + (number % 2) * (width / 2), bottom + INSIDE["bottom"] + LEGEND * (number // 2) + 9
        yield f'<rect x="{left:g}" y="{top - 5:g}" width="12" height="3" fill="{colour}"/>'
        yield f'<text class="tick" x="{left + 18:g}" y="{top:g}">{escape(line["legend"])}</text>'


def time_axis(x: Scale, bottom: float) -> Iterator[str]:
    """Yield the minutes below a panel."""
    for minute in range(0, int(x.high / MINUTE) + 1, 3):
        at = x.at(minute * MINUTE)
        yield f'<text class="tick" x="{at}" y="{bottom - 8:g}" text-anchor="middle">{minute} min</text>'


def pieces(points: Points) -> Iterator[list[tuple[float, float]]]:
    """Yield the stretches of a line that have no gap."""
    piece: list[tuple[float, float]] = []
    for at, value in points:
        if piece and at - piece[-1][0] > STEP * 1.5:
            yield piece
            piece = []
        piece.append((at, value))
    if piece:
        yield piece


def stretches(points: Points) -> Iterator[tuple[float, float, float]]:
    """Yield begin, end and value of each stretch in which a line has one value."""
    for piece in pieces(points):
        for value, same in groupby(piece, key=lambda point: point[1]):
            times = [at for at, _ in same]
            yield times[0], min(times[-1] + STEP, piece[-1][0]), value
