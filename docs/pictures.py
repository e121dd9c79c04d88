"""Pictures of the terminal, by the commands' own views, and of a dashboard: `python -m docs.pictures [--check]`.

What they show is recorded: the states of an application that `tests/gitops` holds to the loop, a moment of the demo,
and an outage (`benchmarks.live.dashboard`). `make generate` draws them, `make lint` compares.
"""

import io
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import yaml
from docs import dashboard
from rich.console import Console, Group, RenderableType

from benchmarks.demo.picture import RECORDED
from headgate.api.status import ConditionStatus, QueryStatus, SourceStatus, SparkApplicationStatus, Votes
from headgate.cli.cluster.application import ClusterApplication, worst_first
from headgate.cli.generated import write
from headgate.cli.view import Moment
from headgate.cli.view.application import describe
from headgate.cli.view.overview import overview
from headgate.cli.view.terminal import draw
from headgate.decision.driver import History, State, Step, StepReason, Wait
from headgate.decision.observation import Observation
from headgate.reconcile.readings import QueryMetrics
from headgate.reconcile.times import eta_text, measured, moment, seconds

IMAGES: Final = Path("docs/images")
STATES: Final = Path("tests/gitops/states")
SHOWN: Final = ("in-backlog", "running", "backing-off", "batch-too-large", "starting", "suspended")
NOW: Final = datetime.fromisoformat("2023-11-14T22:14:25+00:00").timestamp()
"""A minute after the recorded states."""
ANSWERS: Final = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}
FORMAT: Final = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">
{matrix}</g></g></svg>
"""
"""Rich's own fetches a font from elsewhere."""


def recorded(name: str) -> ClusterApplication:
    """Return a recorded state, as an application that is called by it."""
    manifest = yaml.safe_load((STATES / f"{name}.yaml").read_text(encoding="utf-8"))
    metadata = {"creationTimestamp": "2023-11-14T21:13:20Z", **manifest["metadata"], "name": name}
    return ClusterApplication({**manifest, "metadata": metadata})


def drawn(title: str, width: int, *parts: RenderableType) -> str:
    """Return what a terminal of this width shows, as SVG."""
    console = Console(
        file=io.StringIO(), width=width, record=True, force_terminal=True, color_system="truecolor"
    )
    console.print(Group(*parts))
    text = console.export_svg(title=title, code_format=FORMAT, unique_id=f"terminal-{width}")
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def moment_of(sample: dict[str, Any]) -> Moment:
    """Return a moment that shows what a line of `headgate local --json` says of a query in backlog."""
    at, status = sample["t"], []
    reported: dict[str, QueryMetrics] = {}
    observed: dict[str, Observation] = {}
    for name, query in sample["queries"].items():
        reported[name] = QueryMetrics(data_batches=query["batches"], state_rows=query.get("stateRows"))
        observed[name] = Observation(t=at, query=name, arrival_rate=query.get("arrivalRate"))
        sources = tuple(
            SourceStatus(
                name=source,
                pending_records=round(said["pendingRecords"]),
                watermark_lag=measured(said.get("watermarkLag")),
                rate_limit=said.get("rateLimit"),
                held=said.get("heldBy"),
                votes=Votes.model_validate(
                    {f"{voter[0].lower()}{voter[1:]}": ANSWERS[vote] for voter, vote in said["votes"].items()}
                ),
            )
            for source, said in query["sources"].items()
        )
        status.append(
            QueryStatus(
                name=name,
                backlog=query["backlog"],
                reason=query.get("reason"),
                since=moment(query["since"]),
                interval=seconds(query["intervalSeconds"]),
                grant=round(query["grantRecords"]),
                grant_reason=query.get("grantReason"),
                throughput=query["throughput"],
                eta=eta_text(query.get("etaSeconds")),
                sources=sources,
            )
        )
    history = History(attempt=sample["attempt"])
    step = Step(
        state=State(sample["state"]),
        action=Wait(),
        reason=StepReason.RUNNING,
        message=sample["message"],
        history=history,
    )
    return Moment(
        application=sample["application"],
        at=at,
        step=step,
        published=sample["controlGeneration"],
        status=SparkApplicationStatus(
            acknowledged_generation=sample["acknowledgedGeneration"], queries=tuple(status)
        ),
        reported=reported,
        observed=observed,
        pid=sample["pid"],
        started_at=sample["startedAt"],
    )


def pictures() -> Iterator[tuple[str, str]]:
    """Yield each picture with its name."""
    applications = worst_first(map(recorded, SHOWN))
    yield "top", drawn("headgate top", 132, *overview(applications, NOW, everywhere=False))
    yield "status", drawn("headgate status in-backlog", 110, *describe(recorded("in-backlog"), (), NOW))
    sample = json.loads(RECORDED.read_text(encoding="utf-8")).get("sample") if RECORDED.exists() else None
    if sample:
        yield "local", drawn("headgate local app.yaml", 112, draw(moment_of(sample), (), {}))
    yield "dashboard", dashboard.draw(json.loads(dashboard.RECORDED.read_text(encoding="utf-8")))


def main(*, check: bool) -> None:
    """Write the pictures, or compare them: exit code 1, and a sentence of each that differs."""
    drawn = {IMAGES / f"{name}.svg": text for name, text in pictures()}
    if not check:
        for path, text in drawn.items():
            write(path, text)
    elif stale := [p for p, text in drawn.items() if not p.exists() or p.read_text(encoding="utf-8") != text]:
        sys.exit(
            "\n".join(
                f"error: {path} is not what is drawn now; run python -m docs.pictures" for path in stale
            )
        )


if __name__ == "__main__":
    main(check="--check" in sys.argv)
