"""The `SparkApplication` of the group `headgate.dev`: one Spark driver and how its streaming queries are governed.

The operator and `headgate local` read this model; neither ever writes `spec`, which belongs to whoever declared it.
"""

from datetime import timedelta
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, StringConstraints

from headgate.api.duration import Duration
from headgate.api.model import ApiModel, Argument, Cores, Instances, Memory, Quantity, SparkConf, list_map
from headgate.api.pod_template import PodTemplate
from headgate.api.query import Query
from headgate.api.schema import Schema, structural_schema
from headgate.api.status import SparkApplicationStatus
from headgate.decision.backoff import RestartPolicy, RestartWhen
from headgate.decision.policy import STALE_AFTER_SECONDS, OnOutage
from headgate_contract import ControlDocument

GROUP: Final = "headgate.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "headgate.dev/v1alpha1"
KIND: Final = "SparkApplication"
SCRATCH: Final = "50Gi"
"""More than a batch of the usual sizes shuffles, and less than the disk of most nodes."""


class MetricsSource(StrEnum):
    """Where metrics are read."""

    PROMETHEUS = "Prometheus"
    DRIVER = "Driver"


class Main(ApiModel):
    """The job: an ordinary PySpark script. It imports nothing of Headgate."""

    file: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    """Script to run: `local:///opt/app/job.py` or a path, inside the image in a cluster, on this machine with
    `headgate local` (a relative one from the directory of the resource file)."""
    arguments: Annotated[tuple[Argument, ...], Field(max_length=256)] = ()
    """Arguments of the script, handed over one by one and seen by no shell. Default: none."""


class Driver(ApiModel):
    """The driver process."""

    cores: Cores = 1
    """Cores of the driver (`spark.driver.cores`). Default 1, as Spark's."""
    memory: Memory = "1g"
    """Heap of the driver in Spark's own form (`spark.driver.memory`): a number and k, m, g or t. Default
    1g, as Spark's."""
    scratch: Quantity = SCRATCH
    """Most that `/tmp` of the driver's pod may hold, and as much its working folder. One that takes more is evicted,
    before it fills the disk of its node. No effect with `headgate local`. Default 50Gi."""
    pod_template: PodTemplate | None = None
    """Parts of the driver's pod beside Headgate's own: tolerations, affinity, volumes, sidecars and so on, merged
    into it. What Headgate must own is refused by name. No effect with `headgate local`. Default: none."""


class Executor(ApiModel):
    """The executors while no query is in backlog."""

    instances: Instances = 2
    """Number of executors (`spark.executor.instances`); `kubectl scale` writes it. Changes live. Default 2,
    as Spark's on Kubernetes."""
    cores: Cores = 1
    """Cores of each executor (`spark.executor.cores`). Default 1, as Spark's on Kubernetes."""
    memory: Memory = "1g"
    """Heap of each executor in Spark's own form (`spark.executor.memory`): a number and k, m, g or t.
    Default 1g, as Spark's."""
    scratch: Quantity = SCRATCH
    """Most that the folder of an executor for shuffles and spills may hold, and as much its `/tmp` and its
    working folder. One that takes more is evicted, before it fills the disk of its node. Volumes in `sparkConf`
    whose names begin with `spark-local-dir-` replace the first. Default 50Gi."""
    pod_template: PodTemplate | None = None
    """Parts of the executors' pods beside Headgate's and Spark's own: tolerations, affinity, volumes, sidecars and so
    on, merged into them. What Headgate must own is refused by name. No effect with `headgate local`, nor where
    `spark.master` is `local`. Default: nothing."""


_RESTART: Final = RestartPolicy()


class Restart(ApiModel):
    """What happens when the driver has ended. A stop that Headgate itself asked for is no failure."""

    policy: RestartWhen = _RESTART.policy
    """`Never`, `OnFailure` (exit code other than 0, or the driver was lost) or `Always`. Default
    `OnFailure`: a streaming job that returns has ended on purpose."""
    max_retries: Annotated[int, Field(ge=0, le=1_000_000)] = _RESTART.max_retries
    """Restarts in a row before the application counts as failed. Default 5: with the pauses below, five
    minutes of trying; then a person should look."""
    backoff: Duration = timedelta(seconds=_RESTART.backoff_seconds)
    """Pause before the first restart; it doubles with each one that follows. Default 10s."""
    max_backoff: Duration = timedelta(seconds=_RESTART.max_backoff_seconds)
    """Longest pause between restarts. Not below `backoff`. Default 5m."""
    reset_after: Duration = timedelta(seconds=_RESTART.reset_after_seconds)
    """Uptime after which earlier failures are forgotten. Default 30m: longer than a job needs that fails at
    the same record each time."""


class Stop(ApiModel):
    """How the driver is stopped: at the end of the running batch, so that no work is done twice."""

    grace_period: Duration = timedelta(seconds=ControlDocument(generation=0).grace_period_seconds)
    """Longest wait for the running batch; then the driver is killed and that batch is repeated later.
    Should be longer than a batch takes. Default 2m."""


