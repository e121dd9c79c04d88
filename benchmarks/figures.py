"""The figures in documents, written from the result files: `python -m benchmarks.figures`.

A number in a document is only as good as the run it comes from, so no person types one: this page does, from
the attempts in `benchmarks/results/` (`benchmarks.standing` says which), and `make lint` compares (`--check`). It
tells there, too, how many figures are stale, and refuses none for it; `--stale` lists them, and its exit code is 1
where there are any. The page of figures has those of `benchmarks.quoted`, and beside each that is taken against small
batches what plain Spark makes of the same without any cap; the README has the few that a user asks for first, and how
many of all miss their goal. What has no value yet is left out, what missed its goal says so. The page on
backlogs has all of theirs and of the alternatives. The plots beside their results are drawn anew, and so is the
picture of the demo; and so is that of one backlog beside what one would otherwise choose.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from benchmarks import bounds
from benchmarks.alternatives import picture as opponents
from benchmarks.backlog import plot
from benchmarks.catalogs import figures, read
from benchmarks.demo import picture
from benchmarks.local.results import REPORT
from benchmarks.local.statistics import median
from benchmarks.provenance import UNKNOWN
from benchmarks.quoted import FIRST, LINES, Line, Variant
from benchmarks.result_file import Attempt, Attempts, ResultFileError
from benchmarks.staleness import stale, summary
from benchmarks.standing import DAYS, ENOUGH, MISSED, OPEN, shown

README: Final = Path("README.md")
FIGURES: Final = Path("docs/figures.md")
BACKLOGS: Final = Path("docs/backlog-speed.md")
RESULTS: Final = Path("benchmarks/results")
PLOTS: Final = {"alternatives": plot.ALTERNATIVES, "backlog": plot.BACKLOG}
"""Result files that a page is drawn from, by their names: its title."""
BEGIN: Final = "<!-- figures: written by `make generate` from benchmarks/results -->"
END: Final = "<!-- end of figures -->"


Rows = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""What is shown of each figure by its id, by the file that it is in."""


def table(results: Rows, lines: Sequence[Line] = LINES, *, names_commits: bool = True) -> Iterator[str]:
    """Yield the lines of the table, and where its figures come from."""
    yield "| | measured | all runs | days | plain Spark's default | goal |"
    yield "|---|---|---|---|---|---|"
    quoted = []
    for line in lines:
        row = results.get(line.file, {}).get(line.id)
        if row is not None and row["value"] is not None:
            quoted.append(row)
            of_days = (line.form.format(row["value"]), spread(line, row), str(row["days"]))
            cells = (line.says, *of_days, default(line, results))
            yield f"| {' | '.join(cells)} | {goal(row)} |"
    if quoted:
        yield ""
        yield (
            f"The median of the latest {DAYS} days on which a figure was measured, or of the fewer that there are, "
            "with the lowest and the highest run of them. A goal is open where it holds for the median, but not at "
            "both ends of the interval of each day's median, or where the runs of all these days are fewer than "
            f"{ENOUGH}. What was counted needs one run."
        )
        if names_commits:
            yield measured_on(quoted)
        else:
            yield f"Measured {days_of(quoted)}; on which processor and at which commit is in [{FIGURES}]({FIGURES})."


def first(results: Rows) -> Iterator[str]:
    """Yield the table of the README, and how many of all quoted figures do not hold their goal."""
    yield from table(results, [line for line in LINES if line.id in FIRST], names_commits=False)
    rows = [results.get(line.file, {}).get(line.id) for line in LINES]
    goals = [
        goal(row) for row in rows if row is not None and row["value"] is not None and row["goal"] != REPORT
    ]
    missed, is_open = (sum(word in each for each in goals) for word in ("missed", ", open"))
    yield ""
    yield f"Of {len(goals)} goals in [docs/figures.md]({FIGURES}) {missed} are missed and {is_open} open."


