"""Who this driver is, for whoever wants its checkpoint, and whether another one is known to be dead."""

from __future__ import annotations

import os
import platform
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path

from headgate_spark.engine.checkpoint import CheckpointInUseError
from headgate_spark.engine.fence import Epoch, Newcomer, Owner


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
