"""Drivers on one checkpoint, as a model: the fence as it is, Spark's two logs, and a store whose steps are taken one
by one.

A driver is a generator: it yields what it does to the store (`Step`) and goes on with what came of it. Whoever runs
the model says whose step is next, so any two steps can come in any order, a driver can stand still between two of
its own for as long as it likes, or be dead from one step on. What the model takes over from Spark (read in the
bytecode of
`MicroBatchExecution` and `HDFSMetadataLog`, 4.3):

- A run reads where the logs end when its streams are open. A batch that was planned and not committed runs again,
  with the ends that the log has, and asks nobody. A batch whose entry is written by another run ends the query.
- An entry is written by `createAtomic` with `overwriteIfPossible=false`: on a store with put-if-absent the second
  writer fails, on one without it replaces what is there.
- Who has committed a batch deletes the entries that are older than so many (`purge`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any

from headgate_spark.engine.fence import (
    AliveError,
    Create,
    Delete,
    LogEnds,
    Names,
    Newcomer,
    Owner,
    Read,
    Sleep,
    epochs_among,
    take,
)


@dataclass(frozen=True)
class Write:
    """An entry of a log."""

    log: str
    batch: int
    text: str


@dataclass(frozen=True)
class IsThere:
    """Whether a file beside the checkpoint is there."""

    name: str


@dataclass(frozen=True)
class Sign:
    """The sign of a driver is written."""

    name: str


@dataclass(frozen=True)
class Sink:
    """What a batch reads is handed to the sink."""

    batch: int
    range: tuple[int, int]


Step = Any


@dataclass(frozen=True)
class IsOurs:
    """Whether an entry of a log has the text that was to be written."""

    entry: Write


class TakenError(Exception):
    """An entry of a log is there already."""


class LostError(Exception):
    """A step was carried out, or not, and nobody says which."""


@dataclass
class Store:
    """The files of a checkpoint and of the folder beside it. Each step is one of its own, and seen by all at once."""

    put_if_absent: bool = True
    retains: int | None = None
    """How many batches before the last one keep their entries; `None`: all."""
    beside: dict[str, str] = field(default_factory=dict)
    offsets: dict[int, str] = field(default_factory=dict)
    commits: dict[int, str] = field(default_factory=dict)

    def write(self, step: Write) -> None:
        log = self.offsets if step.log == "offsets" else self.commits
        if self.put_if_absent and step.batch in log:
            raise TakenError(f"{step.log}/{step.batch}")
        log[step.batch] = step.text
        if step.log == "commits" and self.retains is not None:
            for entries in (self.offsets, self.commits):
                for old in [batch for batch in entries if batch < step.batch - self.retains]:
                    del entries[old]

    def has(self, step: Write) -> bool:
        """Whether an entry is there, with this text."""
        return (self.offsets if step.log == "offsets" else self.commits).get(step.batch) == step.text

    @property
    def ends(self) -> tuple[int, int]:
        return max(self.offsets, default=-1), max(self.commits, default=-1)


@dataclass
class Commit:
    """A batch that a driver has committed."""

    driver: str
    batch: int
    range: tuple[int, int]


class World:
    """A store, the drivers on it, and what they have done."""

    def __init__(
        self, store: Store | None = None, *, writes_are_quick: bool = True, clocks_go_on: bool = False
    ) -> None:
        """`writes_are_quick`: what a driver writes after it has looked is there before a newcomer's wait is over.
        `clocks_go_on`: who stands still meanwhile sees by a clock that its look is old; so it is where writes are
        quick."""
        self.store = store or Store()
        self.writes_are_quick = writes_are_quick
        self.clocks_go_on = clocks_go_on or writes_are_quick
        self.drivers: list[Driver] = []
        self.commits: list[Commit] = []
        self.sunk: list[tuple[str, Sink]] = []
        self.taken: list[str] = []
        """Drivers, in the order in which they have taken the checkpoint."""
        self.steps = 0

    def driver(self, name: str, **how: Any) -> Driver:
        made = Driver(self, name, **how)
        self.drivers.append(made)
        return made

    def holders(self) -> list[Driver]:
        """Return who may write the logs: it has taken the checkpoint, and its epoch is there."""
        return [each for each in self.drivers if each.epoch is not None and each.epoch in self.store.beside]


@dataclass
class Driver:
    """One driver: takes the fence, runs batches, leaves."""

    world: World
    name: str
    per_batch: int = 1
    batches: int = 2
    is_fenced: bool = True
    looks: bool = True
    looks_after: bool = True
    """Also when an entry of the offset log is written, before its batch runs."""
    dead: frozenset[str] = frozenset()
    """Drivers that this one knows to be dead."""
    leaves: bool = True
    take_over_seconds: float = 0.0
    clock: Callable[[], int] = lambda: 0

    def __post_init__(self) -> None:
        self.epoch: str | None = None
        self.end: str | None = None
        """How it has ended."""
        self.is_trusted = False
        """Whether it may write without a look."""
        self._steps = self._life()
        self._answer: Any = None
        self._error: Exception | None = None
        self._next: Step | None = None
        self._advance()

    @property
    def is_over(self) -> bool:
        return self._next is None

    @property
    def next(self) -> Step | None:
        """What it is about to do."""
        return self._next

    def step(self) -> None:
        """Carry out what it is about to do."""
        assert self._next is not None
        self.world.steps += 1
        try:
            self._answer, self._error = self._carried_out(self._next), None
        except TakenError as error:
            self._answer, self._error = None, error
        self._advance()

    def loses(self, *, is_carried_out: bool) -> None:
        """The same, and the answer is lost, or the step itself."""
        assert self._next is not None
        if is_carried_out:
            with suppress(TakenError):
                self._carried_out(self._next)
        self._answer, self._error = None, LostError()
        self._advance()

    def dies(self) -> None:
        """It does nothing any more."""
        self._next, self.end = None, "dead"

    def answers(self) -> Generator[Step, Any, None]:
        """What the timer of its JVM does at one look, as `SignOfLife.java` has it; the model takes its steps."""
        if self.epoch is None or (yield IsThere(sign := sign_of(self.epoch))):
            return
        if (yield IsThere(self.epoch)):
            yield Sign(sign)
            if self.epoch is None or not (yield IsThere(self.epoch)):
                yield Delete(sign)

    def looks_for_knocks(self) -> None:
        """Have its timer look, all at once."""
        steps, answer = self.answers(), None
        with suppress(StopIteration):
            while True:
                answer = self._carried_out(steps.send(answer))

    def _advance(self) -> None:
        try:
            self._next = (
                self._steps.throw(self._error) if self._error is not None else self._steps.send(self._answer)
            )
        except StopIteration as over:
            self._next, self.end = None, over.value

    def _carried_out(self, step: Step) -> Any:
        store = self.world.store
        match step:
            case Names():
                return list(store.beside)
            case Read(name):
                return store.beside.get(name)
            case Create(name, text):
                assert name not in store.beside
                store.beside[name] = text
            case Delete(name):
                store.beside.pop(name, None)
            case LogEnds():
                return store.ends
            case IsThere(name):
                return name in store.beside
            case IsOurs(entry):
                return store.has(entry)
            case Write():
                store.write(step)
            case Sign(name):
                store.beside[name] = ""
            case Sink():
                self.world.sunk.append((self.name, step))
            case Sleep(owner=None) if self.world.clocks_go_on:
                for other in self.world.drivers:
                    if other is not self and other.is_trusted:
                        other.is_trusted = False
                        if self.world.writes_are_quick and isinstance(other.next, Write):
                            other.step()
        return None

    def _life(self) -> Generator[Step, Any, str]:
        if self.is_fenced:
            try:
                yield from self._take()
            except AliveError:
                return "refused"
        self.world.taken.append(self.name)
        try:
            yield from self._run()
        except TakenError:
            return "taken"
        except PermissionError:
            return "fenced"
        except LostError:
            return "failed"
        if self.epoch is not None and self.leaves:
            left, self.epoch = self.epoch, None
            try:
                yield Delete(left)
                yield Delete(sign_of(left))
            except LostError:
                return "left something"
        return "ended"

    def _take(self) -> Generator[Step, Any, None]:
        """Take the checkpoint as `Fencing` does: a step that fails is begun anew, under another name."""
        attempts = count()
        while self.epoch is None:
            token = f"{next(attempts)}a{self.name.encode().hex()}"
            try:
                self.epoch = (yield from take(self._newcomer(token))).name
            except LostError:
                with suppress(LostError):
                    for epoch in epochs_among((yield Names())):
                        if epoch.token == token:
                            yield Delete(epoch.name)

    def _newcomer(self, token: str) -> Newcomer:
        return Newcomer(
            owner=Owner(application=self.name, host=self.name),
            token=token,
            is_dead=lambda _, owner: owner.application in self.dead,
            now_millis=self.clock,
            take_over_seconds=self.take_over_seconds,
        )

    def _run(self) -> Generator[Step, Any, None]:
        planned, committed = yield LogEnds()
        start = 0
        if planned >= 0:
            start, end = _range(self.world.store.offsets[planned])
            if planned > committed:
                yield from self._batch(planned, (start, end))
            start = end
        for batch in range(planned + 1, planned + 1 + self.batches):
            taken = (start, start + self.per_batch)
            yield from self._look()
            yield from self._write(Write("offsets", batch, f"{taken[0]}-{taken[1]}"))
            if self.looks_after:
                yield from self._look()
            yield from self._batch(batch, taken)
            start = taken[1]

    def _batch(self, batch: int, taken: tuple[int, int]) -> Generator[Step, Any, None]:
        yield Sink(batch, taken)
        yield from self._look()
        yield from self._write(Write("commits", batch, "v1"))
        self.world.commits.append(Commit(self.name, batch, taken))

    def _write(self, entry: Write) -> Generator[Step, Any, None]:
        """Write an entry as `ConditionalEntry.java` does: where nobody says what came of it, it is read back."""
        try:
            yield entry
        except LostError:
            if not (yield IsOurs(entry)) or (self.epoch is not None and not (yield IsThere(self.epoch))):
                raise

    def _look(self) -> Generator[Step, Any, None]:
        if self.epoch is None or not self.looks or self.is_trusted:
            return
        if not (yield IsThere(self.epoch)):
            raise PermissionError(self.epoch)
        self.is_trusted = True


def sign_of(epoch: str) -> str:
    """Return the name of the sign that belongs to an epoch."""
    return epoch.replace("epoch", "sign", 1)


def _range(text: str) -> tuple[int, int]:
    start, _, end = text.partition("-")
    return int(start), int(end)


# Laws ------------------------------------------------------------------------------------------------


def check_cover(world: World) -> None:
    """The offset log says what was committed: each batch once, each range where the last one ends."""
    store = world.store
    assert sorted(store.offsets) == list(range(len(store.offsets)))
    assert set(store.commits) <= set(store.offsets)
    ranges = [_range(store.offsets[batch]) for batch in sorted(store.offsets)]
    assert all(before[1] == after[0] for before, after in pairwise(ranges)), ranges
    for commit in world.commits:
        assert commit.range == ranges[commit.batch], f"{commit} against {ranges[commit.batch]}"


def check_one_range(world: World) -> None:
    """Whoever runs a batch, and whenever, runs the same one."""
    ranges: dict[int, tuple[int, int]] = {}
    for name, sink in world.sunk:
        assert ranges.setdefault(sink.batch, sink.range) == sink.range, f"{name}: {sink}"


def check_order(world: World, *older_first: str) -> None:
    """No driver commits after one that has taken the checkpoint from it has."""
    ranks = [older_first.index(commit.driver) for commit in world.commits]
    assert ranks == sorted(ranks), [(each.driver, each.batch) for each in world.commits]


def check_one_holder(world: World) -> None:
    """At any time one driver at most may write."""
    assert len(world.holders()) <= 1, [each.name for each in world.holders()]


def check_nothing_left(world: World) -> None:
    """Who has left keeps no one waiting."""
    if all(each.end in ("ended", "refused") for each in world.drivers):
        assert not world.store.beside


# Whose turn it is ------------------------------------------------------------------------------------


def every_order(steps: int, drivers: int) -> Iterator[tuple[int, ...]]:
    """Return each sequence of turns of this length."""
    order = [0] * steps
    while True:
        yield tuple(order)
        place = steps - 1
        while place >= 0 and order[place] == drivers - 1:
            order[place] = 0
            place -= 1
        if place < 0:
            return
        order[place] += 1


def run(
    world: World,
    turns: Sequence[int],
    after_each: Callable[[World], None] = check_one_holder,
    last: Sequence[int] = (),
) -> None:
    """Take steps in the order that `turns` says, by the places of drivers; then each driver of `last` to its end."""
    for turn in turns:
        driver = world.drivers[turn % len(world.drivers)]
        if not driver.is_over:
            driver.step()
            after_each(world)
    for place in last or range(len(world.drivers)):
        while not (driver := world.drivers[place]).is_over:
            driver.step()
            after_each(world)
