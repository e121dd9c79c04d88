"""Where a query takes up again, read from its checkpoint before Spark does.

Spark plans a batch by an entry in `offsets/` and commits it by one of the same number in `commits/`: what has the
one and not the other runs again, before a source is first asked. An entry has a line with its form, one of metadata,
and then one per source that the plan reads, with `-` for no offset:

- `v1`, since Spark 2.1: the offset alone; sources are in the order of the plan, and one that the plan reads twice has
  two lines. So it is with Spark 4.2 also where its sources have names.
- `v2`: `key:offset`, in any order; a source that is not listed has no offset. Since Spark 4.3, where
  `spark.sql.streaming.queryEvolution.enableSourceEvolution` is on, the key is the name of the source, and sources may
  have been added, dropped and moved since. Otherwise (`spark.sql.streaming.offsetLog.formatVersion=2`, since 4.2) it
  is the number of a place in the plan, for one that the plan reads twice that of any of its places.

Of an entry in another form nothing is taken to be known but its number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from headgate_contract.newer import dataclass
from headgate_spark.engine.directory import Directory

LINES_BEFORE_OFFSETS = 2
NO_OFFSET = "-"


@dataclass(frozen=True, slots=True)
class Ends:
    """Where the sources of a query end, by an entry of the offset log."""

    in_order: tuple[str | None, ...] = ()
    """Of sources that go by their place in the plan, a line for each; `None`: no offset."""
    by_key: Mapping[str, str | None] | None = None
    """Of sources that go by name, or by the number of a line; `None`: they go by place."""

    def __bool__(self) -> bool:
        return bool(self.in_order) or self.by_key is not None

    def are_by_name(self, names: Iterable[str | None]) -> bool:
        """Return whether these are the names by which sources go."""
        return self.by_key is not None and any(name in self.by_key for name in names)

    def tells_of(self, line: int) -> bool:
        """Return whether it is known where the source of a line ends, or that it does not."""
        return self.by_key is not None or line < len(self.in_order)

    def of(self, lines: Sequence[int], name: str | None) -> str | None:
        """Return the offset of a source, by the name that it goes by or, without one, by its lines; `None`: none."""
        if self.by_key is None:
            return self.in_order[lines[0]]
        keys = [str(line) for line in lines] if name is None else [name]
        return next((self.by_key[key] for key in keys if key in self.by_key), None)


@dataclass(frozen=True, slots=True)
class Resumption:
    """The last batch that was planned in a checkpoint."""

    batch: int | None = None
    """Its id; `None`: none was planned, or nobody knows."""
    repeats: bool = False
    """It was not committed, and runs again."""
    ends: Ends = field(default_factory=Ends)
    """Where its sources end."""
    begins: Ends = field(default_factory=Ends)
    """Where they begin, of a batch that runs again and was not the first."""
    takes_least: bool | None = None
    """Whether the query's watermark is the least of several; `None`: the checkpoint does not say."""
    is_read: bool = True
    """False: the checkpoint could not be read, and nothing of it is known."""

    @property
    def is_new(self) -> bool:
        """Whether the query has surely never planned a batch."""
        return self.is_read and self.batch is None


def read_resumption(offsets: Directory, commits: Directory) -> Resumption:
    """Return where the query takes up again. Raises what the file system raises."""
    entries, committed = _numbers(offsets), max(_numbers(commits), default=None)
    if not entries:
        return Resumption()
    planned = max(entries)
    repeats = committed is None or committed < planned
    before = planned - 1 if repeats and planned - 1 in entries else None
    begins = Ends() if before is None else ends_in(offsets.read(str(before)))
    entry = offsets.read(str(planned))
    return Resumption(planned, repeats, ends_in(entry), begins, takes_least_in(entry))


def _numbers(log: Directory) -> set[int]:
    return {int(name) for name in log.names() if name.isdigit()}


def ends_in(entry: str) -> Ends:
    """Return where sources end by an entry of the offset log."""
    form, *lines = entry.splitlines() or [""]
    offsets = lines[LINES_BEFORE_OFFSETS - 1 :]
    if form == "v1":
        return Ends(in_order=tuple(map(_offset, offsets)))
    if form == "v2" and all(":" in line for line in offsets):
        keyed = (line.split(":", 1) for line in offsets)
        return Ends(by_key={key: _offset(offset) for key, offset in keyed})
    return Ends()


def takes_least_in(entry: str) -> bool | None:
    """Return whether Spark takes the least of several watermarks, by an offset log's entry; `None`: not known."""
    try:
        policy = json.loads(entry.splitlines()[1])["conf"]["spark.sql.streaming.multipleWatermarkPolicy"]
        return str(policy).lower() != "max"
    except (IndexError, ValueError, KeyError, TypeError):
        return None


def _offset(text: str) -> str | None:
    return None if text == NO_OFFSET else text
