"""Inputs that are nearly right: an example of a format, changed in a few places.

A change is a small tuple of numbers, so that hypothesis can draw and shrink a list of them, and a long run can draw
them a thousand times faster from a generator of its own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

Change = tuple[int, float, float, int]
"""Which kind of change, where it begins and how far it goes (shares of the length), and which token."""

LONGEST = 64 * 1024
"""Bytes of an input: what is longer is refused by whoever reads it from a socket or a file."""

TOKENS: tuple[bytes, ...] = (
    b"", b"null", b"true", b"-1", b"0", b"1", b"-0.0", b"1e308", b"1e309", b"-1e309", b"NaN", b"Infinity", b"+Inf",
    b"9007199254740993", b"9" * 400, b"9" * 5000, b"1_0", b"\xc2\xb2", b"\xd9\xa1", b'"', b"'", b"\\", b"\\ud800",
    b"\\u0000", b"\xff", b"\xed\xa0\x80", b"\x00", b"\x1b[2J", b"\r\n", b"\n\n", b"\t", b" ", b"\xe2\x80\xa8",
    b"\xe2\x80\xae", b"\xef\xbb\xbf", b"[", b"]", b"{", b"}", b"[]", b"{}", b'{"": ""}', b",", b":", b": ", b"- ",
    b"#", b"&a ", b"*a", b"<<: *a", b"!!python/object/apply:os.system ", b"---\n", b"=", b"==", b".", b"..", b"/",
    b"$", b"%", b"0s", b"5s", b"1h1h", b"2562047h", b"spark.headgate.", b"queries.", b"sources.", b"duringBacklog",
    b"Unlimited", b"headgate_source_pending_records", b'{source="', b" 1 1\n", b"# TYPE a counter\n", b"2026-03-01",
    b"T24:61:61Z", b"9999-12-31T23:59:59.999999Z", b"+99:99", b"x" * 3000, b"[" * 3000, b'{"a":' * 2000,
)  # fmt: skip
"""What has been in the way of parsers before."""

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**53 + 1, 10**30, 10**400, 0.5, 1e308, float("inf"), float("nan"), "", "x", "5s",
    "\ud800", "\x00", "\u2028", "x" * 3000, [], {}, [[]], [None], {"": None}, {"name": "x"}, "1e400", "9" * 5000,
)  # fmt: skip


def mutated(example: bytes, changes: Sequence[Change]) -> bytes:
    """Return the example with the changes, one after the other."""
    for change in changes:
        example = _changed(example, *change)[:LONGEST]
    return example


def drawn(chance: random.Random, most: int = 4) -> list[Change]:
    """Draw some changes."""
    return [
        (chance.randrange(KINDS), chance.random(), chance.random() ** 3, chance.randrange(10_000))
        for _ in range(chance.randint(1, most))
    ]


KINDS = 10


def _changed(text: bytes, kind: int, where: float, far: float, token: int) -> bytes:
    begin = int(where * (len(text) + 1))
    end = min(len(text), begin + max(1, int(far * len(text))))
    word = TOKENS[token % len(TOKENS)]
    match kind:
        case 0:
            return text[:begin] + text[end:]
        case 1:
            return text[:begin] + text[begin:end] * (2 + token % 3) + text[end:]
        case 2:
            return text[:begin] + word + text[begin:]
        case 3:
            return text[:begin] + word + text[end:]
        case 4:
            return text[:begin] + bytes([token % 256]) + text[begin + 1 :]
        case 5:
            return text[:begin]
        case 6:
            return text[:begin] + word * (1 + token % 300) + text[begin:]
    return _with_other_node(text, where, token)


def _with_other_node(text: bytes, where: float, token: int) -> bytes:
    """Return a document of JSON with one of its values, or one of its names, replaced by another."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text[::-1]
    places = list(_places(document))
    value = VALUES[token % len(VALUES)]
    if not places:
        return _json(value)
    owner, name = places[int(where * len(places)) % len(places)]
    if isinstance(owner, dict) and token % 5 == 0:
        owner[str(value)] = owner.pop(name)
    else:
        owner[name] = value
    return _json(document)


def _places(value: Any) -> Any:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, child in list(children):
        yield value, name
        yield from _places(child)


def _json(document: Any) -> bytes:
    # Python refuses to write a number of 400 digits only beyond its limit of 4,300: it is written as it is.
    return json.dumps(document).encode("utf-8", "surrogatepass")