def demo(made: Sequence[Attempt]) -> Iterator[str]:
    """Yield how long `make demo` took, each time since its goal is what it is, beside how much wanted to run then.

    Seconds of a machine say nothing without that, and an older goal was of another demo.
    """
    taken = [one for one in made if one["value"] is not None and one["goal"] == made[-1]["goal"]]
    told = "; ".join(
        f"{one['value']:,.0f} s on {one['machine']['cores']} cores at a load of {one['load_average']:.1f}"
        f" ({one['date']})"
        for one in taken
    )
    if told:
        yield ""
        yield f"`make demo` in a fresh clone, with all set-up: {told}; goal {taken[-1]['goal']} s."


def spread(line: Line, row: Mapping[str, Any]) -> str:
    """Return the lowest and the highest run of all days, or that there was one."""
    if row["count"] == 1:
        return "one"
    low, high = (line.form.format(row[edge]) for edge in ("lowest", "highest"))
    return f"{low} to {high}"


def default(line: Line, results: Rows) -> str:
    """Return what plain Spark without a cap makes against the same small batches; a dash where nothing is.

    It is the median over rounds in which both ran. Raises ValueError where they never did: such a line may not be
    shown without.
    """
    if line.capped is None or line.default is None:
        return "-"
    capped, uncapped = (seconds(results[line.file], variant) for variant in (line.capped, line.default))
    paired = [slow / fast for slow, fast in zip(capped, uncapped, strict=False)]
    if not paired:
        raise ValueError(f"{line.id}: no times of plain Spark without a cap beside it")
    return f"{line.form.format(median(paired))}{'' if len(paired) > 1 else ' (one run)'}"


def seconds(rows: Mapping[str, Mapping[str, Any]], variant: Variant) -> list[float]:
    """Return the seconds of each round of a variant."""
    details = rows[variant.id]["details"] if variant.id in rows else {}
    found: Mapping[str, list[float]] = details.get("seconds") or details.get("catch_up_seconds") or {}
    return found.get(variant.name, [])


def days_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return from when to when these figures were measured."""
    dates = sorted({row["date"] for row in rows})
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


def measured_on(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence: from when to when, on what and at which commits these figures were measured."""
    processors = sorted({f"{row['machine']['processor']}" for row in rows})
    commits = sorted({row["commit"] for row in rows} - {UNKNOWN})
    old = sum(row["commit"] == UNKNOWN for row in rows)
    said = [f"commits: {', '.join(commits)}"] if commits else []
    if old:
        of = "all" if old == len(rows) else f"{old} of {len(rows)}"
        said.append(f"{of} are from before rows named their commit, and name the one that recorded them")
    return (
        f"Measured {days_of(rows)}; processors: {', '.join(processors)}; {'; '.join(said)}. "
        "Which row was measured where is in its file."
    )


def goal(row: Mapping[str, Any]) -> str:
    """Return the goal of a row and whether it was missed, or is open; "-" where it is only reported."""
    if row["goal"] == REPORT:
        return "-"
    if row["verdict"] == MISSED:
        return f"{row['goal']}, **missed**{while_busy(row)}"
    return f"{row['goal']}, open" if row["verdict"] == OPEN else row["goal"]


def while_busy(row: Mapping[str, Any]) -> str:
    """Return that somebody else was at work, where more than twice as much wanted to run as there are cores."""
    load, cores = row.get("load_average"), row.get("machine", {}).get("cores")
    if not isinstance(load, float) or not isinstance(cores, int) or load <= 2 * cores:
        return ""
    return f" (while {load:.0f} processes wanted to run on {cores} cores)"


