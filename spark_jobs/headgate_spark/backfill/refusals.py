"""What cannot be backfilled, found before anything is computed or kept: what is wrong, where, and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

MILLISECOND = timedelta(milliseconds=1)

LONGEST = timedelta(days=100_000_000)
"""About what microseconds of 64 bits hold, as Spark's intervals are."""

SWAPPED = {"right": "left_outer", "rightouter": "left_outer", "right_outer": "left_outer"}
HOW = ("inner", "left_outer", "left_semi")

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"

Types = Mapping[str, str]
"""The columns of one side with their types, as Spark writes these."""


class BackfillError(ValueError):
    """A backfill as it was asked for is impossible. The message names the side and the remedy."""


def refuse(reason: str | None, where: str = "") -> None:
    """Raise `BackfillError` if there is a reason to; `where` is the side that it is about."""
    if reason is not None:
        raise BackfillError(f"{where}: {reason}" if where else reason)


def spark_connect(*, is_remote: bool) -> str | None:
    """Return why a session of Spark Connect is refused; `None`: it is none."""
    if is_remote:
        return (
            "a session of Spark Connect cannot be backfilled: start the job on the driver, without a remote"
        )
    return None


def keys(on: Any) -> str | None:
    """Return what is wrong with the names of the keys; `None`: nothing."""
    if isinstance(on, str) or not on:
        return (
            f"on={on!r} names no keys: give a list of columns that both sides have, such as on=['order_id']"
        )
    return None


def kind_of_join(how: str) -> str | None:
    """Return why a join of this kind is refused; `None`: it is not."""
    if how in HOW:
        return None
    if how in SWAPPED:
        return f"how={how!r} keeps rows of the right side: swap the sides and use how={SWAPPED[how]!r}"
    return f"how={how!r} cannot be backfilled: use one of {', '.join(HOW)}"


def time_bounds(left: str, right: str, within: Any) -> str | None:
    """Return why `within` does not bound the join, or not in a way that Spark can keep; `None`: it does."""
    earliest: Any
    latest: Any
    earliest, latest = within if isinstance(within, Sequence) and len(within) == 2 else (None, None)
    for bound, end, keeper in ((earliest, "lower", right), (latest, "upper", left)):
        if not isinstance(bound, timedelta):
            return (
                f"the join has no {end} time bound, so no row of {keeper} would ever leave its state, and there "
                "is no last horizon to replay: give within=(earliest, latest), the least and the most of the right "
                "event time minus the left one, as two timedelta"
            )
        if bound % MILLISECOND:
            return (
                f"the {end} time bound {bound} is no whole number of milliseconds, as Spark's are: round it"
            )
        if abs(bound) > LONGEST:
            return (
                f"the {end} time bound {bound} is longer than Spark knows: give {LONGEST.days:,} days at most"
            )
    if earliest > latest:
        return f"within=({earliest}, {latest}) holds no time at all: write the smaller bound first"
    return None


def watermark(delay: Any) -> str | None:
    """Return what is wrong with the delay of one side's watermark; `None`: nothing."""
    if delay is None:
        return (
            "no watermark is given, so its rows would never leave the state of the join: set `watermark` to how late "
            "rows may come, as a timedelta"
        )
    if not isinstance(delay, timedelta):
        return f"watermark is {delay!r}: write a timedelta, such as timedelta(minutes=10)"
    if delay < timedelta(0) or delay % MILLISECOND:
        return f"watermark is {delay}: make it 0 or more, in whole milliseconds"
    return None


def mode(part: str, *, is_stream: bool) -> str | None:
    """Return why one part of a side cannot be what it is given as; `None`: it can. `part`: `live` or `history`."""
    if part == "live" and not is_stream:
        return "what is live is no stream: read it with spark.readStream"
    if part == "history" and is_stream:
        return "the history is a stream: read it with spark.read"
    return None


def twice(names: Sequence[str], spelled: Callable[[str], str]) -> str | None:
    """Return which column one side has twice, where names are one that are spelled alike; `None`: none."""
    known: dict[str, str] = {}
    for name in names:
        if (other := known.get(spelled(name))) is not None:
            return f"there are two columns {other} and {name}: leave one out in `prepare`, or rename it"
        known[spelled(name)] = name
    return None


def shared(
    left: Sequence[str], right: Sequence[str], on: Sequence[str], spelled: Callable[[str], str]
) -> str | None:
    """Return which column, that is no key, both sides have; `None`: none."""
    keys, of_left = set(map(spelled, on)), set(map(spelled, left))
    for name in right:
        if spelled(name) in of_left - keys:
            return f"both sides have a column {name}, which is no key: rename it in `prepare` of one side"
    return None


def columns(types: Types, on: Sequence[str], event_time: str) -> str | None:
    """Return which column one side lacks, or why its event time cannot be one; `None`: all is there."""
    for name in (*on, event_time):
        if name not in types:
            return (
                f"there is no column {name}, only {', '.join(types)}: make it in `prepare`, or name another"
            )
    if event_time in on:
        return f"column {event_time} is both event time and key of the join: leave it to `within`, not `on`"
    if types[event_time] != "timestamp":
        return f"event time {event_time} is of type {types[event_time]}: cast it to timestamp in `prepare`"
    return None


def parquet_types(types: Types, unwritable: Sequence[str]) -> str | None:
    """Return which column cannot be kept until the stream has read it; `None`: each can."""
    for name in unwritable:
        return (
            f"column {name} is of type {types[name]}, which Parquet does not have: cast it, or leave it out"
        )
    return None


def state_store(provider: str) -> str | None:
    """Return why an operator with initial state cannot use this state store; `None`: it can."""
    if provider.endswith(".HDFSBackedStateStoreProvider"):
        return (
            f"state store {provider} takes no state to begin with: set {STATE_STORE} to "
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )
    return None


def parts(history: Types, live: Types) -> str | None:
    """Return in what the history of a side differs from what is live; `None`: in nothing."""
    for name in (*live, *history):
        if history.get(name) != live.get(name):
            return (
                f"column {name} is {live.get(name, 'missing')} in live rows and {history.get(name, 'missing')} in "
                "the history: make both alike in `prepare`"
            )
    return None
