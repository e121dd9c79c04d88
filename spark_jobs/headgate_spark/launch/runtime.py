"""The runtime's composition root: the one place where its parts are put together."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from headgate_contract import ControlDocument
from headgate_contract.exit_codes import OOM_KILLED, PREVIOUS_END
from headgate_spark.engine import shim
from headgate_spark.engine.alignment import DriverAlignment
from headgate_spark.engine.checkpoint import Checkpoint, CheckpointLock, HadoopCheckpoint, acquire_lock
from headgate_spark.engine.control_file import ControlFile
from headgate_spark.engine.executors import Executors, look_after
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.task_memory import MemoryGauge, SparkMemoryGauge
from headgate_spark.exporter.server import Exporter
from headgate_spark.kafka.event_times import by_clients_of
from headgate_spark.kafka.groups import JvmGroups, client_options
from headgate_spark.kafka.lookups import JvmLookups, beginnings
from headgate_spark.kafka.publishing import Publisher
from headgate_spark.kafka.topics import JvmTopicIds
from headgate_spark.launch.jvm import oom_kills, ran_out_of_memory
from headgate_spark.launch.oom_kills import OomKills
from headgate_spark.launch.session import wrap_pyspark
from headgate_spark.launch.stopping import Stopper

log = structlog.get_logger("headgate")

NAMESPACE = "spark.kubernetes.namespace"
"""Where a driver in a cluster has its executors made: its own."""
DEFAULT_GRACE_SECONDS = ControlDocument(generation=0).grace_period_seconds


class Runtime:
    """Everything that lives beside the script in the driver's Python process."""

    def __init__(self, application: str, control: Path | None) -> None:
        self.application = application
        self._context: Any = None
        self._oom_kills: OomKills | None = None
        self._gauge: MemoryGauge | None = None
        self._exporter = Exporter(application)
        self._publisher = Publisher(
            lambda options: JvmGroups(self._context._jvm, client_options(options)), self._full_name
        )
        self.governor = Governor(
            acquire_lock=self._acquire_lock,
            open_checkpoint=self._open_checkpoint,
            observer=self._exporter,
            gauge=lambda: self._gauge,
            give_up=self._give_up,
            positions=self._publisher,
            find_beginnings=lambda options, splits: beginnings(self._look_up(options), splits),
            open_topic_ids=lambda options: JvmTopicIds(self._context._jvm, options),
            file_bytes=lambda handle: shim.file_bytes(self._context, handle),
            alignment=DriverAlignment(lambda: by_clients_of(self._context._jvm)),
            recall=self._recall,
            wall_clock=time.time,
            follows_oom_kill=os.environ.get(PREVIOUS_END) == OOM_KILLED,
        )
        self.executors = Executors(between_batches=lambda: self.governor.between_batches)
        self.stopper = Stopper(self.governor, grace_seconds=self._grace_seconds)
        self._control = None if control is None else self._watch(control)

    def start(self, metrics_port: int, metrics_address: str) -> int:
        """Start everything that does not need Spark yet; returns the port of the metrics."""
        wrap_pyspark(self.governor, self._register, self.stopper.no_leaving, self.stopper.unfinished)
        self.stopper.install()
        self.stopper.start()
        self.executors.start()
        if self._control is not None:
            self._control.start()
        port = self._exporter.serve(self.governor, self.executors, metrics_port, metrics_address)
        log.info("metrics are served", port=port)
        return port

    def end(self) -> None:
        """Finish what goes on behind the script's back; called when it has ended."""
        self._publisher.close()
        self.governor.look_after_queries()
        if not self.governor.has_seen_a_query:
            return
        wants_memory = ran_out_of_memory(self._context, self._oom_kills)
        if wants_memory is not False:
            self.governor.jvm_ran_out_of_memory(certain=wants_memory is True)

    def _watch(self, path: Path) -> ControlFile:
        return ControlFile(
            path,
            on_document=self._take_document,
            on_refusal=self.governor.count_refusal,
            on_look=self.governor.deliver,
        )

    def _take_document(self, document: ControlDocument) -> None:
        self.governor.take_document(document)
        self.executors.want(document.executor_instances)

    def _register(self, context: Any) -> None:
        """Make the governor the planner of the JVM behind `context`, once."""
        if context is self._context:
            return
        shim.register(context, self.governor)
        self._context = context
        self._oom_kills = oom_kills(context)
        self._gauge = SparkMemoryGauge(context)
        self._exporter.spark_is(context.version)
        look_after(self.executors, context)
        self.stopper.install()

    def _give_up(self) -> None:
        self.stopper.ask()

    def _recall(self) -> None:
        """Let the shim ask anew, if there is a JVM yet."""
        if self._context is None:
            return
        try:
            shim.recall(self._context)
        except Exception:  # a JVM that is ending answers in many ways
            log.warning("leases could not be recalled; they end within two seconds", exc_info=True)

    def _look_up(self, options: Mapping[str, str]) -> JvmLookups:
        return JvmLookups(self._context._jvm, options)

    def _full_name(self) -> str:
        """Return the application with its namespace, where it is in a cluster."""
        namespace = self._context.getConf().get(NAMESPACE)
        return self.application if namespace is None else f"{namespace}/{self.application}"

    def _acquire_lock(self, checkpoint: str) -> CheckpointLock | None:
        return acquire_lock(self._context._jvm, checkpoint)

    def _open_checkpoint(self, checkpoint: str) -> Checkpoint:
        return HadoopCheckpoint(self._context._jvm, self._context._jsc.hadoopConfiguration(), checkpoint)

    def _grace_seconds(self) -> float:
        document = self.governor.document
        return DEFAULT_GRACE_SECONDS if document is None else document.grace_period_seconds