def backlogs(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of two tables: all figures of backlogs, and the times of variants."""
    if not rows:
        yield "Nothing has been measured yet."
        return
    yield f"| {' | '.join(plot.TITLES)} |"
    yield f"|{'---|' * len(plot.TITLES)}"
    for row in rows:
        name, *others = plot.cells(row)
        yield f"| `{name}` | {' | '.join(others)} |"
    yield ""
    yield "| workload | records | median seconds of each variant (batches or checkpoints), slowest first |"
    yield "|---|---|---|"
    for row in plot.by_workload(rows).values():
        workload = row["details"]
        taken = ", ".join(
            f"{name} {seconds:.1f} ({batches:.0f})" for name, seconds, batches in plot.medians(workload)
        )
        yield f"| {workload['workload']} | {workload['records']:,} | {taken} |"


def read_all() -> dict[str, Attempts]:
    """Return what each result file has, by its name. Raises ResultFileError where one is not of their form."""
    return {file.stem: read(file) for file in sorted(RESULTS.glob("*.json"))}


def by_id(results: Mapping[str, Attempts]) -> Rows:
    """Return what is shown of each figure of each result file by its id."""
    return {name: {row["id"]: row for row in shown(found)} for name, found in results.items()}


def still_measured(rows: Rows) -> dict[str, Mapping[str, Any]]:
    """Return the figures of the page on backlogs and of the demo, but for those that nothing measures any more."""
    return {
        name: row
        for file in (*PLOTS, "local")
        for name, row in rows.get(file, {}).items()
        if name in figures(file) and (file in PLOTS or name.startswith("demo_"))
    }


def with_figures(page: str, lines: Iterator[str]) -> str:
    """Return the page with the table in its place. Raises `ValueError` where it has no place for one."""
    if BEGIN not in page or END not in page:
        raise ValueError(f"the page has no place for figures: put the lines {BEGIN!r} and {END!r} there")
    head, rest = page.split(BEGIN, 1)
    return head + "\n".join([BEGIN, *lines, END]) + rest.split(END, 1)[1]


def generated(results: Mapping[str, Attempts]) -> dict[Path, str]:
    """Return what each file that has figures is to say."""
    of = {name: shown(results.get(name, {})) for name in PLOTS}
    everything = [row for name in PLOTS for row in of[name]]
    rows = by_id(results)
    of_the_demo = demo(results.get("local", {}).get("demo_seconds", ()))
    is_drawn = opponents.is_measured(alternatives := results.get("alternatives", {}))
    of_opponents = opponents.caption(alternatives) if is_drawn else iter(())
    tables = {
        README: chain(first(rows), of_the_demo, of_opponents),
        FIGURES: table(rows),
        BACKLOGS: chain(bounds.lines(still_measured(rows)), [""], backlogs(everything)),
    }
    pages = {file: with_figures(file.read_text(encoding="utf-8"), lines) for file, lines in tables.items()}
    if picture.RECORDED.exists():
        pages[picture.PICTURE] = picture.draw(json.loads(picture.RECORDED.read_text(encoding="utf-8")))
    if is_drawn:
        pages[opponents.PICTURE] = opponents.draw(alternatives)
    drawn = {
        RESULTS / f"{name}.html": plot.render(of[name], title) for name, title in PLOTS.items() if of[name]
    }
    return pages | drawn


def main() -> int:
    """Write what is generated; with `--check` only compare: exit code 1 if a file says something else."""
    parser = argparse.ArgumentParser(description="Write the figures in documents, and the plot of backlogs.")
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--stale", action="store_true", help="list figures whose subject has changed since")
    options = parser.parse_args()
    code = 0
    try:
        results = read_all()
    except ResultFileError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    if options.stale:
        return tell_stale(results)
    for file, text in generated(results).items():
        if not options.check:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            print(f"{file}: figures are not those of {RESULTS}; run `make generate`", file=sys.stderr)
            code = 1
    if options.check:
        lines = list(summary(stale(results), results))
        print(
            *lines,
            *["`python -m benchmarks.figures --stale` lists them"] * bool(lines),
            sep="\n",
            file=sys.stderr,
        )
    return code


def tell_stale(results: Mapping[str, Attempts]) -> int:
    """List the figures that are stale with the number of later commits, the oldest first; returns the exit code."""
    found = stale(results)
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
