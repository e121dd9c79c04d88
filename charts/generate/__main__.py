"""`python -m charts.generate [--check]`: write the generated files, or say which of them are out of date."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

from charts.generate import argocd, crd, dashboards, schema, values

ROOT = Path(__file__).parents[2]


def rendered() -> Iterator[tuple[Path, str]]:
    """Yield each generated file, relative to the root, and the text it should have."""
    for part in (crd, values, schema, dashboards, argocd):
        yield from part.rendered(ROOT)


def differences() -> Iterator[str]:
    for path, text in rendered():
        file = ROOT / path
        committed = file.read_text(encoding="utf-8") if file.exists() else ""
        if committed != text:
            lines = committed.splitlines(keepends=True), text.splitlines(keepends=True)
            yield "".join(difflib.unified_diff(*lines, str(path), "generated"))


def write() -> None:
    for path, text in rendered():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m charts.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare; exit code 1 if something differs")
    if not parser.parse_args().check:
        write()
    elif found := list(differences()):
        sys.exit("".join(found) + "\nerror: generated files differ; run make generate")


if __name__ == "__main__":
    main()
