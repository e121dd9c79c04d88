"""What one run reads of its checkpoint, and what it keeps beside it for the next.

None of it is needed to go on, with one exception: whether a history has been read must be known, and kept, before a
source that comes after it reads. A file system that fails keeps no other query from running; it is said once what is
lost (`engine.side_folder`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import structlog

from headgate_contract import QueryControl
from headgate_spark.engine.batch_memory import BatchMemory
from headgate_spark.engine.checkpoint import Checkpoint, CheckpointLock, release
from headgate_spark.engine.fencing import UNFENCED, FenceAnswer, Fencing
from headgate_spark.engine.refusals import damaged, unknown_histories
from headgate_spark.engine.resumption import Resumption
from headgate_spark.engine.side_folder import FolderError, Kept, SideFolder, words_of
from headgate_spark.engine.task_memory import MemorySettings
from headgate_spark.engine.topics import Ids
from headgate_spark.planner.model import NOTHING_READ, HybridMemory

log = structlog.get_logger("headgate")


class CheckpointState:
    """The checkpoint of one run: what earlier runs left, and what this one adds."""

    def __init__(
        self,
        query: str,
        checkpoint: Checkpoint,
        *,
        folder: str = "",
        lock: CheckpointLock | None = None,
        fence: Fencing | None = None,
    ) -> None:
        """`folder` is the one beside the checkpoint, for what is said of it; `lock` is held until `release`."""
        self._query = query
        self.folder = folder
        self._checkpoint = checkpoint
        self._beside = SideFolder(query, folder)
        self._lock = lock
        self._fence = fence
        self.resumption = Resumption(is_read=False)
        """Where the run has taken up."""
        self.memory = BatchMemory()
        """What batches have taught, as it is or is to be kept."""
        self.topics: Mapping[str, Ids] = {}
        """By source, as earlier runs of the query have kept them; none of a checkpoint that was here before."""
        self.histories_problem: str | None = None
        """Why it is not known how far histories have been read, and the remedy; `None`: it is."""
        self.unfenced: str | None = None
        """Why the checkpoint has no fence that is whole, and the remedy; `None`: it has, or is to have none."""
        self._has_kept_memory = True

    # Before Spark goes on --------------------------------------------------------------------------

    def resume(self, settings: MemorySettings | None, *, with_topics: bool) -> None:
        """Read what earlier runs left, before Spark goes on where they ended.

        `settings` are those under which this run's batches have their memory, `None` where that is not known.
        """
        try:
            self.resumption = self._checkpoint.resumption()
        except Exception as error:
            log.warning("the checkpoint could not be read", query=self._query, error=words_of(error))
        checkpoint, load = self._checkpoint, self._beside.load
        before = load(Kept.BATCHES, checkpoint.batches.load) or BatchMemory()
        memory = before.resumed(self.resumption).under(settings)
        self.memory = before
        self.remember(replace(memory, pace=None, failure=None) if self.resumption.is_new else memory)
        if self.resumption.batch is not None and with_topics:
            self.topics = load(Kept.TOPICS, checkpoint.topics.load) or {}
        if self.resumption.repeats:
            event = "the last run ended in mid-batch; that batch runs again"  # as where a job stops its query
            log.info(event, query=self._query, batch=self.resumption.batch)

    def stand(self) -> FenceAnswer:
        """Return whether this run has the checkpoint, and by what. Raises `CheckpointInUseError` and what the file
        system raises."""
        if self._fence is None:
            return UNFENCED
        standing = self._fence.go_on()
        self.unfenced = standing.problem
        if standing.held is not None and self._fence.has_waited:
            self.resumption = self._checkpoint.resumption()  # another driver may have gone on meanwhile
            self._fence.has_waited = False
        elif standing.held is not None and not self.resumption.is_read:
            with suppress(Exception):  # said when it could not be read first
                self.resumption = self._checkpoint.resumption()
        return standing

    def left(self) -> Resumption:
        """Return where the checkpoint ends now. Raises what the file system raises."""
        return self._checkpoint.resumption()

    def release(self) -> None:
        if self._fence is not None:
            self._fence.release()
        release(self._lock, self._query)

    # Histories -------------------------------------------------------------------------------------

    def histories(self, control: QueryControl | None) -> HybridMemory:
        """Return how far histories have been read; of another checkpoint that was in this place nothing counts.

        Raises `FolderError` where a source comes after one and the file system fails: another try may help.
        """
        self.histories_problem = None
        if self.resumption.is_new:
            return NOTHING_READ
        try:
            return self._checkpoint.hybrid.load() or NOTHING_READ
        except ValueError as error:
            self.histories_problem = damaged(str(error))
        except Exception as error:  # each file system fails in its own way
            self.histories_problem = self._beside.problem(error)
            refused = unknown_histories(self._query, control, self.histories_problem)
            if refused is not None:
                raise FolderError(refused) from error
            self._beside.tell(Kept.HISTORIES, error, written=False)
        return NOTHING_READ

    def keep_histories(self, memory: HybridMemory) -> None:
        """Keep where histories end, and which have been read. Raises `FolderError`: nothing may rely on it then."""
        try:
            self._checkpoint.hybrid.save(memory)
        except Exception as error:
            problem = self._beside.problem(error)
            raise FolderError(
                f"query {self._query}: where histories end cannot be kept: {problem}"
            ) from error

    # What is useful, and no more -------------------------------------------------------------------

    def keep_topics(self, ids: Mapping[str, Ids]) -> None:
        """Keep the ids of topics, by source: the next run compares them."""
        self._beside.save(Kept.TOPICS, lambda: self._checkpoint.topics.save(ids))

    def remember(self, memory: BatchMemory) -> None:
        """Keep what batches have taught, if it is new."""
        before, self.memory = self.memory, memory
        if memory != before:
            self._has_kept_memory = False
            self._keep_memory()

    def _keep_memory(self) -> None:
        save = self._checkpoint.batches.save
        self._has_kept_memory = self._beside.save(Kept.BATCHES, lambda: save(self.memory))

    # Without the JVM -------------------------------------------------------------------------------

    def leave_jvm(self) -> bool:
        """Go on without the JVM, which may have died while it was to keep something.

        Return whether that can be: this machine alone cannot reach each checkpoint.
        """
        checkpoint = self._checkpoint.without_jvm()
        if checkpoint is None:
            return False
        self._checkpoint = checkpoint
        if not self._has_kept_memory:
            self._keep_memory()
        return True