class Metrics(ApiModel):
    """Where metrics come from and what holds without them."""

    source: MetricsSource = MetricsSource.PROMETHEUS
    """`Prometheus`, or `Driver`: scrape each driver directly. `headgate local` always does the latter.
    Default `Prometheus`, which also knows what was before a restart."""
    stale_after: Duration = timedelta(seconds=STALE_AFTER_SECONDS)
    """Age beyond which a sample is unknown; better three times the scrape interval or more. Default 1m: four scrapes
    of the chart's PodMonitor."""
    on_outage: OnOutage = OnOutage.HOLD
    """While metrics are missing: `Hold` keeps verdict and settings, `Normal` sets what holds outside a
    backlog. Default `Hold`: missing data is no reason to change a running job."""


class BacklogExecutor(ApiModel):
    """Executors while a query is in backlog."""

    instances: Instances
    """Number of executors while any query is in backlog. Changes live, and back after it."""


class DuringBacklog(ApiModel):
    """What else of the application changes while any of its queries is in backlog."""

    executor: BacklogExecutor | None = None
    """Executors while in backlog. Default: as always."""
    spark_conf: SparkConf = Field(default_factory=dict)
    """Spark properties that hold while in backlog, over `sparkConf`. They cannot change live: the driver is
    restarted at the end of a batch, 5m after entering a backlog and after leaving it, at most every 15m, and not
    again where it did not help. Default: none."""


class SparkApplicationSpec(ApiModel):
    """What is declared."""

    spark_version: (
        Annotated[str, StringConstraints(max_length=32, pattern=r"^4\.[0-3](\.[0-9]+)?$")] | None
    ) = None
    """Version of Spark that the image is to have, 4.0 to 4.3: `4.3.0`, or `4.3` for any of these. It chooses nothing:
    where the driver reports another one (`status.sparkVersion`), an Event says so. Default: any."""
    image: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = None
    """Container image of driver and executors. Needed in a cluster unless the operator has a default image;
    `headgate local` does without."""
    main: Main
    """The job: a PySpark script (`file`) and its `arguments`."""
    spark_conf: SparkConf = Field(default_factory=dict)
    """Spark properties of the application. Values are text: write `"64"`. A change restarts the driver.
    Default: none."""
    driver: Driver = Driver()
    """The driver process. A change restarts it."""
    executor: Executor = Executor()
    """The executors while no query is in backlog."""
    restart: Restart = Restart()
    """What happens when the driver has ended."""
    stop: Stop = Stop()
    """How the driver is stopped."""
    suspend: bool = False
    """While true the driver is stopped at the end of its batch and not started; the resource, its
    checkpoints and its status stay. Default false."""
    ttl_after_finished: Duration | None = None
    """How long a completed or failed application is kept before it is deleted. Default: kept."""
    metrics: Metrics = Metrics()
    """Where metrics come from and what holds without them."""
    during_backlog: DuringBacklog = DuringBacklog()
    """What else of the application changes while any of its queries is in backlog."""
    queries: Annotated[tuple[Query, ...], Field(max_length=32, json_schema_extra=list_map("name"))] = ()
    """The streaming queries that are governed. One that is not listed runs as the job wrote it. Default:
    none, and the application is only run, stopped and restarted."""


class Metadata(ApiModel):
    """Kubernetes' own metadata; what is not needed here is kept as it is."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[
        str, StringConstraints(min_length=1, max_length=40, pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    ]
    """Name of the application: lower-case letters, digits and `-`, with a letter first. At most 40 characters, so
    that the names of its pods fit the 63 of a DNS label."""
    namespace: str | None = None
    """Namespace of the application."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations; those that people ask by are read from here (`annotations`)."""
    generation: int | None = None
    """Counts the changes of `spec`; the API server writes it."""
    uid: str | None = None
    """Identity of the object; the API server writes it."""


class SparkApplication(ApiModel):
    """A Spark application whose streaming queries clear a backlog at batch speed and then run at stream latency."""

    api_version: Literal["headgate.dev/v1alpha1"] = API_VERSION
    """Version of the schema of this object."""
    kind: Literal["SparkApplication"] = KIND
    """Kind of this object."""
    metadata: Metadata
    """Kubernetes' own metadata."""
    spec: SparkApplicationSpec
    """What is declared: the script (`main.file`) and what is to hold for it. Headgate never writes it."""
    status: SparkApplicationStatus | None = None
    """What was observed and decided. Only Headgate writes it."""

    @property
    def name(self) -> str:
        return self.metadata.name

    def to_manifest(self) -> dict[str, Any]:
        """Return the object as Kubernetes holds it: camelCase, defaults filled in, unset fields left out."""
        return self.model_dump(mode="json", exclude_none=True)


@cache
def application_schema() -> Schema:
    """Return the structural schema of the whole object; it is shared, so not to be changed."""
    return structural_schema(SparkApplication)
