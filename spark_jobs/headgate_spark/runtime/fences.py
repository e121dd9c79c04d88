"""The fence on a checkpoint, as a JVM has it: who this driver is, and whether another one is known to be dead."""

from __future__ import annotations

import os
import platform
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headgate_contract import handover
from headgate_contract.settings import table
from headgate_spark.engine import fencing
from headgate_spark.engine.checkpoint import Checkpoint, CheckpointInUseError, is_for_one_run, local_path
from headgate_spark.engine.directory import HadoopDirectory
from headgate_spark.engine.fence import Epoch, Newcomer, Owner
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


# Who a driver is -------------------------------------------------------------------------------------


def this_machine() -> str:
    """Return where process ids mean what they mean here; empty where that cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{platform.system()} {socket.gethostname()}" if platform.system() == "Darwin" else ""


def begin_of(pid: int) -> str | None:
    """Return when a process of this machine began; empty where nobody can tell, `None`: there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[19]  # field 22, starttime, in ticks since the boot
    except (FileNotFoundError, ProcessLookupError):
        return "" if _is_there(pid) else None  # where /proc hides what others run, it is there all the same
    except (OSError, IndexError):
        return ""


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def owner(
    application: str, pid: int, lineage: str = "", attempt: int | None = None, *, lock: str = ""
) -> Owner:
    """Return what is to be known of this driver; `pid` is the process to stop to end it, `lock` the mount on which it
    has the lock on its checkpoint, empty where it has none."""
    return Owner(
        application=application,
        host=socket.gethostname(),
        pid=pid,
        since=time.time(),
        machine=this_machine(),
        started=begin_of(pid) or "",
        lineage=lineage,
        attempt=attempt,
        lock=lock,
    )


def is_gone(other: Owner) -> bool:
    """Tell whether the process of another driver is known to be gone: it was on this machine, and is there no
    more. Machines that were copied while they ran have one boot id, so the host's name is to be the same as well."""
    here = this_machine()
    if not here or other.machine != here or other.host != socket.gethostname() or other.pid is None:
        return False
    found = begin_of(other.pid)
    return found is None or (found != "" and other.started not in ("", found))


def newcomer(
    me: Owner,
    *,
    folder: str,
    held: Callable[[str], str | None],
    take_over_seconds: float,
) -> Newcomer:
    """Return this driver as one that wants a checkpoint.

    `folder` is the one beside it. `held` tells by which file the JVM of this driver holds an epoch, by its name: what
    it does not hold is a leftover of a run that has ended, and what it holds in another folder was copied from there.
    Where this driver has a lock, whoever had it before is dead.
    """

    def is_dead(epoch: Epoch, other: Owner) -> bool:
        if other.machine == me.machine != "" and (other.pid, other.started) == (me.pid, me.started):
            place = held(epoch.name)
            if place is not None and place != f"{folder}/{epoch.name}":
                return False  # or that is another name of this folder: then there is an answer
            if place is not None:
                raise CheckpointInUseError(
                    "the checkpoint is in use by another query of this driver; give each of them one of its own",
                    by_this_driver=True,
                )
            return True
        # a lock may hold on one machine only, and of one mount, as that of a bucket that is mounted does
        is_of_this_kernel = (
            me.machine != "" and other.machine.partition(" ")[0] == me.machine.partition(" ")[0]
        )
        return (is_of_this_kernel and me.lock != "" and other.lock == me.lock) or is_gone(other)

    return Newcomer(
        owner=me,
        token=secrets.token_hex(8),
        is_dead=is_dead,
        now_millis=lambda: round(time.time() * 1000),
        holds=lambda epoch: held(epoch) is not None,
        take_over_seconds=take_over_seconds,
    )


def lineage_in(said: str) -> tuple[str, int | None]:
    """Return what starts this driver again, and which start this is, of what a property says; nothing of what has
    another form."""
    lineage, _, attempt = said.rpartition("/")
    return (lineage, int(attempt)) if lineage and attempt.isdecimal() and len(attempt) < 10 else ("", None)


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
