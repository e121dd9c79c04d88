"""Takes the fence on a checkpoint (`engine.fence`) step by step, on the file system that the checkpoint is on.

It is asked by the query's own thread, before Spark reads where the checkpoint ends, and answers at once each time:
that it is held, or after how many seconds to ask again. Held, looked at before each commit and given back it is in
the JVM (`Fence.java`), which writes the checkpoint and may outlive this process.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import structlog

from headgate_contract.durations import seconds
from headgate_contract.newer import dataclass
from headgate_contract.settings.table import PROPERTY
from headgate_spark.engine.beside import words_of
from headgate_spark.engine.checkpoint import CheckpointInUseError, local_path, side_directory
from headgate_spark.engine.directory import Directory
from headgate_spark.engine.fence import (
    Act,
    AliveError,
    Create,
    Delete,
    Ends,
    Epoch,
    Names,
    Newcomer,
    Owner,
    Read,
    Wait,
    take,
)

log = structlog.get_logger("headgate")

FENCE, TAKE_OVER_AFTER = PROPERTY + "fence", PROPERTY + "fence.takeOverAfter"
ON, OFF = "on", "off"
BUSY_SECONDS = 0.5
"""Asked again while an earlier question is still under way: its file system is slow."""
DENIED = re.compile(
    r"AccessControlException|AccessDenied|Permission denied|Operation not permitted|Read-only file system"
    r"|Mkdirs failed to create|403 Forbidden|[Ss]tatus [Cc]ode:? 403|, 403,|No space left|[Qq]uota"
)
"""In the words of a file system on which nothing can be kept beside a checkpoint. The job runs all the same."""
GONE = re.compile(r"FileNotFoundException|NoSuchFileException|No such file")


@dataclass(frozen=True, slots=True)
class FenceSettings:
    """What `spark.headgate.fence` and `spark.headgate.fence.takeOverAfter` say."""

    is_on: bool = False
    take_over_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Standing:
    """What came of a question. `None` in both: there is no fence."""

    held: Optional[str] = None
    """The file by which the checkpoint is held."""
    ask_again_seconds: Optional[float] = None


UNFENCED = Standing()


class Fencing:
    """The fence on one checkpoint, for one run of a query."""

    def __init__(
        self,
        query: str,
        checkpoint: str,
        side: Directory,
        ends: Callable[[], object],
        newcomer: Newcomer,
    ) -> None:
        """`side` is the folder beside the checkpoint, `ends` tells where its logs end; both raise what they raise."""
        self._query, self._checkpoint, self._side, self._ends = query, checkpoint, side, ends
        self._steps = take(newcomer)
        self._newcomer = newcomer
        self._lock = threading.Lock()
        self._act: Act | None = None
        self._told: Owner | None = None
        self._done: Standing | None = None
        self._until = 0.0
        self.has_waited = False
        """Whether another driver may have written the checkpoint since it was first looked at."""

    def go_on(self) -> Standing:
        """Do what can be done now. Raises `CheckpointInUseError`, and what the file system raises: then ask again.

        Late and doubled questions do no harm: the steps are taken once.
        """
        if not self._lock.acquire(blocking=False):
            return Standing(ask_again_seconds=BUSY_SECONDS)
        try:
            if self._done is None:
                self._done = self._stepped()
            return self._done or Standing(ask_again_seconds=max(0.01, self._until - time.monotonic()))
        except AliveError as error:
            raise CheckpointInUseError(
                f"checkpoint {self._checkpoint} is in use by {error}; stop that one, or choose another checkpoint"
            ) from None
        except CheckpointInUseError:
            raise
        except Exception as error:  # each file system fails in its own way
            self._withdraw()
            if DENIED.search(words_of(error)) is None:
                raise
            log.warning(
                "checkpoint has no fence; see that it has one writer",
                query=self._query,
                checkpoint=self._checkpoint,
                folder=str(self._side),
                error=words_of(error),
            )
            self._done = UNFENCED
            return UNFENCED
        finally:
            self._lock.release()

    def _stepped(self) -> Standing | None:
        """Take steps until the next wait; `None`: it has not come to its end."""
        answer: Any = None
        while True:
            try:
                if self._act is None:
                    self._act = self._steps.send(answer)
                answer = self._carried_out(self._act)
            except StopIteration as taken:
                epoch: Epoch = taken.value
                log.info("checkpoint is held", query=self._query, epoch=epoch.name)
                return Standing(held=f"{self._side}/{epoch.name}")
            if isinstance(self._act, Wait) and time.monotonic() < self._until:
                return None
            self._act = None

    def _carried_out(self, act: Act) -> Any:
        if isinstance(act, Names):
            return self._side.names()
        if isinstance(act, Read):
            return self._read(act.name)
        if isinstance(act, Create):
            return self._side.create(act.name, act.text)
        if isinstance(act, Delete):
            return self._side.delete(act.name)
        if isinstance(act, Ends):
            return self._ends()
        if self._until <= 0:
            self._begins_to_wait(act)
        elif time.monotonic() >= self._until:
            self._until = 0.0
        return None

    def _begins_to_wait(self, act: Wait) -> None:
        self.has_waited = True
        self._until = time.monotonic() + act.seconds
        if act.owner is not None and act.owner != self._told:
            self._told = act.owner
            log.warning(
                "the checkpoint is held by a driver that may run; it is shut out if it commits nothing meanwhile",
                query=self._query,
                held_by=act.owner.words,
                seconds=self._newcomer.take_over_seconds,
            )

    def _read(self, name: str) -> str | None:
        try:
            return self._side.read(name)
        except ValueError:  # damaged: whose it is cannot be told
            return ""
        except Exception as error:
            if GONE.search(words_of(error)) is None and not isinstance(error, FileNotFoundError):
                raise
            return None

    def _withdraw(self) -> None:
        """A step has failed: begin anew, without an epoch that nobody holds."""
        self._steps.close()
        with suppress(Exception):
            for epoch in map(Epoch.parse, self._side.names()):
                if epoch is not None and epoch.token == self._newcomer.token:
                    self._side.delete(epoch.name)
        self._newcomer = replace(self._newcomer, token=secrets.token_hex(8))
        self._steps, self._act, self._until = take(self._newcomer), None, 0.0


# Who this is, and whether another one is dead --------------------------------------------------------


def this_machine() -> str:
    """Return where process ids mean what they mean here; empty where that cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{platform.system()} {socket.gethostname()}" if platform.system() == "Darwin" else ""


