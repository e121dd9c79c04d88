"""What a driver is started with, and what tells one such start from another.

Everything in a `Launch` is fixed when the driver starts, so a change of it needs a restart; everything else
of the resource reaches the running driver through the control document. The revision is a name for the whole
of it: a driver of another revision than the desired one is replaced at a batch boundary.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from headgate.api.application import SCRATCH, SparkApplication
from headgate.api.pod_template import PodTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One driver's start."""

    application: str
    main_file: str
    arguments: tuple[str, ...]
    spark_conf: Mapping[str, str]
    driver_cores: int
    driver_memory: str
    executor_cores: int
    executor_memory: str
    executor_instances: int
    """To start with; their number changes live and is no part of the revision."""
    image: str | None
    driver_scratch: str = SCRATCH
    executor_scratch: str = SCRATCH
    driver_template: Mapping[str, Any] | None = None
    """What the driver's pod has beside ours, in the words of a Pod; and that of executors."""
    executor_template: Mapping[str, Any] | None = None

    @property
    def revision(self) -> str:
        """Return a name that is equal for launches between which no restart is needed (12 digits).

        What has its default is left out: a setting that is new restarts no driver that was started before it.
        """
        of_all = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        of_all.pop("executor_instances")
        fixed = {name: value for name, (value, default) in of_all.items() if value != default}
        text = json.dumps(fixed, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def launch_of(application: SparkApplication, *, in_backlog: bool) -> Launch:
    """Return what the driver is to be started with; `in_backlog` puts `duringBacklog.sparkConf` on top."""
    spec = application.spec
    during_backlog = spec.during_backlog.spark_conf if in_backlog else {}
    return Launch(
        application=application.name,
        main_file=spec.main.file,
        arguments=spec.main.arguments,
        spark_conf={**spec.spark_conf, **during_backlog},
        driver_cores=spec.driver.cores,
        driver_memory=spec.driver.memory,
        executor_cores=spec.executor.cores,
        executor_memory=spec.executor.memory,
        executor_instances=spec.executor.instances,
        image=spec.image,
        driver_scratch=spec.driver.scratch,
        executor_scratch=spec.executor.scratch,
        driver_template=_as_given(spec.driver.pod_template),
        executor_template=_as_given(spec.executor.pod_template),
    )


def _as_given(template: PodTemplate | None) -> Mapping[str, Any] | None:
    """Return what was written; one that says nothing is none."""
    return None if template is None else template.model_dump(mode="json", exclude_unset=True) or None
