"""L11: nothing secret is told, whatever becomes of an application and of its driver's queries.

Secrets stand where people put them: in properties, arguments and variables, in the options of sources; and in what is
said by whoever fails: the job's log, Spark, the API server. Resources are edited and secrets renewed, drivers
and queries end, writes fail and processes are started again, in any order. After each step everything that others may
read is searched: annotations, status, Events, what drivers are told, metrics, what Spark is told, and the logs.

One life of real parts is `tests/operator_process/test_canaries.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import structlog
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from prometheus_client import CollectorRegistry, generate_latest

from headgate.adapters.kubernetes.client import PODS, Call, Manifest, refusal
from headgate.adapters.kubernetes.pods import is_ended
from headgate.errors import TransientError
from headgate_contract import ControlDocument, QueryControl, SourceControl
from headgate_contract import metrics as m
from headgate_spark.engine.governor import Governor
from headgate_spark.exporter import DriverCollector
from support.asked import admit
from support.engine import begins, services_with
from support.examples import examples
from support.operating import KEY, Operation

MARK = "cAnary"
"""In every secret, and nowhere else."""
RESTART = {"backoff": "2s", "maxBackoff": "10s", "maxRetries": 1000}
WORDS: Mapping[str, Callable[[str], str]] = {
    "address": lambda secret: f"no connection to jdbc:postgresql://app:{secret}@db/x",
    "parameter": lambda secret: f"no connection to jdbc:postgresql://db/x?user=app&password={secret}",
    "option": lambda secret: f"java.lang.IllegalArgumentException: kafka.sasl.jaas.config = {secret}",
    "argument": lambda secret: f"usage: job.py --password {secret}",
    "header": lambda secret: f"401 for Authorization: Bearer {secret}{'x' * 8}",
    "member": lambda secret: f'refused: {{"client_secret": "{secret}", "tries": 3}}',
    "many": lambda secret: "\n".join(f"at line {n}: token={secret}" for n in range(40)),
}
"""What somebody says who fails, around a secret."""
words = st.sampled_from(sorted(WORDS))
SENTENCES = [metric for metric in m.ALL if "cause" in metric.labels]
"""Metrics with a label that says something in words."""


@contextmanager
def logged(to: list[str]) -> Iterator[None]:
    """Put every line of the log into `to`, of whatever level, tracebacks among them."""

    def take(_logger: object, _method: str, event: Any) -> Any:
        to.append(repr(event))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[structlog.processors.format_exc_info, take],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)


class Secrets(RuleBasedStateMachine):
    """An application and its operator on a cluster, and what goes on in its driver."""

    @initialize()
    def begin(self) -> None:
        self.renewed = self.handles = 0
        self.log: list[str] = []
        self.answers: list[str] = []
        self.governor = Governor(services_with(clock=lambda: self.operator.cluster.now))
        self.streams: dict[int, str] = {}
        with logged(self.log):
            self.operator = Operation()
            self.operator.declare(**self.spec())

    def secret(self, place: str) -> str:
        return f"{MARK}{self.renewed}{place}9f3a7c51d0"

    def spec(self, **more: Any) -> dict[str, Any]:
        variables = [{"name": "SMTP_PASSWORD", "value": self.secret("variable")}]
        template = {"spec": {"containers": [{"name": "driver", "env": variables}]}}
        return {
            "main": {
                "file": "local:///opt/app/job.py",
                "arguments": ["--password", self.secret("argument"), f"--token={self.secret('token')}"],
            },
            "sparkConf": {
                "spark.hadoop.fs.s3a.secret.key": self.secret("s3"),
                "spark.sql.catalog.prod.url": f"jdbc:postgresql://db/x?password={self.secret('jdbc')}",
                "spark.sql.streaming.checkpointLocation": f"s3a://AKID:{self.secret('place')}@bucket/checkpoints",
                "spark.executorEnv.API_KEY": self.secret("environment"),
            },
            "driver": {"podTemplate": template},
            "restart": RESTART,
            **more,
        }

    # The operator ---------------------------------------------------------------------------------------

    @rule(
        renews=st.booleans(),
        edit=st.sampled_from(["none", "suspended", "refused", "restarting"]),
    )
    def declare(self, renews: bool, edit: str) -> None:
        self.renewed += renews
        more: Mapping[str, dict[str, Any]] = {
            "none": {},
            "suspended": {"suspend": True},
            "refused": {"main": {"file": f"s3a://AKID:{self.secret('file')}@nowhere"}},
            "restarting": {"executor": {"instances": 3}},
        }
        self.operator.declare(**self.spec(**more[edit]))

    @rule(seconds=st.sampled_from([1.0, 15.0, 120.0]))
    def reconcile(self, seconds: float) -> None:
        with logged(self.log), suppress(TransientError):
            self.operator.reconcile(seconds=seconds)

    @rule(at=st.integers(0, 3), said=words, refuses=st.booleans(), seconds=st.sampled_from([1.0, 70.0]))
    def reconcile_that_fails(self, at: int, said: str, refuses: bool, seconds: float) -> None:
        """The API server, or somebody who is asked by it, says no, or nothing that can be understood."""
        left, text = at, WORDS[said](self.secret("server"))

        def fail(call: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                status = json.dumps({"kind": "Status", "message": text}).encode()
                raise refusal(Call("POST", PODS, call), 403 if refuses else 500, status, None)

        self.operator.cluster.before = fail
        self.reconcile(seconds)
        self.operator.cluster.before = lambda _call: None

    @rule()
    def operator_restarts(self) -> None:
        with logged(self.log):
            self.operator.restart()

    @precondition(lambda self: self.operator.cluster.pods())
    @rule(ready=st.booleans())
    def kubelet_starts_it(self, ready: bool) -> None:
        for pod in self.operator.cluster.pods():
            if not is_ended(pod):
                self.operator.cluster.pod_runs(pod["metadata"]["name"], ready=ready)

    @precondition(lambda self: self.operator.cluster.running)
    @rule(code=st.sampled_from([0, 1, 137]), said=words)
    def driver_ends(self, code: int, said: str) -> None:
        """The end of its log is what its pod says."""
        message = f"ValueError\n{WORDS[said](self.secret('log'))}"
        for pod in self.operator.cluster.pods():
            if pod["metadata"]["uid"] in self.operator.cluster.running:
                self.operator.cluster.pod_ends(pod["metadata"]["name"], code, message=message)

    @rule(said=words, reason=st.sampled_from(["ErrImagePull", "CreateContainerConfigError"]))
    def kubelet_cannot_start_it(self, said: str, reason: str) -> None:
        for pod in self.operator.cluster.pods():
            if not is_ended(pod):
                waiting = {"reason": reason, "message": WORDS[said](self.secret("kubelet"))}
                statuses = [{"name": "driver", "state": {"waiting": waiting}}]
                self.operator.cluster.set_pod(
                    pod["metadata"]["name"], phase="Pending", containerStatuses=statuses
                )

    @rule(said=words, of=st.sampled_from(SENTENCES))
    def metrics_tell(self, said: str, of: m.Metric) -> None:
        """As a driver of another version may, whose words are not looked at before; and they are acted on."""
        values = {"query": "delays", "source": "flights"}
        cause = WORDS[said](self.secret("metrics"))
        labels = {label: values.get(label, cause) for label in of.labels}
        metrics = self.operator.measurements.metrics(KEY)
        metrics.values = [value for value in metrics.values if value[0] != of.name]
        metrics.reports("delays", sources={"flights": {"pending_records": 1.0}})
        metrics.values.append((of.name, {"application": "flights", **labels}, 1.0))
        for _ in range(2):
            self.kubelet_starts_it(ready=True)
            self.reconcile(seconds=15.0)

    # The driver -----------------------------------------------------------------------------------------

    @rule(
        topic=st.sampled_from(["orders", "returns"]),
        setting=st.sampled_from(
            [{}, {"headgate.paused": "true"}, {"headgate.rateLimit.recordsPerSecond": "1x"}]
        ),
    )
    def query_starts(self, topic: str, setting: dict[str, str]) -> None:
        self.handles += 1
        run = f"r{self.handles}"
        described = {
            "handle": self.handles,
            "query": {"id": "1", "runId": run, "name": f"q{self.handles}"},
            "checkpoint": f"s3a://AKID:{self.secret('checkpoint')}@bucket/{run}",
            "format": "kafka",
            "api": "v2",
            "options": {
                "subscribe": topic,
                "kafka.bootstrap.servers": "broker:9092",
                "kafka.sasl.jaas.config": f'PlainLoginModule required password="{self.secret("jaas")}";',
                "kafka.ssl.truststore.password": self.secret("truststore"),
                **setting,
            },
        }
        properties = {"spark.hadoop.fs.s3a.secret.key": self.secret("s3")}
        with logged(self.log):
            begins(self.governor, run=run, name=f"q{self.handles}", properties=properties)
            answer = self.governor.opened(self.handles, json.dumps(described))
        self.answers.append(answer)
        if answer == "ok":
            self.streams[self.handles] = topic

    @precondition(lambda self: self.streams)
    @rule(which=st.integers(0, 9))
    def is_planned(self, which: int) -> None:
        handle = sorted(self.streams)[which % len(self.streams)]
        with logged(self.log):
            self.answers.append(admit(self.governor, handle, json.dumps({self.streams[handle]: {"0": 5}})))

    @precondition(lambda self: self.streams)
    @rule(which=st.integers(0, 9), said=words, is_thrown=st.booleans())
    def source_fails(self, which: int, said: str, is_thrown: bool) -> None:
        handle, text = sorted(self.streams)[which % len(self.streams)], WORDS[said](self.secret("source"))
        with logged(self.log):
            (self.governor.thrown if is_thrown else self.governor.outage)(handle, text)

    @precondition(lambda self: self.streams)
    @rule(which=st.integers(0, 9), said=st.none() | words)
    def query_ends(self, which: int, said: str | None) -> None:
        handle = sorted(self.streams)[which % len(self.streams)]
        del self.streams[handle]
        text = None if said is None else WORDS[said](self.secret("exception"))
        told = (
            None if text is None else json.dumps({"failure": f"java.io.IOException: {text}", "causes": text})
        )
        with logged(self.log):
            self.governor.closed(handle, told)

    @rule(of=st.sampled_from(["q1", "q2", "other"]))
    def document_comes(self, of: str) -> None:
        control = QueryControl(sources={"nowhere": SourceControl(after="orders")})
        with logged(self.log):
            self.governor.take_document(ControlDocument(generation=self.handles, queries={of: control}))

    # What others may read -------------------------------------------------------------------------------

    @invariant()
    def nothing_secret_is_told(self) -> None:
        for where, text in self.read().items():
            at = text.find(MARK)
            assert at < 0, f"{where}: …{text[max(0, at - 200) : at + 40]}…"
        self.log.clear()
        self.answers.clear()

    def read(self) -> dict[str, str]:
        objects = self.operator.cluster.objects
        return {
            **{
                f"{kind} {name}": json.dumps(shown(kind, found)) for (kind, _, name), found in objects.items()
            },
            "log": "\n".join(self.log),
            "what Spark is told": "\n".join(self.answers),
            "page": self.page(),
        }

    def page(self) -> str:
        registry = CollectorRegistry()
        executors = SimpleNamespace(wanted=None, running=None, refused=None)
        registry.register(DriverCollector("flights", self.governor, executors, lambda: 1000.0))  # type: ignore[arg-type]
        return generate_latest(registry).decode()


def shown(kind: str, found: Manifest) -> Manifest:
    """Return what others may read of an object: of what people wrote, not the spec; of pods, no kubelet's words."""
    if kind == "events":
        return found
    members = {"metadata": found["metadata"]}
    return members if kind == "pods" else {**members, "status": found.get("status")}


TestSecrets = Secrets.TestCase
TestSecrets.settings = settings(max_examples=examples(40), stateful_step_count=40, deadline=None)
