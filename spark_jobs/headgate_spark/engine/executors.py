"""As many executors as the control document asks for, in the Spark context that runs.

More is one request, which Spark goes on with. Fewer have to be let go by name: between batches, since one that goes
in mid-batch takes its shuffle files with it, newest first, since the oldest hold the most state. Where batches
follow one another without a gap the surplus goes when it has no task, after `PATIENCE_SECONDS`. A thread of its own
does this: a request waits for Spark's scheduler.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from headgate_spark.engine.shim import DriverJvm
from headgate_spark.engine.side_folder import tolerated

log = structlog.get_logger("headgate")


REFUSAL_SECONDS = 60.0
"""How long what was said counts: Spark asks again much sooner than that for what is missing."""
LONGEST_REFUSAL = 400

_OF_FABRIC8 = re.compile(r"Message: (?P<said>.*?)\.? Received status:", re.DOTALL)
"""The API server's own sentence in the one that Spark's client makes of it."""
_NAMED = re.compile(r'\bpods "[^"]*"')
"""Each request has a pod name of its own: told with it, one refusal would be a new series each second."""


def current(last: str, now: float) -> str | None:
    """Return the sentence in what the shim has heard last, unless it is older than `REFUSAL_SECONDS` at `now`."""
    at, _, said = last.partition(" ")
    if not at or now - float(at) / 1000 > REFUSAL_SECONDS:
        return None
    found = _OF_FABRIC8.search(said)
    sentence = " ".join(_NAMED.sub("pods", said if found is None else found["said"]).split())
    return sentence if len(sentence) <= LONGEST_REFUSAL else f"{sentence[: LONGEST_REFUSAL - 1]}…"


LOOK_SECONDS = 1.0
"""Between two looks at how many there are."""
SURPLUS_LOOK_SECONDS = 0.1
"""The same while some are to go: the time between two batches may be as short."""
PATIENCE_SECONDS = 30.0
"""How long a surplus waits for a moment between batches."""


class Executors:
    """Keeps an `ExecutorPool` at the number that is wanted."""

    def __init__(
        self, *, between_batches: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`between_batches` tells whether no query of the driver has a batch running."""
        self._between_batches = between_batches
        self._clock = clock
        self._pool: ExecutorPool | None = None
        self._instances: int | None = None
        self._initial: int | None = None
        self._seen = 0
        """The most that there were before any were asked for."""
        self._requested: int | None = None
        self._surplus_since: float | None = None
        self._leaving: frozenset[str] = frozenset()
        self._why_not: str | None = None
        self._changed = threading.Event()
        self.running: int | None = None
        """Executors that there are; `None` while that is not known, or where it cannot be changed."""
        self.refused: str | None = None
        """Why the cluster takes no request for those that are missing; `None`: none are, or nothing is known."""

    @property
    def wanted(self) -> int | None:
        """Executors that were asked for; `None` where nobody wants a number, or it cannot be changed."""
        return None if self._pool is None else self._requested

    def want(self, instances: int | None) -> None:
        """Have so many from now on; `None`: as many as the context started with, where that is known."""
        self._instances = instances
        self._changed.set()

    def attach(self, pool: ExecutorPool, *, initial: int | None) -> None:
        """Look after the executors of a context, which starts with `initial`; where it does not say (`None`), with as
        many as are seen before any are asked for."""
        self._pool, self._initial, self._requested, self._seen = pool, initial, None, 0
        self._leaving = frozenset()
        self._changed.set()

    def leave(self, why: str) -> None:
        """Leave them as they are; `why` is told as soon as a number is wanted."""
        self._pool, self._why_not = None, why
        self._changed.set()

    def start(self) -> None:
        """Look after them on a daemon thread."""
        threading.Thread(target=self._run, name="headgate-executors", daemon=True).start()

    def look(self) -> None:
        """Compare what there is with what is wanted, and act."""
        pool = self._pool
        if pool is None:
            if self._why_not is not None and self._instances is not None:
                log.info("executors stay as they are", wanted=self._instances, because=self._why_not)
                self._why_not = None
            return
        names = pool.names()
        if self._requested is None:
            self._seen = max(self._seen, len(names))
        if self._request(pool):
            names = pool.names()
        self.running = len(names)
        wanted = self._initial if self._requested is None else self._requested
        self.refused = pool.refusal() if wanted is not None and self.running < wanted else None
        self._leaving &= frozenset(names)
        staying = [name for name in names if name not in self._leaving]
        surplus = newest(staying, len(staying) - self._requested) if self._requested is not None else []
        if not surplus:
            self._surplus_since = None
            return
        now = self._clock()
        self._surplus_since = now if self._surplus_since is None else self._surplus_since
        if self._between_batches() or now - self._surplus_since >= PATIENCE_SECONDS:
            self._leaving |= frozenset(pool.release(surplus))

    def _request(self, pool: ExecutorPool) -> bool:
        """Ask for what is wanted; returns whether that is another number than before."""
        instances = self._instances
        if instances is None and self._requested is not None:
            instances = self._seen or None if self._initial is None else self._initial
        if instances is None or instances == self._requested:
            return False
        pool.request(instances)
        log.info("executors are asked for", wanted=instances, before=self._requested)
        self._requested = instances
        return True

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except Exception as error:  # a context that is ending answers in many ways
                if self.running is not None:
                    log.debug("executors can no longer be looked at", error=str(error))
                self.running = self.refused = None
            self._changed.wait(LOOK_SECONDS if self._surplus_since is None else SURPLUS_LOOK_SECONDS)
            self._changed.clear()


def newest(names: Sequence[str], count: int) -> list[str]:
    """Return the `count` executors that came last; Spark numbers them as they come."""
    return sorted(names, key=lambda name: (len(name), name))[-count:] if count > 0 else []


class ExecutorPool:
    """The executors of the driver."""

    def __init__(self, jvm: DriverJvm) -> None:
        self._executors = jvm.shim("Executors")
        self._context = jvm.context
        self._refusals: Any = None
        with tolerated("refused executors stay in Spark's log"):  # written by another library than Log4j
            refusals = jvm.shim("ExecutorRefusals")
            refusals.listen()
            self._refusals = refusals

    def names(self) -> list[str]:
        """Return those that have registered and have not left."""
        return _split(self._executors.names(self._context))

    def request(self, total: int) -> None:
        """Ask for so many in all; takes none away."""
        self._executors.request(self._context, total)

    def refusal(self) -> str | None:
        """Return why the cluster has taken no request lately; `None`: it has, as far as is known.

        A quota that is used up, a right that the driver's account has not, an admission policy: nothing comes of such
        a request, so there is no pod to look at. Spark asks again each second, and tells its log alone; the shim
        listens to that.
        """
        return None if self._refusals is None else current(str(self._refusals.last()), time.time())

    def release(self, names: Sequence[str]) -> list[str]:
        """Let these go and do not replace them; returns those that will: one that runs a task may stay."""
        return _split(self._executors.release(self._context, ",".join(names)))


def _split(names: Any) -> list[str]:
    return [name for name in str(names).split(",") if name]


def look_after(executors: Executors, jvm: DriverJvm) -> None:
    """Give `executors` those of a context, or the reason why their number is not ours to change."""
    context = jvm.context
    conf = context.conf()
    if not jvm.shim("Executors").areChangeable(context):
        executors.leave(f"with master {context.master()} the driver does all the work itself")
    elif conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        executors.leave("spark.dynamicAllocation.enabled lets Spark decide; set it to false")
    else:
        initial = conf.get("spark.executor.instances", None)
        executors.attach(ExecutorPool(jvm), initial=None if initial is None else int(initial))
