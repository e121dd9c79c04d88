"""The fence on a checkpoint, as the JVM of a driver can have it."""

from __future__ import annotations

from typing import Any

from headgate_contract.settings.table import LINEAGE
from headgate_spark.engine import fencing
from headgate_spark.engine.checkpoint import Checkpoint, local_path
from headgate_spark.engine.directory import HadoopDirectory
from headgate_spark.engine.fence_owner import lineage_in, newcomer, owner
from headgate_spark.engine.fencing import Fencing
from headgate_spark.engine.mounts import is_left_in_the_container, mount_of
from headgate_spark.engine.settings import SettingsError
from headgate_spark.engine.shim import DriverJvm
from headgate_spark.engine.sources import Descriptor


def open_fence(
    described: Descriptor, checkpoint: Checkpoint, jvm: DriverJvm, *, application: str, is_locked: bool
) -> Fencing | None:
    """Return the fence on a checkpoint; `None`: it is to have none. Raises `SettingsError`.

    `is_locked`: this driver has the lock on it.
    """
    try:
        take_over = fencing.take_over_in(jvm.context.conf().get)
    except ValueError as error:
        raise SettingsError(f"query {described.query}: {error}") from None
    location = described.checkpoint
    if take_over is None or fencing.is_for_one_run(location):
        return None
    lineage, attempt = _lineage(jvm.context)
    pid = int(jvm.view.java.lang.ProcessHandle.current().pid())  # it is the JVM that writes the checkpoint

    folder = fencing.folder_of(location)
    root, beside = local_path(location), local_path(folder)

    def held(epoch: str) -> str | None:
        place = jvm.shim("Shim").held(epoch)
        return None if place is None else str(place)

    def ends() -> object:
        left = checkpoint.resumption()
        return left.batch, left.repeats

    wants = newcomer(
        owner(application, pid, lineage, attempt, lock=mount_of(beside) if is_locked and beside else ""),
        folder=folder,
        held=held,
        take_over_seconds=take_over,
    )
    side = HadoopDirectory(jvm.view, jvm.files_of(described.run_id), folder)
    fence = Fencing(described.query, location, side, ends, wants)
    if root is not None and beside is not None:
        fence.is_left_in_the_container = is_left_in_the_container(root, beside)
    return fence


def _lineage(context: Any) -> tuple[str, int | None]:
    """Return what starts this driver again when it has ended, and which start this is.

    Headgate's operator says it by a property, with the uid of the resource; YARN has an id and a number.
    """
    said = lineage_in(context.conf().get(LINEAGE, ""))
    attempt = context.applicationAttemptId()
    if said[0] or attempt.isEmpty() or not str(attempt.get()).isdigit():
        return said
    return str(context.applicationId()), int(str(attempt.get()))
