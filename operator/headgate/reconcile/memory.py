"""What the loop remembers from one tick to the next, and which part of it outlives the loop.

Kept are latches and dwell clocks, the history of the driver's attempts and of its restarts for a backlog, and the
generation last published: without them a restarted loop would decide otherwise than one that had never stopped.
Everything else is measured anew.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from headgate.api.status import SparkApplicationStatus
from headgate.decision.backlog_conf import BacklogConf
from headgate.decision.driver import History
from headgate.decision.memory import Memory as Latches
from headgate.reconcile.ports import Outage, WritePolicy
from headgate.reconcile.readings import DriverMetrics
from headgate.reconcile.track import Track
from headgate_contract import ControlDocument
from headgate_contract.codec import LARGEST_WHOLE, decode, encode
from headgate_contract.lag_votes import Dwell, Latch

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is written down before the loop acts on it."""

    history: History = field(default_factory=History)
    latches: Mapping[str, Latches] = field(default_factory=dict)
    """By query."""
    generation: int = 0
    """The generation of the control document published last."""
    backlog_conf: BacklogConf = field(default_factory=BacklogConf)
    """Whether the driver is to run with `duringBacklog.sparkConf`, and what came of that before."""
    keeps_votes: frozenset[str] = frozenset()
    """Queries that were restarted for no other reason than a verdict, and have not begun to run since: the
    first votes of that run go on from those of the run before."""
    refused: str = ""
    """Digest of why the spec cannot be acted on, as a person was told last; empty: it can."""

    def forgiven(self) -> "Kept":
        """Return it after a person has asked for a new run: what ended the last one counts no more."""
        return replace(self, history=self.history.forgiven()) if self.history.ended else self

    def is_worth_saving(self, saved: "Kept", *, dwell_tolerance_seconds: float) -> bool:
        """Return whether a loop that starts again with `saved` could decide otherwise.

        A dwell clock says at each tick when its value was last known. A loop that starts again only has to
        know that within what it would bear as a gap.
        """
        if self == saved:
            return False
        if _without_clocks(self) != _without_clocks(saved):
            return True
        pairs = zip(_clocks(self), _clocks(saved), strict=True)
        gaps = (abs(now.known_at - then.known_at) for (_, now), (_, then) in pairs)
        return any(gap > dwell_tolerance_seconds for gap in gaps)

    def unchanged_until(self, t: float) -> "Kept":
        """Return it where each value for which a dwell clock runs was looked at until `t`, and was above throughout.

        It is what reconciles at all these looks would have left.
        """

        def latch(one: Latch) -> Latch:
            dwell = one.dwell
            if dwell is None or dwell.frozen_at is not None or dwell.known_at >= t:
                return one
            return replace(one, dwell=replace(dwell, known_at=t))

        return _with_latches(self, latch)

    def clock_at(self, dwells: Mapping[str, float], saved: "Kept", tolerance_seconds: float) -> float | None:
        """Return from when on a dwell clock has something for a reconcile to do, in Unix time; `None`: none runs.

        It has run out, by the seconds that `dwells` has of each query, or what `saved` has of it grows too old.
        A clock that stands still has nothing to do.
        """
        written = dict(_clocks(saved))
        times = [
            min(dwell.since + dwells[latch[0]], written.get(latch, dwell).known_at + tolerance_seconds)
            for latch, dwell in _clocks(self)
            if dwell.frozen_at is None and latch[0] in dwells
        ]
        return min(times, default=None)

    def to_json(self) -> dict[str, Any]:
        """Return a document of JSON types that `from_json` reads back to an equal value."""
        document: dict[str, Any] = {
            "history": encode(self.history),
            "latches": {query: encode(latches) for query, latches in self.latches.items()},
            "generation": self.generation,
            "backlogConf": encode(self.backlog_conf),
            "keepsVotes": sorted(self.keeps_votes),
        }
        if self.refused:
            document["refused"] = self.refused
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any], complain: Callable[[str], None]) -> "Kept":
        """Read a document of `to_json`. A part that is damaged starts afresh, and `complain` is told so."""

        def part(name: str, read: Callable[[Any], T], otherwise: T) -> T:
            try:
                return read(document[name]) if name in document else otherwise
            except (ValueError, TypeError, AttributeError, OverflowError) as problem:
                complain(f"memory of the loop: {name} is damaged ({problem}) and starts afresh")
                return otherwise

        return cls(
            history=part("history", partial(decode, History), History()),
            latches=part("latches", _latches, {}),
            generation=part("generation", _count, 0),
            backlog_conf=part("backlogConf", partial(decode, BacklogConf), BacklogConf()),
            keeps_votes=part("keepsVotes", _names, frozenset()),
            refused=part("refused", _text, ""),
        )


