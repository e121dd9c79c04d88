"""`python -m charts.generate [--check]`: write the generated files, or compare them with those that are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from charts.generate import argocd, crd, dashboards, schema, values
from headgate.cli.generated import keep

ROOT = Path(__file__).parents[2]


def rendered() -> Iterator[tuple[Path, str]]:
    """Yield each generated file, relative to the root, and the text it should have."""
    for part in (crd, values, schema, dashboards, argocd):
        yield from part.rendered(ROOT)


def main(
    check: Annotated[bool, typer.Option("--check", help="Compare instead of writing.")] = False,
) -> None:
    """Write the files that a chart has of the models, or compare them with those that are there."""
    for path, text in rendered():
        keep(ROOT / path, text, check=check)


if __name__ == "__main__":
    typer.run(main)
