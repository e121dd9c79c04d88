"""The ports of a run that is to stop: what they cannot write they tell, and a stop does not wait for it.

The loop writes down what it intends before it acts, so that a loop that starts again goes on instead of guessing.
With a full disk it acts no more, and that is right for a start. Whoever presses Ctrl-C wants an end, which nothing
goes on from: it is carried out by what the loop remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from headgate.api.status import SparkApplicationStatus
from headgate.errors import TransientError
from headgate.reconcile.ports import Controls, Event, Ports, Reports, Store
from headgate_contract import ControlDocument

Complain = Callable[[str], None]


def unhindered(ports: Ports, complain: Complain) -> Ports:
    """Return the ports with writes that cannot fail; `complain` is told what was not written."""

    @contextmanager
    def telling() -> Iterator[None]:
        try:
            yield
        except TransientError as error:
            complain(str(error))

    return replace(
        ports,
        controls=_Controls(ports.controls, telling),
        store=_Store(ports.store, telling),
        reports=_Reports(ports.reports, telling),
    )


Telling = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class _Controls:
    behind: Controls
    telling: Telling

    def published(self) -> ControlDocument | None:
        with self.telling():
            return self.behind.published()
        return None

    def publish(self, document: ControlDocument) -> None:
        with self.telling():
            self.behind.publish(document)


@dataclass(frozen=True, slots=True)
class _Store:
    behind: Store
    telling: Telling

    def load(self) -> Mapping[str, Any] | None:
        return self.behind.load()

    def save(self, document: Mapping[str, Any]) -> None:
        with self.telling():
            self.behind.save(document)


@dataclass(frozen=True, slots=True)
class _Reports:
    behind: Reports
    telling: Telling

    def last(self) -> SparkApplicationStatus | None:
        return self.behind.last()

    def write(self, status: SparkApplicationStatus) -> None:
        with self.telling():
            self.behind.write(status)

    def tell(self, event: Event) -> None:
        self.behind.tell(event)
