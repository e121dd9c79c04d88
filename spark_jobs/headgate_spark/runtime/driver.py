"""The composition root of the planner's process, and what it is asked from outside.

The JVM asks what the shim asks, and tells where it is. `headgate-run` asks for a stop, step by step, since it has a
script to end between two of them, and at the end what is to be said of it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence

import structlog

from headgate_contract import ControlDocument
from headgate_contract.exit_codes import OOM_KILLED, PREVIOUS_END
from headgate_spark import event_time
from headgate_spark.engine import garbage
from headgate_spark.engine.checkpoint import Checkpoint, acquire_lock
from headgate_spark.engine.control_file import ControlFileWatch
from headgate_spark.engine.decoders import look_in
from headgate_spark.engine.directory import HadoopDirectory
from headgate_spark.engine.executors import Executors, look_after
from headgate_spark.engine.fencing import Fencing
from headgate_spark.engine.governor import Governor, verbs
from headgate_spark.engine.oom_kills import OomKills
from headgate_spark.engine.questions import StrangerError, Verb
from headgate_spark.engine.run import QueryRun
from headgate_spark.engine.services import Services
from headgate_spark.engine.shim import DriverJvm, require_protocol
from headgate_spark.engine.side_folder import tolerated
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.task_memory import MemoryGauge
from headgate_spark.exporter import Exporter
from headgate_spark.kafka.event_times import by_clients_of
from headgate_spark.kafka.groups import JvmGroups, client_options
from headgate_spark.kafka.lookups import JvmTopicIds, beginnings
from headgate_spark.kafka.publishing import Publisher
from headgate_spark.kafka.snapshots import snapshots_by_consumers_of
from headgate_spark.kafka.unread import by_consumers_of
from headgate_spark.runtime.answers import End, Stopping, written
from headgate_spark.runtime.fences import open_fence
from headgate_spark.runtime.settings import ProcessSettings

log = structlog.get_logger("headgate")

NAMESPACE = "spark.kubernetes.namespace"
"""Where a driver in a cluster has its executors made: its own."""
DEFAULT_GRACE_SECONDS = ControlDocument(generation=0).grace_period_seconds
LOOK_SECONDS = 0.1
SETTLE_MILLIS = 5_000
"""How long the end of a driver waits until Spark has told of all queries that have ended."""


class Runtime:
    """Everything that lives beside a driver."""

    def __init__(self, settings: ProcessSettings) -> None:
        self._settings = settings
        look_in(settings.py_files, ",")
        self._jvm: DriverJvm | None = None
        self._oom_kills: OomKills | None = None
        self._gauge: MemoryGauge | None = None
        self._wants_to_end = threading.Event()
        self._exporter = Exporter(settings.application, settings.lineage)
        self._publisher = Publisher(
            lambda options: JvmGroups(self._driver.view, client_options(options)), self._full_name
        )
        services = Services(
            acquire_lock=lambda checkpoint: acquire_lock(self._driver.view, checkpoint, settings.pid),
            open_checkpoint=self._open_checkpoint,
            open_fence=self._open_fence,
            observer=self._exporter,
            gauge=lambda: self._gauge,
            give_up=self._wants_to_end.set,
            stop_query=lambda run_id: self._driver.stop(run_id),  # noqa: PLW0108 -- it is not there yet
            running=lambda: self._driver.running(),  # noqa: PLW0108
            positions=self._publisher,
            find_beginnings=lambda options, partitions: beginnings(self._driver.view, options, partitions),
            open_topic_ids=lambda options: JvmTopicIds(self._driver.view, options),
            file_bytes=lambda handle: self._driver.file_bytes(handle),  # noqa: PLW0108
            event_times=lambda: by_clients_of(self._driver.view),
            unread=lambda: by_consumers_of(self._driver.view),
            snapshots=lambda: snapshots_by_consumers_of(self._driver.view),
            control=settings.control,
            recall=self._recall,
            wall_clock=time.time,
        )
        self.governor = Governor(services, follows_oom_kill=os.environ.get(PREVIOUS_END) == OOM_KILLED)
        self.executors = Executors(between_batches=lambda: self.governor.table.is_between_batches)
        self._control = None
        if settings.control is not None:
            self._control = ControlFileWatch(
                settings.control,
                on_taken=self.governor.documents.took,
                on_document=self._take_document,
                on_refusal=self.governor.documents.refuse,
                on_look=self.governor.deliver,
            )

    def start(self) -> int:
        """Start everything that does not need Spark yet; returns the port of the metrics. Raises OSError."""
        port = self._exporter.serve(
            self.governor, self.executors, self._settings.metrics_port, self._settings.metrics_address
        )
        self.executors.start()
        if self._control is not None:
            self._control.start()
        log.info("metrics are served", port=port)
        return port

    def verbs(self) -> Mapping[str, Verb]:
        def await_wish() -> None:
            self._wants_to_end.wait()

        of_the_shim = {name: self._of_this_driver(verb) for name, verb in verbs(self.governor).items()}
        of_the_shim["ended"] = garbage.then_look(of_the_shim["ended"])
        of_the_launcher: dict[str, Verb] = {
            "stop_planning": self._stop_planning,
            "await_boundaries": self._await_boundaries,
            "stop_queries": self._stop_queries,
            "await_wish": await_wish,
            "end": self._end,
            "decoder": event_time.take,  # may come before there is a JVM
        }
        of_both: dict[str, Verb] = {"attached": self._attached, "stop": self._stop, "answers": lambda: None}
        return of_the_shim | of_the_launcher | of_both

    def jvm_is_gone(self) -> None:
        """Note, as far as it is known, what the JVM has died of; it is not there to be asked."""
        killed = None if self._oom_kills is None else self._oom_kills.tell()
        if killed:
            self.governor.endings.jvm_ran_out_of_memory(certain=True)

    # What the JVM asks -----------------------------------------------------------------------

    def _of_this_driver(self, verb: Verb) -> Verb:
        def asked(*fields: str | None) -> str | None:
            if self._jvm is None:
                raise StrangerError
            return verb(*fields)

        return asked

    def _attached(self, driver: str) -> None:
        """A driver is there, or has another context now. Raises `ShimMismatchError`."""
        from headgate_spark.runtime.gateway import connect

        members = json.loads(driver)
        require_protocol(members["protocol"])
        jvm = connect(members["gatewayPort"], members["gatewayToken"])
        self._gauge = MemoryGauge(jvm)
        self._exporter.spark_is(members["spark"])
        look_after(self.executors, jvm)
        if self._settings.follows_jvm:
            self._oom_kills = OomKills(members["pid"])
        self._jvm = jvm

    def _stop(self) -> None:
        """Stop every query at a batch boundary."""
        self._stop_planning()
        self._await_boundaries()
        self._stop_queries()
        self._publisher.close()

    # What `headgate-run` asks ----------------------------------------------------------------

    def _stop_planning(self) -> str:
        """Plan nothing more. Returns what there is to stop."""
        runs = self.governor.stop()
        every = [*runs, *self.governor.endings.runs]
        if runs or not self._settings.follows_jvm:  # else a JVM has just ended
            log.info("stopping at the next batch boundary", queries=[run.name for run in runs])
        ends = bool(every) and all(run.ends_by_itself for run in every)
        some = any(run.ends_by_itself for run in runs)
        return written(Stopping([run.name for run in runs], ends, some))

    def _await_boundaries(self) -> None:
        document = self.governor.documents.newest
        grace = DEFAULT_GRACE_SECONDS if document is None else document.grace_period_seconds
        deadline = time.monotonic() + grace
        self._await_taken_up(deadline)
        await_boundaries(self.governor.runs, deadline)

    def _await_taken_up(self, deadline: float) -> None:
        """Wait until every query that runs is known: of one that another process has planned, the JVM tells at the
        end of its batch."""
        while time.monotonic() < deadline:
            try:
                running = set() if self._jvm is None else self._jvm.running()
            except Exception as error:  # a JVM that is ending answers in many ways
                log.debug("the JVM could not be asked what runs", error=str(error))
                return
            if running <= {run.run_id for run in self.governor.runs}:
                return
            time.sleep(LOOK_SECONDS)

    def _stop_queries(self) -> None:
        runs = self.governor.runs
        self.governor.cut()
        stop_queries(runs)

    def _end(self, wants_memory: str) -> str:
        """The script has ended. `wants_memory` says whether the JVM has died for want of memory: `yes`, `no` or
        `unknown`. Returns what is to be said of the end."""
        self._publisher.close()
        self._settle()
        governor, endings = self.governor, self.governor.endings
        if governor.table.has_had_any and wants_memory != "no":
            endings.jvm_ran_out_of_memory(certain=wants_memory == "yes")
        return written(
            End(
                has_seen_query=governor.table.has_had_any,
                unread=endings.unread,
                explanations=endings.explanations,
                checkpoint_in_use=endings.checkpoint_in_use,
                gave_up=endings.gave_up,
                too_large=[found.message for found in endings.too_large.values()],
                unnoted_memory=sorted(endings.unnoted_memory),
                cut_short=sorted(set(endings.cut_short.values())),
            )
        )

    # -----------------------------------------------------------------------------------------

    @property
    def _driver(self) -> DriverJvm:
        if self._jvm is None:
            raise StrangerError
        return self._jvm

    def _settle(self) -> None:
        """Wait until Spark has told of all that has happened."""
        with tolerated("Spark could not be asked for its last events"):
            if self._jvm is not None:
                self._jvm.shim("Shim").settle(SETTLE_MILLIS)

    def _take_document(self, document: ControlDocument) -> None:
        self.governor.take_document(document)
        self.executors.want(document.executor_instances)

    def _recall(self) -> None:
        """Let the shim ask anew, if there is a JVM yet."""
        if self._jvm is None:
            return
        try:
            self._jvm.recall()
        except Exception:  # a JVM that is ending answers in many ways
            log.warning("leases could not be recalled; they end within two seconds", exc_info=True)

    def _open_checkpoint(self, described: Descriptor) -> Checkpoint:
        jvm, files = self._driver.view, self._driver.files_of(described.run_id)
        return Checkpoint(described.checkpoint, lambda uri: HadoopDirectory(jvm, files, uri))

    def _open_fence(self, described: Descriptor, checkpoint: Checkpoint, is_locked: bool) -> Fencing | None:
        name = self._full_name()
        return open_fence(described, checkpoint, self._driver, application=name, is_locked=is_locked)

    def _full_name(self) -> str:
        """Say whose positions are published, where two applications in a cluster may have one name."""
        namespace = self._driver.context.conf().get(NAMESPACE, "")
        return f"{namespace}/{self._settings.application}" if namespace else self._settings.application


def await_boundaries(runs: Sequence[QueryRun], deadline: float) -> None:
    """Wait until no query is in a batch any more, `deadline` (`time.monotonic`) at the latest.

    All of them, before one is stopped: many a job ends with the first of its queries, and what another one is doing
    ends with it.
    """
    for run in runs:
        if run.started.governed and not run.at_boundary.wait(max(0.0, deadline - time.monotonic())):
            log.warning(
                "the grace period has passed; stopped in mid-batch, that batch repeats", query=run.name
            )


def stop_queries(runs: Sequence[QueryRun]) -> None:
    """Stop the queries, side by side; those that are cut end by themselves."""
    stops = [threading.Thread(target=_stop, args=(run,), daemon=True) for run in runs if not run.is_cut]
    for stop in stops:
        stop.start()
    for stop in stops:
        stop.join()


def _stop(run: QueryRun) -> None:
    with tolerated("query could not be stopped", query=run.name):  # the job may be ending the session as well
        run.started.stop()
        log.info("query stopped", query=run.name)
