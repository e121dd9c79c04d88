"""The fence on a checkpoint, as the JVM of a driver can have it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from headgate_contract import handover
from headgate_contract.settings import table
from headgate_spark.engine import fencing
from headgate_spark.engine.checkpoint import Checkpoint, is_for_one_run, local_path
from headgate_spark.engine.directory import HadoopDirectory
from headgate_spark.engine.fence_owner import lineage_in, newcomer, owner
from headgate_spark.engine.fencing import Fencing
from headgate_spark.engine.settings import SettingsError
from headgate_spark.engine.shim import DriverJvm
from headgate_spark.engine.sources import Descriptor

OF_CONTAINERS = frozenset({"overlay", "aufs", "tmpfs", "rootfs", "ramfs"})
"""Kinds of file systems that a container has for itself, and that end with it."""


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
    if take_over is None or is_for_one_run(location):
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

    Headgate's operator says it, with the uid of the resource; YARN has an id and a number.
    """
    said = lineage_in(os.environ.get(handover.LINEAGE) or context.conf().get(table.LINEAGE, ""))
    attempt = context.applicationAttemptId()
    if said[0] or attempt.isEmpty() or not str(attempt.get()).isdigit():
        return said
    return str(context.applicationId()), int(str(attempt.get()))


# Which mount of this machine a local folder is on, as far as the kernel tells it (Linux, `proc(5)`) -----------------


def mount_of(folder: Path) -> str:
    """Return the device of a folder, which each mount of its own has another of; empty: that cannot be told.

    Two containers that each mount a bucket have two, and a lock that the kernel keeps in each of them.
    """
    try:
        return str(folder.stat().st_dev)
    except OSError:
        return ""


def is_left_in_the_container(folder: Path, beside: Path) -> bool:
    """Tell whether what is kept in `beside` ends with this container although what is in `folder` does not, as where
    `folder` is itself the place where a volume is mounted. Both may not be there yet; False also: that cannot be
    told."""
    try:
        own, other = _nearest(folder), _nearest(beside)
        kinds = _kinds()
    except (OSError, ValueError, IndexError):
        return False
    return own != other and kinds.get(other) in OF_CONTAINERS and kinds.get(own) not in OF_CONTAINERS


def _nearest(path: Path) -> int:
    while not path.exists():
        path = path.parent
    return path.stat().st_dev


def _kinds() -> dict[int, str]:
    found = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        head, _, tail = line.partition(" - ")
        major, _, minor = head.split()[2].partition(":")
        found[os.makedev(int(major), int(minor))] = tail.split()[0]
    return found
