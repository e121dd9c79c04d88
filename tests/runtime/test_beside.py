"""The folder beside a checkpoint fails, in any way: no query ends of it, but one that has to know its histories."""

from __future__ import annotations

import json
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from headgate_contract import ControlDocument, QueryControl, SourceControl
from headgate_spark.engine.checkpoint import Checkpoint, acquire_lock
from headgate_spark.engine.directory import Directory
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.side_folder import FolderError, words_of
from headgate_spark.engine.topics import ids_in
from support.asked import admit, plan
from support.engine import begins, described, services_with
from support.faulty_directory import Fault, FaultyDirectory

AT = '{"%s":{"0":5}}'
ENTRY = "v1\n{}\n" + "\n".join(AT % topic for topic in ("history", "live"))


class Log:
    """A log of Spark's own, which is whole."""

    def __init__(self, **files: str) -> None:
        self.files = {name.removeprefix("_"): text for name, text in files.items()}

    def names(self) -> list[str]:
        return list(self.files)

    def read(self, name: str) -> str:
        return self.files[name]

    def create(self, name: str, text: str) -> None:
        raise AssertionError("Spark's own")

    def delete(self, name: str) -> None:
        raise AssertionError("Spark's own")


def governor_of(folder: FaultyDirectory, *, repeats: bool = False) -> Governor:
    logs = {"offsets": Log(_7=ENTRY), "commits": Log(_6="") if repeats else Log(_7="")}

    def open_directory(uri: str) -> Directory:
        return logs.get(uri.rpartition("/")[2], folder)

    return Governor(
        services_with(open_checkpoint=lambda described: Checkpoint(described.checkpoint, open_directory))
    )


def control(after: str | None) -> ControlDocument:
    sources = {"history": SourceControl(), "live": SourceControl(after=after)}
    return ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=1, sources=sources)})


def run(governor: Governor, number: int, after: str | None, *, rounds: int = 3) -> list[str]:
    """Run the query once; returns what was answered. Raises what a planning has raised last."""
    governor.take_document(control(after))
    handles = (2 * number + 1, 2 * number + 2)
    begins(governor, run=f"r{number}")
    for handle, topic in zip(handles, ("history", "live"), strict=True):
        opened = governor.opened(handle, described(handle, topic=topic, run=f"r{number}"))
        assert opened == f"resume:{AT % topic}", "its offset log can be read"
    answers = []
    try:
        for _ in range(rounds):
            for handle, topic in zip(handles, ("history", "live"), strict=True):
                answer = admit(governor, handle, AT % topic)
                if answer.startswith("survey:"):
                    latest = {h: AT % t for h, t in zip(handles, ("history", "live"), strict=True)}
                    answer = plan(governor, handle, json.dumps(latest))
                answers.append(answer)
    finally:
        for handle in handles:
            governor.closed(handle, None)
    return answers


faults = st.dictionaries(st.integers(1, 30), st.sampled_from(list(Fault)), max_size=8)


@given(faults=faults, always=st.none() | st.sampled_from(list(Fault)), repeats=st.booleans())
def test_a_query_without_a_history_runs_whatever_fails(
    faults: dict[int, Fault], always: Fault | None, repeats: bool
) -> None:
    governor = governor_of(FaultyDirectory(faults, always), repeats=repeats)
    for number in range(3):
        assert not [answer for answer in run(governor, number, None) if answer.startswith("fail")]
    assert governor.failures == 0


@given(faults=faults)
def test_what_is_known_of_a_history_is_never_wrong_whatever_fails(faults: dict[int, Fault]) -> None:
    folder = FaultyDirectory(faults)
    governor = governor_of(folder)
    for number in range(4):
        with suppress(FolderError), capture_logs():
            assert not [answer for answer in run(governor, number, "history") if answer.startswith("fail:")]
    folder.faults = {}
    run(governor, 9, "history")
    kept = [json.loads(text) for name, text in folder.files.items() if name.startswith("hybrid.")]
    assert kept
    assert all(value["ends"] == {"history": {"history/0": 5}} for value in kept)
    assert kept[-1]["finished"] == ["history"]


def test_a_folder_that_may_not_be_used_fails_what_waits_for_a_history_with_folder_and_right() -> None:
    governor = governor_of(FaultyDirectory(always=Fault.DENIED))
    with pytest.raises(FolderError) as failed:
        run(governor, 0, "history")
    assert str(failed.value) == (
        "query copy: source live: it is not known whether its history has been read, because s3a://b/ck.headgate "
        "cannot be used ([Errno 13] Permission denied); see that there is room, and that the job may list, read and "
        "write in it"
    )