def begun(pid: int) -> str | None:
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
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def owner(application: str, pid: int, lineage: str = "", attempt: int | None = None) -> Owner:
    """Return what is to be known of this driver; `pid` is the process to stop to end it."""
    return Owner(
        application=application,
        host=socket.gethostname(),
        pid=pid,
        since=time.time(),
        machine=this_machine(),
        started=begun(pid) or "",
        lineage=lineage,
        attempt=attempt,
    )


def is_gone(other: Owner) -> bool:
    """Tell whether the process of another driver is known to be gone: it was on this machine, and is there no
    more."""
    here = this_machine()
    if not here or other.machine != here or other.pid is None:
        return False
    found = begun(other.pid)
    return found is None or (found != "" and other.started not in ("", found))


def newcomer(
    me: Owner,
    *,
    is_locked: bool,
    holds: Callable[[str], bool],
    take_over_seconds: float,
) -> Newcomer:
    """Return this driver as one that wants a checkpoint.

    `is_locked`: it has the lock on it, so whoever had it before is dead. `holds` tells whether the JVM of this driver
    holds an epoch, by its name: what it does not hold is a leftover of a run that has ended.
    """

    def is_dead(epoch: Epoch, other: Owner) -> bool:
        if other.machine == me.machine != "" and (other.pid, other.started) == (me.pid, me.started):
            if holds(epoch.name):
                raise CheckpointInUseError(
                    "the checkpoint is in use by another query of this driver; give each of them one of its own",
                    by_this_driver=True,
                )
            return True
        # a lock may hold on one machine only, as that of a bucket that is mounted does
        is_of_this_kernel = (
            me.machine != "" and other.machine.partition(" ")[0] == me.machine.partition(" ")[0]
        )
        return (is_locked and is_of_this_kernel) or is_gone(other)

    return Newcomer(
        owner=me,
        token=secrets.token_hex(8),
        is_dead=is_dead,
        now_millis=lambda: round(time.time() * 1000),
        take_over_seconds=take_over_seconds,
    )


def settings_in(said: Callable[[str, str], str]) -> FenceSettings:
    """Return what properties say of the fence; `said(name, default)` gives them. Raises ValueError with the
    remedy."""
    fence = said(FENCE, OFF)
    if fence not in (ON, OFF):
        raise ValueError(f"{FENCE} is {fence!r}: give {ON} or {OFF}")
    defaults = FenceSettings()
    try:
        take_over = seconds(said(TAKE_OVER_AFTER, f"{defaults.take_over_seconds:g}s"))
    except ValueError as error:
        raise ValueError(f"{TAKE_OVER_AFTER}: {error}") from None
    return FenceSettings(fence == ON, take_over)


def is_for_one_run(checkpoint: str) -> bool:
    """Tell whether Spark has made a checkpoint for one run alone: no other can want it."""
    return checkpoint.rstrip("/").rpartition("/")[2].startswith("temporary-")


def folder_of(checkpoint: str) -> str:
    """Return the folder beside a checkpoint, by one name whatever links lead to it on this machine."""
    root = local_path(checkpoint)
    return side_directory(checkpoint if root is None else f"file:{os.path.realpath(root)}")
