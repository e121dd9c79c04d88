"""The report as one HTML file: what was run, what it came to in words and figures, and the plots over time.

It refers to nothing outside itself, follows the reader's light or dark theme, and has no script.
"""

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from benchmarks.demo import timeline
from benchmarks.demo.chart import Bar, Chart, Row, Scale, bars, seconds_scale, value_scale
from benchmarks.demo.decisions import Decision
from benchmarks.demo.measures import DEFINITIONS
from benchmarks.demo.results import Findings, Result
from benchmarks.demo.table import ROWS, WHEN, cells, formatted, seconds, verdict_on_runs
from benchmarks.demo.timeline import Point
from benchmarks.event_log import Batch

STYLE = Path(__file__).with_name("page.css")


def render(findings: Findings, subtitle: str) -> str:
    """Return the page."""
    results = list(findings.results.values())
    body = [
        "<h1>A backlog, then live: Spark's default beside the same job governed</h1>",
        f'<p class="soft">{escape(subtitle)}</p>',
        tiles(findings),
        "<ul>",
        *(f"<li>{escape(sentence)}</li>" for sentence in verdict_on_runs(findings)),
        "</ul>",
        f"<p><b>When, and when not.</b> {escape(WHEN)}</p>",
        table(findings),
        legend(results),
        *plots(results),
        definitions(results, findings),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Headgate: the demo</title><style>{STYLE.read_text()}</style>"
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def tiles(findings: Findings) -> str:
    """Return the figures that matter: the same heap, results on the way, live, and whether all is right."""
    governed, plain = findings.measures("governed"), findings.measures("plain_uncapped")
    small, roomy = findings.results["plain_small"], findings.results["plain_uncapped"]
    equal = "equal" if findings.outputs_equal else "different"
    return (
        '<div class="tiles">'
        + tile(
            seconds(governed.catch_up_seconds),
            f"through the backlog, governed. {small.run.title}: {formatted(small, 'catch_up_seconds')}. "
            f"{roomy.run.title}: {seconds(plain.catch_up_seconds)}",
        )
        + tile(
            seconds(governed.longest_silence_seconds),
            f"longest wait for new results, governed. {roomy.run.title}: {seconds(plain.longest_silence_seconds)}",
        )
        + tile(
            formatted(findings.results["governed"], "staleness_p95_seconds"),
            f"age of results once live (p95), governed. Plain: {formatted(roomy, 'staleness_p95_seconds')}",
        )
        + tile(equal, "what the runs wrote, row by row", is_bad=not findings.outputs_equal)
        + "</div>"
    )


def tile(figure: str, text: str, *, is_bad: bool = False) -> str:
    """Return one figure with what it says."""
    return f'<div class="tile{" bad" if is_bad else ""}"><b>{escape(figure)}</b>{escape(text)}</div>'


def table(findings: Findings) -> str:
    """Return all measures of all runs."""
    keys = list(findings.results)
    titles = "".join(f"<th>{key_of(result)}</th>" for result in findings.results.values())
    rows = "".join(
        f"<tr><td>{escape(label)}</td>"
        + "".join(f'<td class="{key}">{value}</td>' for key, value in zip(keys, values, strict=True))
        + "</tr>"
        for label, *values in cells(findings)
    )
    return f'<div class="scroll"><table><thead><tr><th></th>{titles}</tr></thead><tbody>{rows}</tbody></table></div>'


def key_of(result: Result) -> str:
    """Return the title of a run with its colour."""
    return f'<span class="key {result.run.key}"></span>{escape(result.run.title)}'


def legend(results: Sequence[Result]) -> str:
    """Return which colour is which run; it holds for all plots."""
    return f'<div class="legend">{"".join(f"<span>{key_of(result)}</span>" for result in results)}</div>'


def plots(results: Sequence[Result]) -> list[str]:
    """Return the plots, each with a heading and a sentence that says how to read it."""
    x = seconds_scale(max(offset(result, end_of(result)) for result in results))
    return [
        heading(
            "Results",
            "Rows that a reader of the results sees; where a line is flat, that reader waits. Time counts from a "
            "run's first batch.",
        ),
        result_plot(results, x),
        heading("Lag", "Records that have arrived and are not processed yet."),
        lag_plot(results, x),
        heading(
            "Memory",
            "What was in use of the heap after each collection of garbage.",
        ),
        heap_plot(results, x),
        heading("Batch size", "Records of each micro-batch, at its commit, on a logarithmic scale."),
        batch_plot(results, x),
        heading(
            "Time between commits",
            "From one commit to the next; of the first batch since its start. Logarithmic scale.",
        ),
        interval_plot(results, x),
        heading(
            "Verdict",
            "What the governor takes the query to be in. A plain run has none: its settings never change.",
        ),
        verdict_plot(results, x),
    ]


def result_plot(results: Sequence[Result], x: Scale) -> str:
    """Return the rows in sight over time, with the moment at which the first ones came."""
    lines = {
        result.run.key: timeline.visible(result.appeared, result.started, end_of(result))
        for result in results
    }
    y = value_scale(count for points in lines.values() for _, count in points)
    chart = Chart("Rows of the result in sight over time", x, y, "rows in sight")
    for result in results:
        chart.line(result.run.key, lines[result.run.key])
    return chart.render()


def heap_plot(results: Sequence[Result], x: Scale) -> str:
    """Return the heap in use after each collection."""
    lines = {result.run.key: timeline.heap(result.collections, result.started) for result in results}
    y = value_scale(mib for points in lines.values() for _, mib in points)
    chart = Chart("Heap in use after each collection", x, y, "MiB")
    for result in results:
        chart.line(result.run.key, lines[result.run.key])
    for result in results:
        if result.failure is not None and lines[result.run.key]:
            chart.mark(result.run.key, lines[result.run.key][-1], result.failure)
    return chart.render()


def heading(title: str, text: str) -> str:
    """Return the heading of a plot."""
    return f'<h2>{escape(title)}</h2><p class="soft">{escape(text)}</p>'


def lag_plot(results: Sequence[Result], x: Scale) -> str:
    """Return pending records over time, with the moment at which each run had caught up."""
    lines = {result.run.key: timeline.pending(result.batches, result.arrivals) for result in results}
    y = value_scale(count for points in lines.values() for _, count in points)
    chart = Chart("Pending records over time", x, y, "records pending")
    for result in results:
        chart.line(result.run.key, lines[result.run.key])
    for result in results:
        moment = result.measures.catch_up_seconds
        if moment is not None:
            chart.mark(result.run.key, (moment, 0), f"caught up after {moment:.1f} s")
    return chart.render()


def batch_plot(results: Sequence[Result], x: Scale) -> str:
    """Return the size of each batch."""
    return dot_plot(results, x, "Records of each batch", "records in a batch", timeline.batch_sizes).render()


def interval_plot(results: Sequence[Result], x: Scale) -> str:
    """Return the time between commits."""
    return dot_plot(
        results, x, "Time between commits", "seconds between commits", timeline.commit_gaps
    ).render()


def dot_plot(
    results: Sequence[Result],
    x: Scale,
    title: str,
    unit: str,
    points_of: Callable[[Sequence[Batch]], list[Point]],
) -> Chart:
    """Return a chart with a dot for each batch of each run."""
    points = {result.run.key: points_of(result.batches) for result in results}
    y = value_scale((value for each in points.values() for _, value in each), is_log=True)
    chart = Chart(title, x, y, unit)
    for result in results:
        describe = described_by(result.run.title, unit)
        chart.dots(result.run.key, points[result.run.key], describe)
    return chart


def described_by(title: str, unit: str) -> Callable[[Point], str]:
    """Return what tells of a point: the run, the time, the value."""
    return lambda point: f"{title}, at {point[0]:.1f} s: {point[1]:,.4g} {unit}"


def verdict_plot(results: Sequence[Result], x: Scale) -> str:
    """Return a row of bars for each run: what held from when to when."""
    rows = [Row(result.run.key, verdict_bars(result), settings_of(result)) for result in results]
    return bars("Verdict over time", x, rows)


def verdict_bars(result: Result) -> list[Bar]:
    """Return the stretches of time of one run that had one verdict."""
    end = offset(result, end_of(result))
    changes = [next(same) for _, same in groupby(result.decisions, key=lambda one: one.backlog)]
    starts = [max(0.0, offset(result, one.since)) for one in changes]
    spans = zip(starts, [*starts[1:], end], changes, strict=True)
    return [Bar(start, stop, kind_of(one), text_of(one)) for start, stop, one in spans if stop > start]


def kind_of(decision: Decision) -> str:
    """Return the style of a stretch: a backlog stands out."""
    return "busy" if decision.backlog else "calm"


def text_of(decision: Decision) -> str:
    """Say what the governor took the query to be in, and why."""
    if decision.backlog is None:
        return "no verdict"
    return f"in backlog: {decision.reason}" if decision.backlog else "live"


def settings_of(result: Result) -> str:
    """Say by what interval the query committed, one after the other."""
    intervals = [seconds for seconds, _ in groupby(one.interval_seconds for one in result.decisions)]
    return "commits " + ", then ".join(
        f"every {seconds:g} s" if seconds else "at once" for seconds in intervals
    )


def offset(result: Result, moment: float) -> float:
    """Return seconds since the start of the first batch of a run."""
    return moment - result.started


def end_of(result: Result) -> float:
    """Return when a run had nothing more to do, in seconds since 1970: at its last commit, unless it died later."""
    if result.failure is not None or not result.batches:
        return result.ended
    return result.batches[-1].committed


def definitions(results: Sequence[Result], findings: Findings) -> str:
    """Return what each measure means, and what was run with what."""
    meanings = [(ROWS[name], escape(text)) for name, text in DEFINITIONS.items()]
    commands = [(result.run.title, f"<code>{escape(result.run.command_line)}</code>") for result in results]
    versions = ", ".join(f"{name} {number}" for name, number in findings.report()["versions"].items())
    return (
        heading(
            "What the figures mean",
            "Measured from Spark's own event log, in the same way for all runs; heaps are from the log of the JVM.",
        )
        + described(meanings)
        + heading(
            "What was run", f"Spark properties are the same for all, but for the larger heap. {versions}."
        )
        + described(commands)
    )


def described(pairs: Sequence[tuple[str, str]]) -> str:
    """Return a list of terms with their descriptions; descriptions are HTML."""
    return "<dl>" + "".join(f"<dt>{escape(term)}</dt><dd>{text}</dd>" for term, text in pairs) + "</dl>"
