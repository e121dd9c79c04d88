"""Text of others: what exceptions, logs and people wrote, before it is told where others may read it.

A failure is told in the words of whoever failed: on a port without a login, in Prometheus and its alerts, in status
and Events. Drivers and libraries put addresses with passwords into such words. And what a job has written is printed
on the terminals of people who look after it, where control characters do things.
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "(hidden)"
LONGEST_READ: Final = 5_000
"""Characters of a text that are looked at; nobody tells more than a sentence of them."""

_WORDS: Final = (
    r"pass(?:word|wd|phrase|code)|(?<![A-Za-z])(?:pass|pwd)|secret|token|credentials?"
    r"|(?:api|access|account|client|encryption|master|private|secret|shared|storage)"
    r"[._ -]?(?:access[._ -]?)?key(?:id)?"
    r"|(?<![A-Za-z])(?:sig|sas|auth|dsn)|signature|authorization|jaas(?:\.config)?"
)
NAMES_A_SECRET: Final = re.compile(rf"(?i){_WORDS}")
"""In the name of something whose value is a secret."""

_QUOTED: Final = rf"""{re.escape(HIDDEN)}|\\?"[^"]*(?:"|\Z)|\\?'[^']*(?:'|\Z)"""
"""A value in quotes, or one that is hidden already: what a driver has told goes through here again."""
_END_OF_NAME: Final = r"""\s{0,3}(?:=|->)|\\?["']\s{0,3}[:=]"""
"""What stands behind the name of a property: in a file, in a Map of Scala, in JSON."""
_PATTERNS: Final = tuple(
    (re.compile(pattern), shown)
    for pattern, shown in (
        (r"(?s)-----BEGIN [A-Z ]{1,40}-----.*?(?:-----END [A-Z ]{1,40}-----|$)", HIDDEN),
        (r"(?i)\b(jdbc:oracle:\w{1,10}:)[^@\s/]{1,200}/[^@\s]{1,200}@", rf"\1{HIDDEN}@"),
        (
            r"(?i)(?<![a-z0-9+.-])((?!abfs|wasb)[a-z][a-z0-9+.-]{0,30}://)"
            r"(?:[^/?#\s\"'<>]{1,500}|[^][:/?#\s\"'<>@]{0,200}:(?!\d{1,5}[/?#])[^\s\"'<>@]{1,200})@",
            rf"\1{HIDDEN}@",
        ),
        (r"(?i)\b(bearer|basic|digest)\s+[\w.~+/=-]{8,}", rf"\1 {HIDDEN}"),
        (rf"(?i)(--?(?:[\w.-]{{0,60}}[.-])?(?:{_WORDS})[\"']?,?)\s+(?!-)(?:{_QUOTED}|\S+)", rf"\1 {HIDDEN}"),
        (
            rf"(?i)((?:{_WORDS})(?:[\w.-]{{0,100}}(?==)|[._\d-][\w.-]{{0,100}}(?={_END_OF_NAME}))?"
            rf"\\?[\"']?\s{{0,3}}(?:[-=]>|[=:])\s{{0,3}})"
            rf"(?:{_QUOTED}|(?!(?:bearer|basic|digest)\s)[^\s&;,\"')\]}}]+)",
            rf"\1{HIDDEN}",
        ),
        (
            rf"(?i)(\(\\?[\"']?[\w-]{{1,60}}\.[\w.-]{{0,100}}(?:{_WORDS})[\w.-]{{0,100}}\\?[\"']?,\s{{0,3}})"
            rf"(?:{_QUOTED}|[^\s)]+)",
            rf"\1{HIDDEN}",
        ),
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", HIDDEN),
        (r"\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?", HIDDEN),
        (r"(?<![\w/.+=-])[A-Za-z0-9+/]{40,}={1,2}", HIDDEN),
        (
            r"(?<![\w/.+=-])(?=[^\s/]{0,80}[a-z])(?=[^\s/]{0,80}[A-Z])(?=[^\s/]{0,80}[0-9])"
            r"[A-Za-z0-9+_-]{40,}(?![\w/.])",
            HIDDEN,
        ),
    )
)

_PICTURES: Final = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029, 0x061C, 0x200E, 0x200F), 0xFFFD),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)), 0xFFFD),
}
_PICTURES_IN_LINES: Final = {code: shown for code, shown in _PICTURES.items() if code != ord("\n")}


def scrubbed(text: str) -> str:
    """Return the text without what looks like a secret in it: by its form, or by the name before it.

    It is a net and no promise: who must keep something to himself must not write it into an exception.
    """
    text = text[:LONGEST_READ]
    for pattern, shown in _PATTERNS:
        text = pattern.sub(shown, text)
    return text


def printable(text: str, *, lines: bool = False) -> str:
    """Return the text with a picture in place of each character that moves a cursor, draws or turns the writing.

    It is as long as before. With `lines`, ends of lines stay what they are.
    """
    return text.translate(_PICTURES_IN_LINES if lines else _PICTURES)
