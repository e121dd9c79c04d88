"""One operator process, from its start to its exit.

It waits until it may do its work, then for the lease; only then does it watch, and only when it has heard of all
that is there does it act. On SIGTERM it begins nothing new, finishes the reconciles that run, gives up the lease, and
exits with 0. Whatever else ends it ends it quickly, with 1: everything is level-based, so that starting again is the
remedy, and no state in between is worth defending. A lost lease ends it at once, whatever it was about to do.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

import structlog
from prometheus_client.exposition import choose_encoder
from structlog.typing import EventDict, Processor, WrappedLogger

from headgate import __version__
from headgate.factory.cluster import ClusterOperator, cluster_operator
from headgate.handlers.election import FAILED, Election, end_at_once
from headgate.handlers.health import serve_probes
from headgate.handlers.namespaces import Namespaces
from headgate.handlers.rights import Preflight
from headgate.handlers.service import Instruments, end, service_of
from headgate.settings import LogFormat, LogLevel, Settings, address_parts
from headgate_contract.foreign import printable
from headgate_contract.listening import every_address
from headgate_contract.serving import BoundedServer, FreshPage
from headgate_contract.signals import StopSignals

_QUIET = ("asyncio", "aiohttp.access", "kopf", "urllib3")
"""They have nothing to say at info that is worth a line: Kopf has one for each event that it hands on."""
_FIRST = ("timestamp", "level", "event")


def configure(format_: LogFormat, level: LogLevel, stream: TextIO = sys.stderr) -> None:
    """Send everything that is logged in this process to `stream`."""
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _of_the_library,
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    renderer: Processor = _as_text
    if format_ is LogFormat.JSON:
        renderer = structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _in_order, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(root.level if level is LogLevel.DEBUG else logging.WARNING)
    logging.captureWarnings(True)


_TEXT: Final = structlog.processors.KeyValueRenderer(repr_native_str=False)


def _as_text(logger: WrappedLogger, method: str, event: EventDict) -> str:
    """Return one line: what others wrote ends none and begins none. A traceback's lines are set in."""
    exception = event.pop("exception", None)
    line = printable(str(_TEXT(logger, method, event)))
    if exception is None:
        return line
    return "\n    ".join((line, *printable(str(exception), lines=True).splitlines()))


def _of_the_library(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Name the object that a line of Kopf is about."""
    record = event.get("_record")
    about = getattr(record, "k8s_ref", None)
    if isinstance(about, dict) and about.get("name"):
        event["object"] = f"{about.get('kind', 'object')} {about.get('namespace', '')}/{about['name']}"
    return event


def _in_order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Put first what a person looks for first."""
    return {**{name: event[name] for name in _FIRST if name in event}, **event}


log = structlog.get_logger("headgate")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SWITCH_SECONDS = 0.0005
"""How long the thread that looks at the metrics may keep the event loop waiting, each time: Python's default is ten
times as long, and a look at ten thousand drivers takes seconds, in which others wait for answers."""


def run_operator(settings: Settings) -> int:
    """Run until it is asked to stop, or cannot go on; returns the exit code."""
    configure(settings.log_format, settings.log_level)
    sys.setswitchinterval(SWITCH_SECONDS)
    return asyncio.run(Process(settings, Instruments.of(settings)).run())


@dataclass(slots=True)
class Process:
    """The order of its life."""

    settings: Settings
    instruments: Instruments
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _signals: StopSignals = field(default_factory=StopSignals)

    async def run(self) -> int:
        """Live through it; returns the exit code."""
        self._hear_signals()
        self._serve_metrics_and_probes()
        beats = asyncio.create_task(self.instruments.health.beats())
        metrics, decision_log = self.instruments.metrics, self.instruments.decision_log
        operator = await cluster_operator(self.settings, metrics, decision_log.decided, decision_log.refused)
        try:
            return await self._live(operator)
        finally:
            await end([beats])
            await operator.close()

    async def _live(self, operator: ClusterOperator) -> int:
        preflight = self._preflight(operator)
        if not await self._unless_stopped(preflight.passed()):
            return 0
        if not self.settings.leader_election:
            return await self._lead(operator, preflight, None)
        election = await Election.of(self.settings, self.instruments.metrics, self.instruments.health)
        try:
            if not await self._unless_stopped(election.win()):
                return 0
            return await self._lead(operator, preflight, election)
        finally:
            await election.close()

    async def _lead(self, operator: ClusterOperator, preflight: Preflight, election: Election | None) -> int:
        """Serve until a stop is asked for; a part that ends before that has failed."""
        self.instruments.metrics.leader.set(1)
        self.instruments.health.leads = True
        service = service_of(operator, self.settings, self.instruments, preflight, self._hear_signals)
        tasks = service.start()
        held = asyncio.Event().wait() if election is None else election.hold()  # without one: for ever
        hold: asyncio.Task[Any] = asyncio.create_task(held, name="lease")
        stop = asyncio.create_task(self._wait_for_stop(), name="stop")
        done, _ = await asyncio.wait([stop, hold, *tasks], return_when=asyncio.FIRST_COMPLETED)
        failed = done - {stop}
        for task in failed:
            log.error(f"cannot go on: {task.get_name()} ended", exc_info=task.exception())
        await service.finish()
        await end([hold, stop])
        if election is not None:
            await election.release()
        await end(tasks)
        return FAILED if failed else 0

    async def _wait_for_stop(self) -> None:
        await self._stop.wait()
        log.info("asked to stop: what runs is finished, and nothing is begun")

    def _preflight(self, operator: ClusterOperator) -> Preflight:
        settings = self.settings
        lease = (settings.lease_namespace, settings.lease_name) if settings.leader_election else None

        def report(obstacle: str) -> None:
            self.instruments.health.obstacle = obstacle

        return Preflight(operator.cluster, Namespaces(settings.namespaces), lease, report)

    def _serve_metrics_and_probes(self) -> None:
        server = BoundedServer(_to_bind(self.settings.metrics_bind_address), FreshPage(self._page))
        server.start("metrics")
        probes = serve_probes(self.instruments.health, _to_bind(self.settings.probe_bind_address))
        log.info(
            "headgate operator",
            version=__version__,
            metrics_port=server.server_port,
            probe_port=probes.server_port,
        )

    def _page(self, accept: str) -> tuple[str, Callable[[], bytes]]:
        encoder, content_type = choose_encoder(accept)
        return content_type, lambda: encoder(self.instruments.metrics.registry)

    def _hear_signals(self) -> None:
        for number in STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._ask_to_stop, number)

    def _ask_to_stop(self, number: int) -> None:
        if not self._signals.is_new_wish(number):
            return
        if self._stop.is_set():
            end_at_once("asked to stop twice")
        self._stop.set()

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do `work` to its end, unless a stop is asked for before; returns whether it was done."""
        task, stop = asyncio.create_task(work), asyncio.create_task(self._stop.wait())
        await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if task.done():
            task.result()
            return True
        await end([task])
        return False


def _to_bind(address: str) -> tuple[str, int]:
    """Return host and port to bind; without a host that is every address of the machine, of both families."""
    host, port = address_parts(address)
    return host or every_address(), port
