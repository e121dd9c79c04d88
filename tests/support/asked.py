"""Questions that come in triggers, for tests that put them one by one.

As the shim counts them: a trigger begins with a question to a source that has had its answer in the one before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate_spark.engine.governor import Governor
from headgate_spark.engine.protocol import Asking
from headgate_spark.engine.run import QueryRun
from headgate_spark.planner.model import Answer, Fail, Hold, Position, Survey, Wait
from headgate_spark.planner.query import QueryPlanner

HELD = ("hold", "lease", "fail")


class AskedPlanner(QueryPlanner):
    """A planner that is told when triggers begin; every answer reaches Spark."""

    _told: dict[str, Answer] | None = None

    def admit(self, source: str, start: Position | None, now: float) -> Answer | Survey:
        told = self._told = {} if self._told is None else self._told
        if source in told and not isinstance(told[source], Wait):
            self.trigger_begins([name for name, a in told.items() if not isinstance(a, Hold | Fail)], now)
            told.clear()
        answer = super().admit(source, start, now)
        if not isinstance(answer, Survey):
            told[source] = answer
        return answer

    def plan(self, source: str, latest: Mapping[str, Position | None], now: float) -> Answer:
        answer = super().plan(source, latest, now)
        if self._told is not None:
            self._told[source] = answer
        return answer


@dataclass
class _Shim:
    """What a shim knows of the triggers of one query."""

    number: int = 0
    questions: int = 0
    asked: dict[int, str] = field(default_factory=dict)
    passed: dict[int, int] = field(default_factory=dict)

    def asks(self, handle: int) -> Asking:
        if not self.asked or not self.asked.get(handle, "wait").startswith("wait"):
            self.number += 1
            self.asked.clear()
        self.asked.setdefault(handle, "wait")
        return self.asking()

    def asking(self) -> Asking:
        self.questions += 1
        return Asking(self.number, self.questions, dict(self.passed))

    def answered(self, handle: int, answer: str) -> str:
        self.asked[handle] = answer
        verb = answer.partition(":")[0]
        if verb not in (*HELD, "wait", "survey"):
            self.passed[handle] = self.number
        return answer


_SHIMS: dict[Governor | QueryRun, _Shim] = {}


def admit(asked: Governor | QueryRun, handle: int, start: str | None) -> str:
    """Ask for the first step of a planning of one of the streams of a query."""
    shim = _SHIMS.setdefault(asked, _Shim())
    asking = shim.asks(handle)
    answer = (
        asked.admit(handle, told(asking), start)
        if isinstance(asked, Governor)
        else asked.admit(handle, asking, start)
    )
    return shim.answered(handle, answer)


def plan(asked: Governor | QueryRun, handle: int, latest: str | Mapping[str, str | None]) -> str:
    """Ask for the second step, with what a survey has found: by handle, as an object or in JSON."""
    shim = _SHIMS.setdefault(asked, _Shim())
    asking = shim.asking()
    members = json.loads(latest) if isinstance(latest, str) else latest
    found = {int(stream): offset for stream, offset in members.items()}
    if isinstance(asked, Governor):
        return shim.answered(handle, asked.plan(handle, told(asking), found))
    return shim.answered(handle, asked.plan(handle, asking, found))


def told(asking: Asking) -> str:
    """Return it in the shim's words."""
    return f"{asking.trigger}.{asking.question}:" + ",".join(
        f"{handle}={number}" for handle, number in asking.passed.items()
    )
