"""The fence on a checkpoint, as the JVM of a driver can have it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from headgate_spark.engine import fencing
from headgate_spark.engine.checkpoint import Checkpoint
from headgate_spark.engine.directory import HadoopDirectory
from headgate_spark.engine.fencing import Fencing
from headgate_spark.engine.settings import SettingsError
from headgate_spark.engine.shim import DriverJvm

POD, NAMESPACE = "spark.kubernetes.driver.pod.name", "spark.kubernetes.namespace"
ATTEMPT = re.compile(r"(.+)-driver-(\d{1,9})")


@dataclass(frozen=True)
class FencedPlace:
    """What the fence is for."""

    query: str
    location: str
    checkpoint: Checkpoint


def open_fence(place: FencedPlace, jvm: DriverJvm, *, application: str, is_locked: bool) -> Fencing | None:
    """Return the fence on a checkpoint; `None`: it is to have none. Raises `SettingsError`.

    `is_locked`: this driver has the lock on it.
    """
    try:
        settings = fencing.settings_in(jvm.context.conf().get)
    except ValueError as error:
        raise SettingsError(f"query {place.query}: {error}") from None
    if not settings.is_on or fencing.is_for_one_run(place.location):
        return None
    lineage, attempt = _lineage(jvm.context)
    pid = int(jvm.view.java.lang.ProcessHandle.current().pid())  # it is the JVM that writes the checkpoint
    newcomer = fencing.newcomer(
        fencing.owner(application, pid, lineage, attempt),
        is_locked=is_locked,
        holds=lambda epoch: bool(jvm.shim("Shim").holds(epoch)),
        take_over_seconds=settings.take_over_seconds,
    )
    side = HadoopDirectory(jvm.view, jvm.context.hadoopConfiguration(), fencing.folder_of(place.location))

    def ends() -> object:
        left = place.checkpoint.resumption()
        return left.batch, left.repeats

    return fencing.Fencing(place.query, place.location, side, ends, newcomer)


def _lineage(context: Any) -> tuple[str, int | None]:
    """Return what starts this driver again when it has ended, and which start this is.

    Headgate's operator tells by the name of the pod, `<application>-driver-<attempt>`, and YARN by an id.
    """
    conf = context.conf()
    of_operator = ATTEMPT.fullmatch(conf.get(POD, ""))
    if of_operator is not None:
        return f"{conf.get(NAMESPACE, '')}/{of_operator[1]}", int(of_operator[2])
    attempt = context.applicationAttemptId()
    if attempt.isEmpty() or not str(attempt.get()).isdigit():
        return "", None
    return str(context.applicationId()), int(str(attempt.get()))
