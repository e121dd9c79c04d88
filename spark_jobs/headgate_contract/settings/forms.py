"""How the values of settings are written: parsers with the words of the resource's own refusals.

Each takes the text of an option or a property and returns the value, or raises ValueError with what is wrong and what
to do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

from headgate_contract.document import BLANK_GROUP, MOST_GROWTH, MOST_RECORDS
from headgate_contract.durations import nanoseconds, seconds, written
from headgate_contract.nearest import did_you_mean

Value = Union[bool, int, float, str]  # evaluated at run time, on any Python that Spark runs on


@dataclass(frozen=True)
class Form:
    """How a value is written."""

    words: str
    parse: Callable[[str], Value]
    """Raises ValueError with what is wrong and what to do."""


def _shown(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def or_default(default_seconds: float) -> str:
    """Return the remedy that always helps."""
    return f"leave it out for {written(round(default_seconds * 1_000_000))}"


def at_least(least: str, name: str, remedy: str) -> Form:
    def parse(text: str) -> float:
        if nanoseconds(text) < nanoseconds(least):
            raise ValueError(f"{name} must be at least {least}; {remedy}")
        return seconds(text)

    return Form(f"a duration of at least {least}", parse)


def positive(name: str, remedy: str) -> Form:
    def parse(text: str) -> float:
        if not seconds(text):
            raise ValueError(f"{name} must be greater than 0s; {remedy}")
        return seconds(text)

    return Form("a duration, not 0s", parse)


SHORT_DURING_BACKLOG = (
    "intervalDuringBacklog must be 0s or at least 10ms; raise it, or set 0s for one batch per backlog"
)


def backlog_interval(text: str) -> float:
    if 0 < nanoseconds(text) < nanoseconds("10ms"):
        raise ValueError(SHORT_DURING_BACKLOG)
    return seconds(text)


def records(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]+", text, re.ASCII):
        raise ValueError(f"must be a whole number, not the text {_shown(text)}")
    value = int(text) if len(text) < 100 else MOST_RECORDS + 1
    if value < 1:
        raise ValueError(f"{text} is refused: must be at least 1")
    if value > MOST_RECORDS:
        raise ValueError(f"{text[:60]} is refused: must be at most {MOST_RECORDS:,}")
    return value


def number(more_than: int, most: int) -> Callable[[str], float]:
    def parse(text: str) -> float:
        if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text, re.ASCII):
            raise ValueError(f"must be a number, not the text {_shown(text)}")
        value = float(text)
        if not math.isfinite(value):
            raise ValueError(f"must be a finite number, not {text[:60]}")
        if value <= more_than:
            raise ValueError(f"{text} is refused: must be greater than {more_than}")
        if value > most:
            raise ValueError(f"{text} is refused: must be at most {most:,}")
        return value

    return parse


def yes_or_no(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"must be true or false, not the text {_shown(text)}")
    return text.lower() == "true"


def one_of(*words: str) -> Form:
    def parse(text: str) -> str:
        if text not in words:
            hint = did_you_mean(text, words, 0.5)
            raise ValueError(f"{_shown(text)} is not one of {', '.join(words)}{hint}")
        return text

    return Form(" or ".join(f"`{word}`" for word in words), parse)


def whether(word: str, *words: str) -> Form:
    """Return the form of one of a few `words`, of which one means yes."""
    form = one_of(*words)
    return Form(form.words, lambda text: form.parse(text) == word)


def text_of(what: str, most: int) -> Form:
    """Return the form of a text of a length; `what` says of what."""

    def parse(text: str) -> str:
        if len(text) < 1:
            raise ValueError("is empty; give it a value")
        if len(text) > most:
            raise ValueError(f"is too long: at most {most} characters")
        return text

    return Form(what, parse)


def source_name(text: str) -> str:
    if not re.fullmatch(r"[^,/\s]{1,249}", text):
        raise ValueError(f"{_shown(text)} is no name of a source; name another source of the query")
    return text


def function_name(text: str) -> str:
    """Return the name of a function of Python: `module:function`."""
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", text):
        raise ValueError(
            f"{_shown(text)} names no function; write module:function, such as rides.avro:decode"
        )
    return text


def consumer_group(text: str) -> str:
    if not text.strip():
        raise ValueError(BLANK_GROUP)
    return str(text_of("a consumer group", 249).parse(text))


DURATION = Form("a duration", seconds)
RECORDS = Form("a whole number of at least 1", records)
RATE = Form("a number greater than 0", number(0, MOST_RECORDS))
FACTOR = Form("a number greater than 1, at most 1,000", number(1, MOST_GROWTH))

_MICROSECONDS = {
    86_400_000_000: "d day days",
    3_600_000_000: "h hour hours",
    60_000_000: "m min minute minutes",
    1_000_000: "s sec second seconds",
    1_000: "ms milli millis millisecond milliseconds",
    1: "µs us micro micros microsecond microseconds",
}
_IN_FLINK = {"": 1_000, **{name: size for size, names in _MICROSECONDS.items() for name in names.split()}}
"""Units by their names; without one, Flink counts milliseconds."""


def as_here(text: str) -> str:
    """Return a duration that is written as Flink has it (`1 min`, `5s`, `250` milliseconds) as it is written here."""
    found = re.fullmatch(r"([0-9]{1,18})\s*([a-zµ]*)", text.strip().lower())
    if found is None or found[2] not in _IN_FLINK:
        return text
    microseconds = int(found[1]) * _IN_FLINK[found[2]]
    whole, rest = divmod(microseconds, 1_000)
    return f"{whole}.{rest:03}ms" if rest else f"{whole}ms"