def test_what_is_lost_is_told_once() -> None:
    with capture_logs() as told:
        run(governor_of(FaultyDirectory(always=Fault.DENIED), repeats=True), 0, None)
    lost = [line["event"] for line in told if line["log_level"] == "warning" and "cannot be" in line["event"]]
    assert len(lost) == len(set(lost)) == 3
    assert all("s3a://b/ck.headgate" in line["problem"] for line in told if "problem" in line)


def test_a_file_that_another_version_has_written_is_no_matter_of_room_and_rights() -> None:
    folder = FaultyDirectory()
    folder.files["batches.3.json"] = '{"pace": {"records": 5}}'
    with capture_logs() as told:
        assert "fail" not in str(run(governor_of(folder), 0, None))
    [line] = [line for line in told if line["event"].startswith("what was learnt of batches")]
    assert line["problem"] == (
        "file faulty:/ck.headgate/batches.3.json is damaged (pace.seconds: is missing); the next one takes its place"
    )


@pytest.mark.parametrize("kept", [[1], {"orders": 1}, {"orders": {"orders": 1}}])
def test_ids_of_topics_that_nobody_has_kept_are_damage(kept: object) -> None:
    with pytest.raises(ValueError, match="it has no ids of topics by source"):
        ids_in(kept)


def test_a_history_that_is_declared_later_is_told_then() -> None:
    governor = governor_of(FaultyDirectory(always=Fault.DENIED))
    governor.take_document(control(None))
    begins(governor)
    for handle, topic in ((1, "history"), (2, "live")):
        governor.opened(handle, described(handle, topic=topic))
    assert admit(governor, 1, AT % "history").startswith("survey:")
    governor.take_document(control("history"))
    assert admit(governor, 1, AT % "history").startswith(
        "fail:query copy: source live: it is not known whether its history"
    )


class FullDisk:
    """A JVM that can open and lock a file, and write nothing into it."""

    def __init__(self, locks: bool | None) -> None:
        """`locks`: `None` where the file system knows no locks."""
        self.open = 0
        self._locks = locks
        self.java = SimpleNamespace(io=SimpleNamespace(RandomAccessFile=self._opened))

    def _opened(self, path: str, mode: str) -> Any:
        self.open += 1
        return self

    def getChannel(self) -> Any:  # noqa: N802
        return self

    def tryLock(self) -> object:  # noqa: N802
        if self._locks is None:
            raise OSError("No locks available")
        return self._locks

    def setLength(self, length: int) -> None:  # noqa: N802
        pass

    def writeBytes(self, text: str) -> None:  # noqa: N802
        raise OSError("No space left on device")

    def close(self) -> None:
        self.open -= 1


def test_a_full_disk_is_no_second_driver_and_keeps_no_file_open(tmp_path: Any) -> None:
    jvm = FullDisk(locks=True)
    for _ in range(2):
        lock = acquire_lock(jvm, str(tmp_path / "ck"))
        assert lock is not None
        lock.release()
        assert jvm.open == 0


def test_a_file_system_without_locks_is_no_second_driver_and_keeps_no_file_open(tmp_path: Any) -> None:
    jvm = FullDisk(locks=None)
    for _ in range(2):
        assert acquire_lock(jvm, str(tmp_path / "ck")) is None
        assert jvm.open == 0


def test_of_an_exception_of_the_jvm_the_first_cause_is_told() -> None:
    text = (
        "An error occurred while calling o42.listStatus.\n: org.apache.hadoop.fs.s3a.AWSClientIOException: list\n"
        "\tat x.y(Z.java:1)\nCaused by: java.nio.file.AccessDeniedException: s3a://b/ck.headgate: 403\n\t... 9 more\n"
    )
    assert words_of(OSError(text)) == "java.nio.file.AccessDeniedException: s3a://b/ck.headgate: 403"
    assert words_of(OSError()) == "OSError"


def test_what_a_file_system_says_is_told_without_what_is_secret_in_it() -> None:
    said = "no connection to https://app:x7Kq@store.example.com/ck"
    assert words_of(OSError(said)) == "no connection to https://(hidden)@store.example.com/ck"
