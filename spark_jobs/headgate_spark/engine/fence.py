"""The fence on a checkpoint: which of several drivers may commit to it, as a protocol over files and nothing else.

An *epoch* is a file beside the checkpoint that one run creates and nobody writes again. Its name has a number,
higher than that of all epochs that its driver found, and a token of that run alone. **A run may write an entry of
the offset log or of the commit log while its epoch is there.** The run that comes after it deletes it, and no file
of that name is ever created again. Beside its epoch a driver has a *sign*, an empty file. A newcomer *knocks* by
deleting that, and a timer in the JVM (`SignOfLife.java`), which finds it gone, writes it anew. No promise rests on
an answer, or on its time.

`take` is the newcomer's part: it yields what is to be done (`Act`) and is sent what came of it, so that a test may
put any other step between two of its own (`tests/laws/test_fence.py`). `docs/guarantees.md` has the argument, and
what it asks of a store.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import field, fields
from datetime import datetime, timezone
from typing import Any, Optional, Union

from headgate_contract.newer import dataclass

LOOK_SECONDS = 1.0
"""Between two looks at a driver of which it is not known whether it is dead."""
ANSWER_SECONDS = 5.0
"""How often a driver looks whether somebody has knocked: `LOOK_SECONDS` of `SignOfLife.java`."""
SETTLE_SECONDS = 3.0
"""How long a newcomer waits after it has shut out a driver that may be alive, before it reads where the checkpoint
ends: what that driver is about to write has come by then. A run trusts an answer for a second (`Fence.java`), and the
rest is for one write."""
PATTERN = re.compile(r"epoch\.(\d{1,18})\.([0-9a-f]{1,32})")
LONGEST = 200
"""Characters of a name that an owner has given itself."""


@dataclass(frozen=True, slots=True, order=True)
class Epoch:
    """The name of an epoch. The higher one is the later one."""

    number: int
    token: str

    @property
    def name(self) -> str:
        """Of its file."""
        return f"epoch.{self.number}.{self.token}"

    @property
    def sign(self) -> str:
        """The name of the file by which the driver that holds it tells that it runs."""
        return f"sign.{self.number}.{self.token}"

    @classmethod
    def parse(cls, name: str) -> Epoch | None:
        """Return the epoch with a file of this name; `None`: it is another file."""
        found = PATTERN.fullmatch(name)
        return None if found is None else cls(int(found[1]), found[2])


def epochs_among(names: Collection[str]) -> list[Epoch]:
    """Return the epochs among the names of files, the earliest first."""
    return sorted(epoch for epoch in map(Epoch.parse, names) if epoch is not None)


def signs_among(names: Collection[str]) -> list[str]:
    return [
        name for name in names if name.startswith("sign.") and Epoch.parse("epoch" + name[4:]) is not None
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who holds an epoch, as the file tells it. What is not known is empty, or `None`."""

    application: str = ""
    host: str = ""
    pid: Optional[int] = None
    since: Optional[float] = None
    """Unix seconds, by the clock of that driver."""
    machine: str = ""
    """Where process ids mean the same: one boot of one machine, and one namespace of processes."""
    started: str = ""
    """When the process began, in whatever unit that machine has: another process with its id has another one."""
    lineage: str = ""
    """What starts this driver again when it has ended, and never two of them knowingly."""
    attempt: Optional[int] = None
    """Which start of that lineage it is."""
    lock: str = ""
    """Where a lock on the checkpoint would keep this driver and another of the same kernel apart: one mount."""

    def is_succeeded_by(self, other: Owner) -> bool:
        """Tell whether `other` was started since this one was found to have ended."""
        same = self.lineage != "" and self.lineage == other.lineage
        return (
            same and self.attempt is not None and other.attempt is not None and self.attempt < other.attempt
        )

    @property
    def words(self) -> str:
        """Who it is, for a sentence."""
        if not self.host:
            return "a driver that cannot be told"
        utc = None if self.since is None else datetime.fromtimestamp(self.since, timezone.utc)
        since = "" if utc is None else f" since {utc:%Y-%m-%dT%H:%M:%SZ}"
        pid = "" if self.pid is None else f", pid {self.pid}"
        return f"the driver of application {self.application or 'unknown'} on host {self.host}{pid}{since}"

    def text(self) -> str:
        """Return what the file of an epoch has in it: JSON; `who` is for the driver that it shuts out."""
        members = {slot: getattr(self, slot) for slot in _MEMBERS}
        return json.dumps(members | {"who": self.words})

    @classmethod
    def parse(cls, text: str) -> Owner:
        """Return whom a file tells of, as far as it can be understood: it may be damaged, or of another version."""
        try:
            told = json.loads(text)
        except ValueError:
            return cls()
        if not isinstance(told, Mapping):
            return cls()
        kept = {key: told[key] for key, fits in _MEMBERS.items() if key in told and fits(told[key])}
        return cls(**kept)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST and value.isprintable()


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**35


_FITS = {"str": _is_text, "Optional[int]": _is_whole, "Optional[float]": _is_time}
_MEMBERS: Mapping[str, Callable[[object], bool]] = {
    each.name: _FITS[str(each.type)] for each in fields(Owner)
}


# What is to be done ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Names:
    """Answered by the names of the files beside the checkpoint."""


@dataclass(frozen=True, slots=True)
class Read:
    """Answered by the text of a file; `None`: it is gone."""

    name: str


