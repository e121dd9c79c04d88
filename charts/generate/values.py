"""The table of values in the chart's README, from the comments in `values.yaml`.

A comment that starts with `# --` describes the value below it. Every value has one: whoever adds a value without
saying what it is for learns it here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import yaml

CHART = Path("charts/headgate")
START, END = "<!-- values: made from values.yaml by `make generate` -->\n", "<!-- end of values -->\n"
_KEY = re.compile(r"(?P<indent> *)(?P<key>\w+):")


class UndescribedValueError(Exception):
    """A value has no comment that starts with `# --`."""


@dataclass(frozen=True)
class Value:
    """One row: where the value stands, what it is without anybody's doing, and what it means."""

    path: str
    default: Any
    meaning: str


def rendered(root: Path) -> Iterator[tuple[Path, str]]:
    before, _, rest = (root / CHART / "README.md").read_text(encoding="utf-8").partition(START)
    after = rest.partition(END)[2]
    rows = [row(value) for value in described((root / CHART / "values.yaml").read_text(encoding="utf-8"))]
    table = "\n".join(["| value | default | meaning |", "|---|---|---|", *rows, ""])
    yield CHART / "README.md", f"{before}{START}{table}{END}{after}"


def row(value: Value) -> str:
    meaning = re.sub(
        r"\(https://headgate\.dev/docs/([\w-]+)(#[\w-]+)?\)", r"(../../docs/\1.md\2)", value.meaning
    )
    default = json.dumps(value.default, ensure_ascii=False).replace("|", "\\|")
    return f"| `{value.path}` | `{default}` | {meaning} |"


def described(text: str) -> Iterator[Value]:
    """Yield each value that a comment describes, in the order of the file.

    Raises `UndescribedValueError` where a value has neither a comment nor values below it that have.
    """
    values = yaml.safe_load(text)
    known = list(_described(text.splitlines(), values))
    paths = [value.path for value in known]
    for leaf in _leaves(values):
        if not any(leaf == path or leaf.startswith(f"{path}.") for path in paths):
            raise UndescribedValueError(
                f"values.yaml: {leaf} has no comment; write `# -- ` and what it is above"
            )
    yield from known


def _described(lines: Sequence[str], values: Mapping[str, Any]) -> Iterator[Value]:
    path: list[str] = []
    comment: list[str] = []
    for line in lines:
        text = line.strip()
        if text.startswith("# -- "):
            comment = [text.removeprefix("# -- ")]
        elif text.startswith("# ") and comment:
            comment.append(text.removeprefix("# "))
        elif key := _KEY.match(line):
            path = [*path[: len(key["indent"]) // 2], key["key"]]
            if comment:
                yield Value(".".join(path), reduce(getitem, path, values), " ".join(comment))
            comment = []
        else:
            comment = []


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from _leaves(child, f"{path}.{key}" if path else key)
    else:
        yield path
