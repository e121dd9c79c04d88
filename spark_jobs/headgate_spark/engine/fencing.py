"""Takes the fence on a checkpoint (`engine.fence`) step by step, on the file system that the checkpoint is on.

It is asked by the query's own thread, before Spark reads where the checkpoint ends, and answers at once each time:
that it is held, or after how many seconds to ask again. Held, looked at before each commit and given back it is in
the JVM (`Fence.java`), which writes the checkpoint and may outlive this process.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Optional

import structlog

from headgate_contract.durations import seconds
from headgate_contract.newer import dataclass
from headgate_contract.settings.table import PROPERTY
from headgate_spark.engine.checkpoint import CheckpointInUseError, local_path, side_directory
from headgate_spark.engine.directory import GONE, Directory
from headgate_spark.engine.fence import (
    Act,
    AliveError,
    Create,
    Delete,
    Epoch,
    LogEnds,
    Names,
    Newcomer,
    Owner,
    Read,
    Sleep,
    take,
)
from headgate_spark.engine.side_folder import words_of

log = structlog.get_logger("headgate")

FENCE, TAKE_OVER_AFTER = PROPERTY + "fence", PROPERTY + "fence.takeOverAfter"
ON, OFF = "on", "off"
BUSY_SECONDS = 0.5
"""Asked again while an earlier question is still under way: its file system is slow."""
FAILING_SECONDS = 30.0
"""After so long of nothing but failure the run goes on without a fence, unless another driver was found. The shim
ends a query after a minute of that (`headgate.planner.patienceMillis`)."""
DENIED = re.compile(
    r"AccessControlException|AccessDenied|Permission denied|Operation not permitted|Read-only file system"
    r"|Mkdirs failed to create|not a directory|403 Forbidden|[Ss]tatus [Cc]ode:? 403|, 403,|No space left|[Qq]uota"
    r"|UnsupportedOperation|UnsupportedFeature|[Nn]ot [Ii]mplemented"
)
"""In the words of a file system on which nothing can be kept beside a checkpoint. The job runs all the same."""


@dataclass(frozen=True, slots=True)
class FenceAnswer:
    """What came of a question. `None` in both: there is no fence."""

    held: Optional[str] = None
    """The file by which the checkpoint is held."""
    ask_again_seconds: Optional[float] = None
    problem: Optional[str] = None
    """Why there is none although there is to be one, and the remedy."""


UNFENCED = FenceAnswer()


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
        self._clock = newcomer.clock
        self._steps = take(newcomer)
        self._newcomer = newcomer
        self._lock = threading.Lock()
        self._act: Act | None = None
        self._told: Owner | None = None
        self._done: FenceAnswer | None = None
        self._until = 0.0
        self._created: str | None = None
        self._failing_since: float | None = None
        self._is_over = False
        self.is_left_in_the_container = False
        """Whether no other container has the folder beside the checkpoint, so that it ends with this one."""
        self.has_waited = False
        """Whether another driver may have written the checkpoint since it was first looked at."""

    def go_on(self) -> FenceAnswer:
        """Do what can be done now. Raises `CheckpointInUseError`, and what the file system raises: then ask again.

        Late and doubled questions do no harm: the steps are taken once.
        """
        if not self._lock.acquire(blocking=False):
            return FenceAnswer(ask_again_seconds=BUSY_SECONDS)
        began = self._clock()
        try:
            if self._done is None:
                self._done = UNFENCED if self._is_over else self._stepped()
            self._failing_since = None
            return self._done or FenceAnswer(ask_again_seconds=max(0.01, self._until - self._clock()))
        except AliveError as error:
            raise CheckpointInUseError(
                f"checkpoint {self._checkpoint} is in use by {error}; stop that one, or choose another checkpoint"
            ) from None
        except CheckpointInUseError:
            raise
        except Exception as error:  # each file system fails in its own way
            self._withdraw()
            if not self._is_to_go_on_without(error, began):
                raise
            self._done = self._without(words_of(error))
            return self._done
        finally:
            self._lock.release()
            if self._is_over:
                self.release()

    def release(self) -> None:
        """The run is over: leave no epoch that the JVM does not know of, as where it was stopped while it waited."""
        self._is_over = True
        if not self._lock.acquire(blocking=False):
            return  # whoever has it does that when it comes back
        try:
            created, self._created = self._created, None
            with suppress(Exception):  # the next run finds this one dead, or waits for it
                if created is not None and not self._newcomer.holds(created):
                    self._side.delete(created)
        finally:
            self._lock.release()

    def _is_to_go_on_without(self, error: Exception, began: float) -> bool:
        """`began` is when the step was begun that has failed: a client may try for minutes."""
        if self._failing_since is None:
            self._failing_since = began
        has_failed_long = self._clock() - self._failing_since >= FAILING_SECONDS and self._told is None
        return has_failed_long or DENIED.search(words_of(error)) is not None

    def _without(self, why: str) -> FenceAnswer:
        log.warning(
            "checkpoint has no fence; see that it has one writer",
            query=self._query,
            checkpoint=self._checkpoint,
            folder=str(self._side),
            error=why,
        )
        return FenceAnswer(
            problem=f"checkpoint {self._checkpoint} of query {self._query} has no fence: {self._side} cannot be used "
            f"({why}); let the job list, read, write and delete there, or see yourself that it has one writer"
        )

    def _left(self) -> str:
        problem = (
            f"the fence on checkpoint {self._checkpoint} of query {self._query} is not whole: {self._side}, beside "
            "it, is in this container's own files, which no other driver sees; let the checkpoint be a folder in its "
            "volume, and not the volume itself"
        )
        log.warning("checkpoint has a fence that no other driver sees", query=self._query, problem=problem)
        return problem

    def _stepped(self) -> FenceAnswer | None:
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
                return FenceAnswer(
                    held=f"{self._side}/{epoch.name}",
                    problem=self._left() if self.is_left_in_the_container else None,
                )
            if isinstance(self._act, Sleep) and self._clock() < self._until:
                return None
            self._act = None

    def _carried_out(self, act: Act) -> Any:
        if isinstance(act, Names):
            return self._side.names()
        if isinstance(act, Read):
            return self._read(act.name)
        if isinstance(act, Create):
            self._created = act.name
            return self._side.create(act.name, act.text)
        if isinstance(act, Delete):
            return self._side.delete(act.name)
        if isinstance(act, LogEnds):
            return self._ends()
        if self._until <= 0:
            self._begins_to_wait(act)
        elif self._clock() >= self._until:
            self._until = 0.0
        return None

    def _begins_to_wait(self, act: Sleep) -> None:
        self.has_waited = True
        self._until = self._clock() + act.seconds
        if act.owner is not None and act.owner != self._told:
            self._told = act.owner
            log.warning(
                "the checkpoint is held by a driver that may run, and is asked; without an answer it is shut out",
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
        self._created = None
        self._newcomer = replace(self._newcomer, token=secrets.token_hex(8))
        self._steps, self._act, self._until = take(self._newcomer), None, 0.0


# What is said of it ---------------------------------------------------------------------------------


def take_over_in(said: Callable[[str, str], str]) -> float | None:
    """Return after how many seconds a driver is shut out that does not answer; `None`: there is to be no fence.

    `said(name, default)` gives what properties say. Raises ValueError with the remedy.
    """
    fence = said(FENCE, ON)
    if fence not in (ON, OFF):
        raise ValueError(f"{FENCE} is {fence!r}: give {ON} or {OFF}")
    try:
        take_over = seconds(said(TAKE_OVER_AFTER, "30s"))
    except ValueError as error:
        raise ValueError(f"{TAKE_OVER_AFTER}: {error}") from None
    return take_over if fence == ON else None


def folder_of(checkpoint: str) -> str:
    """Return the folder beside a checkpoint, by one name whatever links lead to it on this machine."""
    root = local_path(checkpoint)
    return side_directory(checkpoint if root is None else f"file:{root}")
