"""How long a run's triggers have waited inside themselves: Spark counts that to the batch that follows.

A planner may have a trigger wait (`planner.model.Wait`), which is no work. What a batch took is told without it.
"""

from __future__ import annotations


class Waits:
    """The waits of one run. Times are seconds of the run's clock."""

    def __init__(self) -> None:
        self.before = 0.0
        """Seconds in the trigger before this one: the one whose batch is reported next."""
        self._now = 0.0
        self._since: float | None = None

    def begin(self, now: float) -> None:
        """The shim is told to wait, and to ask again."""
        self._since = now

    def ended(self, now: float) -> None:
        """A source is asked in the same trigger: if it was told to wait, that is over."""
        since, self._since = self._since, None
        self._now += 0.0 if since is None else now - since

    def trigger_begins(self) -> None:
        """The first source of a new trigger is asked. A wait that was not followed by a question was none."""
        self.before, self._now, self._since = self._now, 0.0, None
