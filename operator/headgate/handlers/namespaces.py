"""Which namespaces are served: those to which there are rights, and of which everything has been heard.

A tenant may delete his namespace, or the binding in it, and that is nobody else's trouble. So each namespace is
judged by itself: what is lacking in one is told and looked for again, and the others are served meanwhile. Nothing
is begun in a namespace before all that is there has been heard of, also where its rights come late: a reconcile that
did not know of a living driver would start a second one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from headgate.key import Key

log = structlog.get_logger("headgate.namespaces")

Scope = str | None
"""A namespace; `None`: the whole cluster, which is served as one."""


@dataclass(slots=True)
class Namespaces:
    """What is so of each of them. `names`: those to serve; none: the whole cluster."""

    names: Sequence[str] = ()
    _unserved: dict[Scope, str] = field(default_factory=dict)
    """Why, by namespace."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """What is asked about, listed and compared by itself."""
        return tuple(self.names) or (None,)

    def scope_of(self, key: Key) -> Scope:
        return key.namespace if self.names else None

    def lacks(self, scope: Scope, why: str) -> None:
        """It is not served; said once, and again where the reason is another one."""
        if self._unserved.get(scope) != why:
            log.warning(f"{named(scope)} is not served, and what runs there is left alone: {why}")
        self._unserved[scope] = why

    def has_all(self, scope: Scope) -> None:
        """Nothing keeps it from being served."""
        if self._unserved.pop(scope, None) is not None:
            log.info(f"{named(scope)} can be served again")

    def is_served(self, scope: Scope) -> bool:
        """Whether nothing is known to keep it from being served."""
        return scope not in self._unserved

    def unserved(self) -> int:
        """Return how many are not served; from any thread."""
        return len(self._unserved)


@dataclass(slots=True)
class Barrier:
    """Keeps the applications of a namespace waiting until everything in it has been heard of.

    It opens once for each namespace. Rights that go and come again leave it open: every driver that is there was
    made by us, and is known from the answer to its creation.
    """

    namespaces: Namespaces
    admit: Callable[[Key], None]
    """Queues an application."""
    _open: set[Scope] = field(default_factory=set)
    _waiting: dict[Key, None] = field(default_factory=dict)
    """They keep the order in which they came."""

    def add(self, key: Key) -> None:
        """Something was heard of an application."""
        if self.lets_in(key):
            self.admit(key)
        else:
            self._waiting[key] = None

    def is_open(self, scope: Scope) -> bool:
        """Whether everything in it has been heard of at some time."""
        return scope in self._open

    def lets_in(self, key: Key) -> bool:
        """Whether everything in the namespace of an application has been heard of at some time."""
        return self.is_open(self.namespaces.scope_of(key))

    def open(self, scope: Scope) -> None:
        """Everything in it has been heard of: who waits is queued."""
        self._open.add(scope)
        for key in [key for key in self._waiting if self.namespaces.scope_of(key) == scope]:
            del self._waiting[key]
            self.admit(key)


def named(scope: Scope) -> str:
    """Return a namespace as a sentence names it."""
    return "the cluster" if scope is None else f"namespace {scope}"