LatchId = tuple[str, str, str]
"""Query, source and voter."""


def _clocks(kept: Kept) -> Iterator[tuple[LatchId, Dwell]]:
    for query in sorted(kept.latches):
        for source in sorted(latches := kept.latches[query].latches):
            for voter in sorted(latches[source]):
                if (dwell := latches[source][voter].dwell) is not None:
                    yield (query, source, voter), dwell


def _without_clocks(kept: Kept) -> Kept:
    return _with_latches(
        kept, lambda one: one if one.dwell is None else replace(one, dwell=replace(one.dwell, known_at=0.0))
    )


def _with_latches(kept: Kept, latch: Callable[[Latch], Latch]) -> Kept:
    def memory(one: Latches) -> Latches:
        sources = {s: {v: latch(found) for v, found in voters.items()} for s, voters in one.latches.items()}
        return replace(one, latches=sources)

    return replace(kept, latches={query: memory(latches) for query, latches in kept.latches.items()})


def _count(document: Any) -> int:
    if type(document) is not int or not 0 <= document <= LARGEST_WHOLE:
        raise ValueError(f"expected a whole number, at least 0, got {document!r:.40}")
    return document


def _names(document: Any) -> frozenset[str]:
    if type(document) is not list or not all(type(name) is str for name in document):
        raise ValueError(f"expected a list of names, got {document!r:.40}")
    return frozenset(document)


def _text(document: Any) -> str:
    if type(document) is not str:
        raise ValueError(f"expected a text, got {document!r:.40}")
    return document


def _latches(document: Any) -> dict[str, Latches]:
    if not isinstance(document, dict):
        raise ValueError(f"expected an object, got {document!r:.40}")  # noqa: TRY004  as of all that is damaged
    return {query: decode(Latches, latches) for query, latches in document.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopMemory:
    """Everything that is carried from one tick to the next."""

    kept: Kept = field(default_factory=Kept)
    saved: Kept = field(default_factory=Kept)
    """What the store has; `kept`, but for clocks that have moved a little."""
    metrics: DriverMetrics | None = None
    """What was heard last of the driver; it counts until it is stale."""
    metrics_of_attempt: int | None = None
    outage: Outage | None = None
    """Why the last try to read metrics failed."""
    tracks: Mapping[str, Track] = field(default_factory=dict)
    """By query."""
    complaints: tuple[tuple[str, str], ...] = ()
    """Reason and message of what the resource asks for in vain, as told last."""
    status: SparkApplicationStatus | None = None
    """As of the last tick."""
    status_written: SparkApplicationStatus | None = None
    status_written_at: float = 0.0
    refresh_at: float = 0.0
    """Unix time from which it is written again for its numbers alone, however little they have moved."""
    tried: ControlDocument | None = None
    """The document that the last reconcile was to publish; `None`: there was nothing to publish."""
    executors_short_since: float | None = None
    """Unix time since which the driver has had fewer executors than it is to have; `None`: it has them."""
    flapping_until: float = 0.0
    """Unix time until which the writes for flapping so far count (`significance`)."""

    def having_written_status(self, write_policy: WritePolicy, now: float) -> "LoopMemory":
        return replace(
            self, status_written=self.status, status_written_at=now, refresh_at=write_policy.refresh_at(now)
        )
