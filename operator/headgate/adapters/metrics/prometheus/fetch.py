"""The queries of a tick, a few at a time.

Two at once keep a Prometheus busy whose answers take as long to write as to read; more would only compete with
its scrapes.

What drivers bring into Prometheus is their own, and one answer has the series of all of them. So where it is larger
than is read, the namespace of the driver with most of it is left out for a while, and the others are asked for again.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from functools import partial
from itertools import islice

import structlog

from headgate.adapters.metrics.prometheus.answer import (
    Decoder,
    Labels,
    LabelsT,
    QueryFailure,
    SeriesDecoder,
    TooMuch,
    Vector,
    VectorDecoder,
)
from headgate.adapters.metrics.prometheus.client import PrometheusClient, PrometheusOptions, Queried
from headgate.adapters.metrics.prometheus.targets import Pod, TargetLabels, target_labels
from headgate.reconcile.metric_table import IN_EVERY_SCRAPE, Asked, asked
from headgate.reconcile.readings import Column
from headgate.threads import FairThreads
from headgate_contract import metrics
from headgate_contract.metrics import Metric

log = structlog.get_logger("headgate.prometheus")

AT_ONCE = 2

LEFT_OUT_SECONDS = 600.0
"""For how long a namespace is left out, before it is asked for again."""
TRIES = 5
"""Of one query, each without one namespace more."""

EXACT_SECONDS = 0.1
"""Times of scrapes have milliseconds; so much further back is certain to hold all of one."""


class Fetch:
    """Asks what the poller wants to know."""

    def __init__(self, options: PrometheusOptions, queried: Queried) -> None:
        self._matchers = options.matchers
        self._left_out: dict[str, float] = {}
        """Namespaces, and when they are asked for again."""
        self._client = PrometheusClient(options, timeout_seconds=options.timeout_seconds, queried=queried)
        self._threads = FairThreads(AT_ONCE, "prometheus", share=AT_ONCE)
        self._targets = SeriesDecoder(target_labels)
        self._series = VectorDecoder(Labels)

    @property
    def left_out(self) -> frozenset[str]:
        """The namespaces whose series are not asked for: there is too much of them."""
        return frozenset(self._left_out.copy())

    def begin(self, applications: int) -> None:
        """Begin a look at so many applications."""
        now = time.monotonic()
        self._left_out = {name: until for name, until in self._left_out.items() if until > now}
        self._client.expect(applications)

    def scrape_times(self) -> Callable[[], Vector[TargetLabels] | QueryFailure]:
        """Ask when each driver was scraped, with all labels of its target; what is returned waits for the answer."""
        future: Future[Vector[TargetLabels]] = self._threads.call(
            "looks", self._answer, scrape_times, self._targets
        )
        return partial(_result, future)

    def columns(self, at: float, since: float) -> Iterator[tuple[Column, Vector[Labels] | QueryFailure]]:
        """Yield each column as of `at`, or why there is none.

        What was scraped before `since` may be missing: only a server that cannot look back less than usual sends
        it, too.
        """
        lookback = max(0.0, at - since) + EXACT_SECONDS
        *others, exceptions = Column
        # They take a server twice as long as another column: asked for last, they would be waited for alone.
        queries = ((one, self._ask(partial(column_of, one), at, lookback)) for one in (exceptions, *others))
        last = next(queries)
        asked = list(islice(queries, AT_ONCE - 1))
        while asked:  # a column that has been yielded is let go of: all of them at once would be 100 MB
            column, future = asked.pop(0)
            wait([future])
            asked += islice(queries, 1)
            yield column, _result(future)
        yield last[0], _result(last[1])

    def details(
        self, pods: Collection[Pod], at: float, window_seconds: int
    ) -> tuple[Vector[Labels], Vector[Labels]] | QueryFailure:
        """Return the details of some drivers and how fast their records arrive, over a window; or why not."""
        names = {pod.name for pod in pods}
        futures = [
            self._ask(partial(details, names), at),
            self._ask(partial(arrivals, names, window_seconds=window_seconds), at),
        ]
        facts, arrived = (_result(future) for future in futures)
        if isinstance(facts, QueryFailure):
            return facts
        return arrived if isinstance(arrived, QueryFailure) else (facts, arrived)

    def close(self) -> None:
        self._threads.close()
        self._client.close()

    def _ask(
        self, query: Callable[[str], str], at: float, lookback: float | None = None
    ) -> Future[Vector[Labels]]:
        return self._threads.call("looks", self._answer, query, self._series, at, lookback)

    def _answer(
        self,
        query: Callable[[str], str],
        decoder: Decoder[LabelsT],
        at: float | None = None,
        lookback: float | None = None,
    ) -> Vector[LabelsT]:
        """Return the answer to a query, which is given the matchers; raises QueryFailure."""
        left = TRIES
        while True:
            left -= 1
            without = "|".join(sorted(self.left_out))
            matchers = _both(self._matchers, f'namespace!~"{without}"') if without else self._matchers
            try:
                return self._client.ask(query(matchers), decoder, at=at, lookback=lookback)
            except TooMuch as failure:
                if (namespace := failure.namespace) is None or not left:
                    raise
                if namespace not in self._left_out:
                    log.warning(
                        "Prometheus has too many series of this namespace's drivers: they are left out for "
                        f"{LEFT_OUT_SECONDS / 60:.0f} minutes, and nothing is known of its applications",
                        namespace=namespace,
                    )
                self._left_out[namespace] = time.monotonic() + LEFT_OUT_SECONDS


def _result(future: Future[Vector[LabelsT]]) -> Vector[LabelsT] | QueryFailure:
    try:
        return future.result()
    except QueryFailure as failure:
        return failure


FLAGS = tuple(metric for metric in asked(Column.EXCEPTIONS) if metric is not metrics.QUERY_ACTIVE)
"""What is 0 of almost every source at almost every time."""
DETAILS = asked(Asked.FOR_DETAILS)
"""What a status shows and no vote depends on."""


def scrape_times(matchers: str) -> str:
    """Return the query for when each driver was scraped last, with all labels of its target.

    All series of one scrape have one time, and this metric is in every scrape.
    """
    return f"timestamp({_selector([IN_EVERY_SCRAPE], matchers)})"


def column_of(column: Column, matchers: str) -> str:
    """Return the query for a column. In that of exceptions each driver also tells that it is there.

    Else one that has no exceptions could not be told from one of which whoever answered had no scrape: behind one
    address may be several servers, each with scrapes of its own, and series of one scrape may come one by one.
    So flags of 0 may be left out of scrapes, too (`metrics.ONLY_SET`): to pass over them is most of the work.
    """
    match column:
        case Column.EXCEPTIONS:
            ended = f"{_selector([metrics.QUERY_ACTIVE], matchers)} == 0"
            return f"{_selector(FLAGS, matchers)} > 0 or {ended} or {_selector([IN_EVERY_SCRAPE], matchers)}"
        case _:
            return _selector(asked(column), matchers)


def details(pods: Collection[str], matchers: str) -> str:
    return _selector(DETAILS, _both(matchers, _pods(pods)))


def arrivals(pods: Collection[str], matchers: str, window_seconds: int) -> str:
    """Return the query for what came in by source: what was read plus what waits more, per second.

    Both by their slopes. What a commit adds to the one it takes from the other, so their sum is as steady as what
    comes in; `rate` looks at both ends alone, and takes what a young driver has read for that of the whole window. A
    counter that has started over has no slope, and tells nothing.
    """
    matchers = _both(matchers, _pods(pods))
    processed = _selector([metrics.SOURCE_PROCESSED], matchers)
    pending = _selector([metrics.SOURCE_PENDING], matchers)
    window = f"[{window_seconds}s]"
    return f"deriv({processed}{window}) + deriv({pending}{window}) unless resets({processed}{window}) > 0"


def _pods(pods: Collection[str]) -> str:
    one_of = "|".join(sorted(pods))
    return f'pod=~"{one_of}"'


def _selector(names: Sequence[Metric], matchers: str) -> str:
    if len(names) == 1:
        return f"{names[0].name}{{{matchers}}}"
    one_of = "|".join(metric.name for metric in names)
    return "{" + _both(f'__name__=~"{one_of}"', matchers) + "}"


def _both(one: str, other: str) -> str:
    return ",".join(part for part in (one, other) if part)
