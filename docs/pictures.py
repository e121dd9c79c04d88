"""Pictures of the terminal, drawn by the commands' own views: `python -m docs.pictures [--check]`.

What they show is recorded: the states of an application that `tests/gitops` holds to the loop, and a moment of the
demo. `make generate` draws them, `make lint` compares.
"""

import io
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import yaml
from rich.console import Console, Group, RenderableType

from benchmarks.demo.picture import RECORDED
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.cluster.urgency import worst_first
from headgate.cli.generated import keep
from headgate.cli.view.application import describe
from headgate.cli.view.frame import Frame, QueryFrame, SourceFrame
from headgate.cli.view.overview import overview
from headgate.cli.view.terminal import draw
from headgate_contract.codec import member_name

IMAGES: Final = Path("docs/images")
STATES: Final = Path("tests/gitops/states")
SHOWN: Final = ("in-backlog", "running", "backing-off", "batch-too-large", "starting", "suspended")
NOW: Final = datetime.fromisoformat("2023-11-14T22:14:25+00:00").timestamp()
"""A minute after the recorded states."""
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
    return ClusterApplication.of({**manifest, "metadata": metadata})


def drawn(title: str, width: int, *parts: RenderableType) -> str:
    """Return what a terminal of this width shows, as SVG."""
    console = Console(
        file=io.StringIO(), width=width, record=True, force_terminal=True, color_system="truecolor"
    )
    console.print(Group(*parts))
    text = console.export_svg(title=title, code_format=FORMAT, unique_id=f"terminal-{width}")
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def frame_of(sample: dict[str, Any]) -> Frame:
    """Return the frame that a line of `headgate local --json` was made of."""
    queries = {}
    for name, query in sample["queries"].items():
        sources = {
            each: SourceFrame(**members(SourceFrame, found)) for each, found in query["sources"].items()
        }
        queries[name] = QueryFrame(**{**members(QueryFrame, query), "sources": sources})
    return Frame(**{**members(Frame, sample), "queries": queries})


def members(kind: Any, document: dict[str, Any]) -> dict[str, Any]:
    """Return what a JSON object has of the fields of a class, by their names in Python."""
    names = {name: member_name(name) for name in kind.__dataclass_fields__}
    return {name: document[key] for name, key in names.items() if key in document}


def pictures() -> Iterator[tuple[str, str]]:
    """Yield each picture with its name."""
    applications = worst_first(map(recorded, SHOWN))
    yield "top", drawn("headgate top", 132, *overview(applications, NOW, everywhere=False))
    yield "status", drawn("headgate status in-backlog", 110, *describe(recorded("in-backlog"), (), NOW))
    sample = json.loads(RECORDED.read_text(encoding="utf-8")).get("sample") if RECORDED.exists() else None
    if sample:
        yield "local", drawn("headgate local app.yaml", 112, draw(frame_of(sample), (), {}))


def main() -> None:
    """Write the pictures, or compare them."""
    for name, text in pictures():
        keep(IMAGES / f"{name}.svg", text, check="--check" in sys.argv)


if __name__ == "__main__":
    main()