@dataclass(frozen=True, slots=True)
class Create:
    """Create a file that is not there."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a file; it may be gone already."""

    name: str


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Answered by where the logs of the checkpoint end: a value that is another one as soon as a batch is planned or
    committed."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Go on after so many seconds, at least."""

    seconds: float
    owner: Optional[Owner] = None
    """For whom it waits; `None`: it has been shut out, and only what it was writing may still come."""


Act = Union[Names, Read, Create, Delete, LogEnds, Sleep]


class AliveError(RuntimeError):
    """Another driver has the checkpoint, and keeps it; `owner` is who."""

    def __init__(self, owner: Owner, why: str) -> None:
        """`why` goes on from the name of the owner."""
        super().__init__(f"{owner.words}, {why}")
        self.owner = owner


# The newcomer ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """A run that wants to commit to a checkpoint."""

    owner: Owner
    token: str
    """Of this run alone."""
    is_dead: Callable[[Epoch, Owner], bool] = lambda _epoch, _owner: False
    """Whether the driver that holds an epoch is known to run no more."""
    now_millis: Callable[[], int] = lambda: 0
    """Milliseconds since 1970. Nothing relies on it but that numbers are not used again when all epochs are gone."""
    holds: Callable[[str], bool] = lambda _name: False
    """Whether the JVM of this driver holds an epoch, by its name."""
    clock: Callable[[], float] = time.monotonic
    """Seconds that never go back."""
    take_over_seconds: float = 30.0
    """After which a driver is shut out that may be alive, and has not answered, planned or committed in that time."""

    def asks(self, owner: Optional[Owner]) -> bool:
        """Tell whether the driver that holds an epoch is to be asked for a sign of life; `None`: it is dead.

        Whoever has started this one has found an earlier start of it ended, as far as that can be seen from
        outside. A node that nobody reaches may still run it, so it gets the time that its last write needs.
        A *later* start of it is asked as any other: it may be that this one comes late, and as well that whoever
        counts the starts was restored from a backup and counts them again.
        """
        return owner is not None and not owner.is_succeeded_by(self.owner)


@dataclass(slots=True)
class _Watched:
    """Drivers that may be alive, and what they have done since somebody has knocked."""

    epochs: Optional[list[Epoch]] = None
    ends: object = None
    seconds: float = field(default=0.0)

    def sees_life(self, names: Collection[str], ends: object) -> str | None:
        """Return what tells that one of them runs; `None`: nothing yet."""
        if any(epoch.sign in names for epoch in self.epochs or ()):
            return "which has answered that it runs"
        return None if self.ends == ends else "which has just planned or committed a batch"


def take(newcomer: Newcomer) -> Generator[Act, Any, Epoch]:
    """Take the checkpoint; return the epoch by which it is held. Raises `AliveError`: nothing was changed then.

    When it returns, no other run's epoch is there, or that run has not returned from this yet and gives its own up.
    Whoever has come between a look and the creation of this epoch may hold the checkpoint by now, and is asked too.
    """
    watched, least = _Watched(), 0
    mine: Optional[Epoch] = None
    asked: Collection[Epoch] = ()
    while True:
        names = yield Names()
        found = yield from _found(newcomer, names, mine)
        if mine is not None and (mine.name not in names or any(epoch > mine for epoch in found)):
            yield Delete(mine.name)  # others were quicker: they are asked as any other
            least = mine.number + 1
            watched, mine, asked = _Watched(), None, ()
            continue
        doubtful = {
            epoch: owner for epoch, owner in found.items() if epoch not in asked and newcomer.asks(owner)
        }
        try:
            if doubtful and not (yield from _ask(newcomer, doubtful, names, watched)):
                continue
        except AliveError:
            if mine is not None:
                yield Delete(mine.name)
            raise
        if mine is None:
            number = max([newcomer.now_millis(), least, *(epoch.number + 1 for epoch in found)])
            mine = Epoch(number, newcomer.token)
            asked = found
            yield Create(mine.name, newcomer.owner.text())
            continue
        for epoch in found:
            yield Delete(epoch.name)
        for sign in signs_among(names):  # a driver has one only when it has come to the end of this
            yield Delete(sign)
        if any(owner is not None for owner in found.values()):
            yield Sleep(SETTLE_SECONDS)
        return mine


def _ask(
    newcomer: Newcomer, doubtful: Mapping[Epoch, Optional[Owner]], names: Collection[str], watched: _Watched
) -> Generator[Act, Any, bool]:
    """Ask drivers for a sign of life, or wait for it; return whether they had their time. Raises `AliveError`."""
    last = doubtful[max(doubtful)] or Owner()
    ends = yield LogEnds()
    if watched.epochs != list(doubtful):
        for epoch in doubtful:
            yield Delete(epoch.sign)
        watched.epochs, watched.ends, watched.seconds = list(doubtful), ends, 0.0
    elif (life := watched.sees_life(names, ends)) is not None:
        raise AliveError(last, life)
    if watched.seconds >= newcomer.take_over_seconds:
        return True
    yield Sleep(LOOK_SECONDS, last)
    watched.seconds += LOOK_SECONDS
    return False


def _found(
    newcomer: Newcomer, names: Collection[str], mine: Optional[Epoch]
) -> Generator[Act, Any, dict[Epoch, Optional[Owner]]]:
    """Return others' epochs that are there, the earliest first, with the owner of each that may be alive."""
    found: dict[Epoch, Optional[Owner]] = {}
    for epoch in epochs_among(names):
        if epoch == mine:
            continue
        text = yield Read(epoch.name)
        if text is not None:
            owner = Owner.parse(text)
            found[epoch] = None if newcomer.is_dead(epoch, owner) else owner
    return found
