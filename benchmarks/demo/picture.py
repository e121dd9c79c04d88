"""The picture of the README: results in sight and memory over time, of a run of the demo that was recorded.

`python -m benchmarks.demo --record` writes the points to `docs/images/demo.json`; `make generate` draws them, and
`make lint` compares. The picture is an SVG that needs nothing outside itself, as an image in a page must.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from benchmarks.demo import timeline
from benchmarks.demo.chart import HEIGHT, LEFT, WIDTH, Chart, Scale, seconds_scale, value_scale
from benchmarks.demo.decisions import samples
from benchmarks.demo.results import Findings, Result
from benchmarks.demo.timeline import Point

RECORDED: Final = Path("docs/images/demo.json")
PICTURE: Final = RECORDED.with_suffix(".svg")
STEP_SECONDS: Final = 0.25
"""Of points that are nearer to each other one is kept."""
TITLES: Final = {
    "in_sight": "rows of the result that a reader sees",
    "heap": "MiB of heap in use after each collection",
}
HEAD: Final = 76
STYLE: Final = """
svg { font-family: system-ui, sans-serif; } .paper { fill: #fff; } text { fill: #17202a; }
.grid { stroke: #e4e7ea; } .axis { stroke: #c9cfd5; } .tick, .unit { fill: #5b6774; font-size: 12px; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; } .ring { fill: none; stroke-width: 2; }
.name { font-size: 14px; font-weight: 600; } .note { font-size: 12.5px; font-weight: 600; }
.plain_uncapped { stroke: #6d5bd0; } .plain_small { stroke: #b91c1c; } .governed { stroke: #0f766e; }
text.plain_uncapped { fill: #6d5bd0; stroke: none; } text.plain_small { fill: #b91c1c; stroke: none; }
text.governed { fill: #0f766e; stroke: none; }
"""


def record(findings: Findings, about: Mapping[str, Any]) -> None:
    """Write the points of all runs, and what `headgate local` saw after its first batch.

    `about`: on what they were made, and when.
    """
    runs = {key: points(result) for key, result in findings.results.items()}
    behind = (
        sample
        for result in findings.results.values()
        if result.run.is_governed
        for sample in samples(result.run.log)
        if any(query.get("backlog") and query.get("batches") for query in sample["queries"].values())
    )
    recorded = {**about, "runs": runs, "sample": next(behind, None)}
    RECORDED.parent.mkdir(parents=True, exist_ok=True)
    RECORDED.write_text(json.dumps(recorded) + "\n", encoding="utf-8")


def points(result: Result) -> dict[str, Any]:
    """Return what is drawn of a run: seconds since its first batch, and values."""
    lines = {
        "in_sight": timeline.visible(result.appeared, result.started, result.ended),
        "heap": timeline.heap(result.collections, result.started),
    }
    caught_up = result.measures.catch_up_seconds
    return {
        "title": result.run.title,
        "failure": result.failure,
        "caught_up": None if caught_up is None else round(caught_up, 1),
        "in_sight": [(round(x, 2), y) for x, y in lines["in_sight"]],  # steps, which thinning would slope
        "heap": thinned(lines["heap"]),
    }


def thinned(line: Sequence[Point]) -> list[tuple[float, int]]:
    """Return a line with the last of each step alone, and both of its ends."""
    last_of_step = {int(x / STEP_SECONDS): (round(x, 2), round(y)) for x, y in line}
    ends = [(round(x, 2), round(y)) for x, y in (*line[:1], *line[-1:])]
    return sorted({*last_of_step.values(), *ends})


def draw(recorded: Mapping[str, Any]) -> str:
    """Return the picture of recorded runs."""
    runs: Mapping[str, Any] = recorded["runs"]
    x = seconds_scale(max(run[name][-1][0] for run in runs.values() for name in TITLES if run[name]))
    charts = [placed(chart(name, runs, x).render(), number) for number, name in enumerate(TITLES)]
    names = [
        f'<text class="name {key}" x="{LEFT}" y="{20 + number * 19}">{escape(told(run))}</text>'
        for number, (key, run) in enumerate(runs.items())
    ]
    height = HEAD + len(charts) * HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="One job on one backlog, by Spark\'s default and governed"><style>{STYLE}</style>'
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>{"".join([*names, *charts])}</svg>\n'
    )


def told(run: Mapping[str, Any]) -> str:
    """Say which run it is, and what came of it: a record may have been read long before its result is in sight."""
    if run["failure"]:
        return f"{run['title']}: {run['failure']}"
    first = next(seconds for seconds, rows in run["in_sight"] if rows)
    return f"{run['title']}: backlog read after {run['caught_up']:.0f} s, first results in sight after {first:.0f} s"


def chart(name: str, runs: Mapping[str, Any], x: Scale) -> Chart:
    """Return the chart of one measure of all runs."""
    y = value_scale(value for run in runs.values() for _, value in run[name])
    found = Chart(TITLES[name], x, y, TITLES[name])
    for key, run in runs.items():
        found.line(key, run[name])
        if run["failure"] and run[name]:
            found.parts.append(ring(key, x.at(run[name][-1][0]), y.at(run[name][-1][1])))
    return found


def ring(key: str, x: float, y: float) -> str:
    """Return a ring where a run has ended before its time."""
    return f'<circle class="ring {key}" cx="{x}" cy="{y}" r="5"/>'


def placed(chart_: str, number: int) -> str:
    """Return a chart in its place below the names."""
    return chart_.replace("<svg ", f'<svg y="{HEAD + number * HEIGHT}" width="{WIDTH}" height="{HEIGHT}" ', 1)
