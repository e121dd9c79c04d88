"""What shows only over time: how fast records come in, and what keeps a source from reading.

A scrape is a moment. The arrival rate is a difference between two moments, and so is being held: the driver
counts held seconds by reason, and the reason whose count grew is the one that holds now. A track is kept from
one tick to the next and not over a restart of the loop: it is measured anew within a minute.

Prometheus is looked at less often than a source is held and let go. So what the driver itself tells of the last
minute is taken from there, and nothing depends on when the loop looked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headgate.decision.estimate import Progress, arrival_rate
from headgate.reconcile.readings import QueryMetrics, SourceMetrics
from headgate_contract.held import HeldBy, holds_back

WINDOW_SECONDS = 60.0
"""Over how long arrivals are averaged. Long enough that a tick more or less does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One run of one query, as far as it was watched."""

    attempt: int | None = None
    at: float | None = None
    marks: tuple[Progress, ...] = ()
    """Moments at which something had changed; at least one of them from before the window, if there was."""
    held_seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    held_by: Mapping[str, str | None] = field(default_factory=dict)
    """By source: the reason that holds it back now; `None` where it reads at its normal pace."""

    @property
    def arrival_rate(self) -> float | None:
        """Records per second that came in; `None` until there are two moments to compare."""
        return arrival_rate(self.marks[0], self.marks[-1]) if len(self.marks) > 1 else None

    def following(self, query: QueryMetrics, *, attempt: int, at: float) -> "Track":
        """Return the track after `query` was reported at `at`; a new attempt starts a new one, as does a clock that
        was set back."""
        if attempt != self.attempt or (self.at is not None and at < self.at):
            return Track(attempt=attempt).following(query, attempt=attempt, at=at)
        held_by = {name: self._held_by(name, source) for name, source in query.sources.items()}
        if self.at is not None and at <= self.at:
            lately = (source.held_lately for source in query.sources.values())
            return self if None in lately else replace(self, held_by=held_by)
        return Track(
            attempt=attempt,
            at=at,
            marks=_extended(self.marks, _progress(query, at)),
            held_seconds={name: source.held_seconds for name, source in query.sources.items()},
            held_by=held_by,
        )

    def _held_by(self, name: str, source: SourceMetrics) -> str | None:
        if source.paused:
            return HeldBy.PAUSED.value
        before = self.held_seconds.get(name)
        if source.held_lately is not None:
            return longest_hold(source.held_lately)
        if before is None:
            return None
        return longest_hold(
            {reason: seconds - before.get(reason, 0.0) for reason, seconds in source.held_seconds.items()}
        )


def longest_hold(held: Mapping[str, float]) -> str | None:
    """Return the remarkable reason that held for longest; `None` where none did."""
    remarkable = {reason: held[reason] for reason in held if holds_back(reason) and held[reason] > 0}
    return max(remarkable, key=lambda reason: remarkable[reason], default=None)


def _extended(marks: tuple[Progress, ...], mark: Progress) -> tuple[Progress, ...]:
    """Add a moment in which something changed, and drop what lies before the window but for one."""
    records = mark.processed_records, mark.pending_records
    if marks and (marks[-1].processed_records, marks[-1].pending_records) == records:
        return marks
    start = mark.t - WINDOW_SECONDS
    while len(marks) > 1 and marks[1].t <= start:
        marks = marks[1:]
    return (*marks, mark)


def _progress(query: QueryMetrics, at: float) -> Progress:
    sources = query.sources.values()
    return Progress(
        t=at,
        processed_records=total(source.processed_records for source in sources),
        pending_records=total(source.pending_records for source in sources),
    )


def total(values: Iterable[float | None]) -> float | None:
    """Return the sum; unknown where one is, and where there is nothing to add up."""
    known = list(values)
    return None if not known or None in known else sum(value for value in known if value is not None)
