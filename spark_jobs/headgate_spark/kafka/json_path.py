"""Paths to one member of a decoded record: the singular queries of JSONPath (RFC 9535, section 2.3.5.1).

`$.pickup.time`, `$['pick-up'].stops[0]`, `$.stops[-1].at`: names and indexes, so that there is one answer at most.
What has no `$` is the name of a member: `pickup_time`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Union

Path = tuple[Union[str, int], ...]

_SEGMENT = re.compile(r"""\.([\w-]+)|\[(-?\d+)\]|\['([^'\\]+)'\]|\["([^"\\]+)"\]""")


def parse(text: str) -> Path:
    """Return the steps of a path. Raises `ValueError` where it is none."""
    if not text.startswith("$"):
        return (text,)
    steps: list[str | int] = []
    at = 1
    while found := _SEGMENT.match(text, at):
        name, index, *quoted = found.groups()
        steps.append(int(index) if index else name or quoted[0] or quoted[1])
        at = found.end()
    if at < len(text) or not steps:
        raise ValueError(f"{text} is no path of names and indexes, such as $.pickup.time or $['stops'][0]")
    return tuple(steps)


def follow(path: Path, document: object) -> object:
    """Return what is at the end of a path. Raises `LookupError` where there is nothing."""
    for step in path:
        document = _member(step, document)
    return document


def _member(step: str | int, document: object) -> object:
    if isinstance(step, str) and isinstance(document, Mapping):
        return document[step]
    if isinstance(step, int) and isinstance(document, Sequence) and not isinstance(document, (str, bytes)):
        return document[step]
    raise LookupError(step)
