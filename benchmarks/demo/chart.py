"""Small charts as inline SVG: lines, dots and bars over a shared time axis.

Drawn here because a page that must open anywhere, without a network, cannot load a library, and carrying
one along would be a thousand times the code. Colours come from the page's style by the class of a series.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from benchmarks.demo.timeline import Point

WIDTH, HEIGHT = 920, 230
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 24, 26
ROW_HEIGHT = 34
MOST_TICKS = 8


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` to pixels from `start` to `end`, linearly or by their logarithm."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value; values outside are drawn at the edge."""
        inside = min(max(value, self.low), self.high)
        place: Callable[[float], float] = math.log if self.is_log else float
        share = (place(inside) - place(self.low)) / (place(self.high) - place(self.low))
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Return round values to label: powers of ten, or steps of 1, 2 or 5 times one."""
        if self.is_log:
            exponents = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
            return [10.0**exponent for exponent in exponents]
        step = round_step((self.high - self.low) / MOST_TICKS)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)]


def round_step(least: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def seconds_scale(longest: float) -> Scale:
    """Return the time axis that all charts share."""
    return Scale(0, longest, LEFT, WIDTH - RIGHT)


def value_scale(values: Iterable[float], *, is_log: bool = False) -> Scale:
    """Return a vertical axis that holds all values."""
    seen = [value for value in values if value > 0 or not is_log] or [1.0]
    if not is_log:
        return Scale(0, max(seen) * 1.06 or 1, HEIGHT - BOTTOM, TOP)
    low, high = min(seen) / 1.3, max(seen) * 1.3
    return Scale(10 ** math.floor(math.log10(low)), high, HEIGHT - BOTTOM, TOP, is_log=True)


def short(number: float) -> str:
    """Write a number as an axis does: 300k, 1.5M, 0.1."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


@dataclass
class Chart:
    """A chart that is drawn piece by piece and then rendered."""

    title: str
    x: Scale
    y: Scale
    unit: str
    parts: list[str] = field(default_factory=list)

    def line(self, series: str, points: Sequence[Point]) -> None:
        """Draw a line through the points."""
        path = " ".join(f"{self.x.at(x)},{self.y.at(y)}" for x, y in points)
        self.parts.append(f'<polyline class="line {series}" points="{path}"/>')

    def dots(self, series: str, points: Sequence[Point], describe: Callable[[Point], str]) -> None:
        """Draw a dot at each point, which describes itself under the pointer."""
        for x, y in points:
            place = f'cx="{self.x.at(x)}" cy="{self.y.at(y)}" r="3.2"'
            self.parts.append(
                f'<circle class="dot {series}" {place}><title>{escape(describe((x, y)))}</title></circle>'
            )

    def mark(self, series: str, point: Point, text: str) -> None:
        """Mark a point with a ring and a text beside it."""
        x, y = self.x.at(point[0]), self.y.at(point[1])
        has_room = x < WIDTH * 0.75
        anchor, place = (
            ("start", f'x="{x + 10}" y="{y - 8}"') if has_room else ("end", f'x="{x}" y="{y - 36}"')
        )
        self.parts.append(f'<circle class="ring {series}" cx="{x}" cy="{y}" r="5"/>')
        self.parts.append(f'<text class="note {series}" {place} text-anchor="{anchor}">{escape(text)}</text>')

    def render(self) -> str:
        """Return the chart as an SVG element."""
        unit = f'<text class="unit" x="{LEFT}" y="{TOP - 11}">{escape(self.unit)}</text>'
        grid = "".join(self._grid_line(value) for value in self.y.ticks())
        return svg(self.title, HEIGHT, [grid, time_axis(self.x, HEIGHT), *self.parts, unit])

    def _grid_line(self, value: float) -> str:
        y = self.y.at(value)
        line = f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        return line + f'<text class="tick" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{short(value)}</text>'


@dataclass(frozen=True)
class Bar:
    """A stretch of time in a row of `bars`."""

    start: float
    end: float
    kind: str
    """Class of its style: `busy` stands out."""
    text: str
    """What is written on it, as far as there is room, and shown under the pointer."""


@dataclass(frozen=True)
class Row:
    """The bars of one series, and what is written at their end."""

    series: str
    bars: Sequence[Bar]
    note: str


def bars(title: str, x: Scale, rows: Sequence[Row]) -> str:
    """Return rows of bars as an SVG element."""
    height = TOP + ROW_HEIGHT * len(rows) + BOTTOM
    parts = [time_axis(x, height)]
    for number, row in enumerate(rows):
        top = TOP + number * ROW_HEIGHT
        parts += [bar_of(x, top, row.series, bar) for bar in row.bars]
        parts.append(note_of(x, top, row))
    return svg(title, height, parts)


def note_of(x: Scale, top: float, row: Row) -> str:
    """Return the text of a row, behind its last bar or, where there is no room, on it."""
    end = x.at(max(bar.end for bar in row.bars))
    has_room = end < WIDTH * 0.6
    anchor, place = ("start", end + 8) if has_room else ("end", end - 10)
    return f'<text class="aside" x="{place}" y="{top + 16}" text-anchor="{anchor}">{escape(row.note)}</text>'


def bar_of(x: Scale, top: float, series: str, bar: Bar) -> str:
    """Return one bar with its text, which is cut off where the bar ends."""
    left, right = x.at(bar.start), x.at(bar.end)
    width = round(max(right - left - 1, 1), 1)
    box = f'x="{left}" y="{top}" width="{width}" height="{ROW_HEIGHT - 10}" rx="4"'
    text = escape(bar.text)
    label = f'<text x="8" y="16">{text}</text>'
    inner = (
        f'<svg x="{left}" y="{top}" width="{width}" height="{ROW_HEIGHT - 10}" class="label">{label}</svg>'
    )
    return f'<g class="bar {series} {bar.kind}"><title>{text}</title><rect {box}/>{inner}</g>'


def time_axis(x: Scale, height: float) -> str:
    """Return the labels and lines of the time axis."""
    bottom = height - BOTTOM
    parts = [f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>']
    for value in x.ticks():
        place = x.at(value)
        parts.append(f'<line class="grid" x1="{place}" x2="{place}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(
            f'<text class="tick" x="{place}" y="{bottom + 17}" text-anchor="middle">{value:g} s</text>'
        )
    return "".join(parts)


def svg(title: str, height: float, parts: Iterable[str]) -> str:
    """Return an SVG element that scales with the page."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )
