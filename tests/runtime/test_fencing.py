"""The fence as it is taken step by step, on a folder that fails."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from headgate_spark.engine.checkpoint import CheckpointInUseError, is_for_one_run
from headgate_spark.engine.checkpoint_state import CheckpointState
from headgate_spark.engine.fence import LOOK_SECONDS, SETTLE_SECONDS, Epoch, Newcomer, Owner, epochs_among
from headgate_spark.engine.fencing import (
    DENIED,
    FAILING_SECONDS,
    FenceAnswer,
    Fencing,
    folder_of,
    take_over_in,
)
from headgate_spark.engine.resumption import Resumption
from headgate_spark.runtime import fences
from headgate_spark.runtime.fences import begin_of, is_gone, lineage_in, newcomer, owner, this_machine
from support.faulty_directory import Fault, FaultyDirectory

OTHER = Owner(application="orders", host="node-3", pid=4711)


class Clock:
    """Passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def fencing(
    folder: FaultyDirectory, *, ends: object = None, take_over_seconds: float = 0.0, **how: Any
) -> Fencing:
    wanted = Newcomer(
        owner=replace(OTHER, host="here"),
        token="ab",
        now_millis=lambda: 9,
        take_over_seconds=take_over_seconds,
        **how,
    )
    return Fencing("copy", "s3a://b/ck", folder, ends if callable(ends) else lambda: ends, wanted)


def test_a_checkpoint_that_nobody_holds_is_held_at_once() -> None:
    folder = FaultyDirectory()
    fence = fencing(folder)
    assert fence.go_on() == fence.go_on() == FenceAnswer(held="faulty:/ck.headgate/epoch.9.ab")
    assert [epoch.name for epoch in epochs_among(folder.files)] == ["epoch.9.ab"]
    assert not fence.has_waited


def test_who_may_be_alive_is_waited_for() -> None:
    folder = FaultyDirectory()
    folder.files[Epoch(5, "cd").name] = OTHER.text()
    fence = fencing(folder, take_over_seconds=30.0)
    with capture_logs() as told:
        standings = [fence.go_on() for _ in range(5)]
    assert all(0 < (each.ask_again_seconds or 0) <= 1 for each in standings)
    assert fence.has_waited
    assert [line["held_by"] for line in told] == [OTHER.words]
    assert list(folder.files) == ["epoch.5.cd"]


@pytest.mark.parametrize("by", ["an answer", "a commit"])
def test_who_shows_that_it_runs_is_named_and_keeps_its_checkpoint(by: str) -> None:
    folder, clock = FaultyDirectory(), Clock()
    other = Epoch(5, "cd")
    folder.files |= {other.name: OTHER.text(), other.sign: ""}
    commits = iter(range(100))
    ends = (lambda: next(commits)) if by == "a commit" else None
    fence = fencing(folder, ends=ends, take_over_seconds=30.0, clock=clock)
    fence.go_on()
    assert list(folder.files) == [other.name], "it has knocked"
    clock.now += 1.0
    if by == "an answer":
        assert fence.go_on().held is None
        folder.files[other.sign] = ""
        clock.now += 1.0
    with pytest.raises(
        CheckpointInUseError, match="in use by the driver of application orders on host node-3, pid 4711"
    ):
        fence.go_on()
    assert other.name in folder.files


def test_who_gives_no_sign_of_life_for_the_stated_time_is_shut_out() -> None:
    folder, clock = FaultyDirectory(), Clock()
    other = Epoch(5, "cd")
    folder.files |= {other.name: OTHER.text(), other.sign: ""}
    fence = fencing(folder, take_over_seconds=30.0, clock=clock)
    began = clock.now
    while (standing := fence.go_on()).held is None:
        clock.now += standing.ask_again_seconds or 0.0
    assert clock.now - began == pytest.approx(30.0 + SETTLE_SECONDS)
    assert list(folder.files) == ["epoch.9.ab"]


def test_an_earlier_start_of_the_same_application_is_not_waited_for_but_its_last_write_is() -> None:
    folder, clock = FaultyDirectory(), Clock()
    folder.files[Epoch(5, "cd").name] = replace(OTHER, lineage="uid", attempt=1).text()
    wants = Newcomer(
        owner=replace(OTHER, lineage="uid", attempt=2), token="ab", clock=clock, now_millis=lambda: 9
    )
    fence = Fencing("copy", "s3a://b/ck", folder, lambda: None, wants)
    assert fence.go_on().ask_again_seconds == pytest.approx(SETTLE_SECONDS)
    clock.now += SETTLE_SECONDS
    assert fence.go_on().held == "faulty:/ck.headgate/epoch.9.ab"


@pytest.mark.parametrize("is_held", [False, True])
def test_a_run_that_ends_while_it_waits_leaves_no_epoch_unless_the_jvm_has_it(is_held: bool) -> None:
    folder = FaultyDirectory()
    folder.files[Epoch(5, "cd").name] = OTHER.text()
    fence = fencing(folder, holds=lambda _: is_held)
    assert fence.go_on().ask_again_seconds is not None, "it settles"
    fence.release()
    assert [epoch.name for epoch in epochs_among(folder.files)] == (["epoch.9.ab"] if is_held else [])


def test_a_run_that_ends_while_a_step_is_under_way_leaves_no_epoch() -> None:
    class Slow(FaultyDirectory):
        def create(self, name: str, text: str) -> None:
            fence.release()  # another thread comes with the end of the run
            super().create(name, text)

    folder = Slow()
    fence = fencing(folder)
    fence.go_on()
    assert epochs_among(folder.files) == []


def test_a_store_that_fails_for_long_has_no_fence_and_ends_no_query() -> None:
    folder, clock = FaultyDirectory(always=Fault.LOST), Clock()
    fence = fencing(folder, clock=clock)
    with pytest.raises(TimeoutError):
        fence.go_on()
    clock.now += FAILING_SECONDS
    with capture_logs():
        problem = fence.go_on().problem
    assert problem is not None
    assert problem.startswith(
        "checkpoint s3a://b/ck of query copy has no fence: faulty:/ck.headgate cannot be used (the answer is lost);"
    )


def test_where_another_driver_was_found_a_store_that_fails_lets_nobody_in() -> None:
    folder, clock = FaultyDirectory(), Clock()
    folder.files[Epoch(5, "cd").name] = OTHER.text()
    fence = fencing(folder, clock=clock, take_over_seconds=30.0)
    fence.go_on()

    def names() -> list[str]:
        raise TimeoutError("no answer")

    folder.names = names  # type: ignore[method-assign]
    for _ in range(5):
        clock.now += FAILING_SECONDS
        with pytest.raises(TimeoutError):
            fence.go_on()


@pytest.mark.parametrize(
    ("said", "lineage"),
    [
        ("uid/3", ("uid", 3)),
        ("", ("", None)),
        ("uid", ("", None)),
        ("uid/x", ("", None)),
        ("a/b/12", ("a/b", 12)),
    ],
)
def test_a_lineage_is_an_id_and_a_number(said: str, lineage: tuple[str, int | None]) -> None:
    assert lineage_in(said) == lineage


@pytest.mark.parametrize("said", ["HEADGATE_LINEAGE", "spark.headgate.fence.lineage"])
def test_a_lineage_is_told_by_a_variable_and_by_older_operators_by_a_property(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(said, "uid/3")
    no_yarn = SimpleNamespace(isEmpty=lambda: True)
    context = SimpleNamespace(conf=lambda: {said: "uid/3"}, applicationAttemptId=lambda: no_yarn)
    assert fences._lineage(context) == ("uid", 3)


@pytest.mark.parametrize("runs", [True, False])
def test_a_later_start_is_asked_whether_it_runs(runs: bool) -> None:
    """A proxy may hold back the creation of a pod: then the later one runs, and answers. Or whoever counts the starts
    was restored from a backup: then nobody does, and the checkpoint is not lost for as many starts."""
    folder, clock = FaultyDirectory(), Clock()
    later = Epoch(5, "cd")
    folder.files[later.name] = replace(OTHER, lineage="shop/orders", attempt=2).text()
    earlier = replace(OTHER, lineage="shop/orders", attempt=1)
    late = Newcomer(owner=earlier, token="ab", clock=clock, take_over_seconds=30.0)
    fence = Fencing("copy", "s3a://b/ck", folder, lambda: None, late)
    assert fence.go_on().ask_again_seconds is not None
    if runs:
        folder.files[later.sign] = ""
        clock.now += LOOK_SECONDS
        with pytest.raises(CheckpointInUseError, match="pid 4711, which has answered that it runs; stop"):
            fence.go_on()
        assert epochs_among(folder.files) == [later]
    else:
        for _ in range(40):
            clock.now += LOOK_SECONDS
            fence.go_on()
        assert epochs_among(folder.files) == [Epoch(6, "ab")]


@pytest.mark.parametrize("fault", [Fault.TORN, Fault.LOST])
@pytest.mark.parametrize("call", range(1, 8))
def test_a_step_that_fails_is_begun_anew_and_leaves_no_epoch_behind(fault: Fault, call: int) -> None:
    folder = FaultyDirectory({call: fault})
    fence = fencing(folder)
    failures = 0
    for _ in range(3):
        try:
            standing = fence.go_on()
            break
        except OSError:
            failures += 1
    assert standing.held is not None
    assert failures <= 1
    [held] = epochs_among(folder.files)
    assert standing.held.endswith(held.name)


@pytest.mark.parametrize("fault", [Fault.DENIED, Fault.READ_ONLY, Fault.FULL])
def test_where_nothing_can_be_kept_there_is_no_fence_and_it_is_said_once(fault: Fault) -> None:
    fence = fencing(FaultyDirectory(always=fault))
    with capture_logs() as told:
        assert fence.go_on() == fence.go_on()
    assert fence.go_on().held is None
    assert "has no fence: faulty:/ck.headgate cannot be used" in (fence.go_on().problem or "")
    [line] = told
    assert line["event"] == "checkpoint has no fence; see that it has one writer"
    assert line["folder"] == "faulty:/ck.headgate"


# Who is dead -----------------------------------------------------------------------------------------


def test_a_process_that_is_there_no_more_is_known_to_be_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        other = owner("orders", process.pid)
        assert not is_gone(other)
    assert is_gone(other)


def test_another_process_with_its_id_is_not_it() -> None:
    me = owner("orders", os.getpid())
    assert me.started == begin_of(os.getpid())
    assert me.host == socket.gethostname()
    assert not is_gone(me)
    assert is_gone(replace(me, started="1"))


@pytest.mark.parametrize(
    "elsewhere", [{"machine": "another"}, {"machine": ""}, {"pid": None}, {"host": "another"}]
)
def test_of_another_machine_nothing_is_known(elsewhere: dict[str, object]) -> None:
    assert not is_gone(replace(owner("orders", 2**22 + 1), **elsewhere))


def test_this_driver_knows_what_it_holds() -> None:
    me = owner("orders", os.getpid())
    held = {Epoch(1, "aa").name: "file:/ck.headgate/epoch.1.aa"}
    wants = newcomer(me, folder="file:/ck.headgate", held=held.get, take_over_seconds=30.0)
    assert wants.is_dead(Epoch(2, "bb"), me), "a leftover"
    with pytest.raises(CheckpointInUseError, match="another query of this driver") as refused:
        wants.is_dead(Epoch(1, "aa"), me)
    assert refused.value.by_this_driver
    copied = newcomer(me, folder="file:/copy.headgate", held=held.get, take_over_seconds=30.0)
    assert not copied.is_dead(Epoch(1, "aa"), me), "it may be another name of the same folder"
    assert not wants.is_dead(Epoch(3, "cc"), OTHER)


def test_who_has_the_lock_knows_that_all_others_of_its_machine_are_dead() -> None:
    me = owner("orders", os.getpid(), lock="259")
    wants = newcomer(me, folder="file:/ck.headgate", held={}.get, take_over_seconds=30.0)
    assert wants.is_dead(Epoch(3, "cc"), replace(OTHER, machine=this_machine(), lock="259"))
    for elsewhere in ({"machine": "another boot"}, {"lock": "57"}, {"lock": ""}):
        other = replace(OTHER, **{"machine": this_machine(), "lock": "259"} | elsewhere)
        assert not wants.is_dead(Epoch(3, "cc"), other), "it may be no lock there"


@pytest.mark.parametrize(
    ("words", "is_denied"),
    [
        ("java.io.IOException: Mkdirs failed to create file:/ckpt.headgate (exists=false, cwd=file:/)", True),
        ("ParentNotDirectoryException: Parent path is not a directory: file:/ckpt.headgate", True),
        ("org.apache.hadoop.security.AccessControlException: Permission denied: user=spark", True),
        ("java.nio.file.AccessDeniedException: s3a://b/ck.headgate: Forbidden (Status Code: 403)", True),
        ("java.net.SocketTimeoutException: s3a://b/team-403/ck.headgate/epoch.1.aa: Read timed out", False),
    ],
)
def test_a_place_where_nothing_can_be_kept_is_told_from_one_that_does_not_answer(
    words: str, is_denied: bool
) -> None:
    assert (DENIED.search(words) is not None) == is_denied


@pytest.mark.parametrize(
    ("checkpoint", "beside", "is_left"),
    [
        ("ext4", "overlay", True),  # /checkpoint is itself where a volume is mounted
        ("nfs4", "tmpfs", True),
        ("nfs4", "ext4", False),  # a machine's own disk beside a share
        ("overlay", "tmpfs", False),  # the checkpoint ends with the container as well
    ],
)
def test_what_is_kept_in_a_container_for_a_checkpoint_in_a_volume_is_told_of(
    monkeypatch: pytest.MonkeyPatch, checkpoint: str, beside: str, is_left: bool
) -> None:
    where = {Path("/ck"): 1, Path("/ck.headgate"): 2}
    monkeypatch.setattr(fences, "_nearest", where.__getitem__)
    monkeypatch.setattr(fences, "_kinds", lambda: {1: checkpoint, 2: beside})
    found = fences.is_left_in_the_container(Path("/ck"), Path("/ck.headgate"))
    assert found == is_left
    fence = fencing(FaultyDirectory())
    fence.is_left_in_the_container = found
    standing = fence.go_on()
    assert standing.held is not None
    assert ("in this container's own files" in (standing.problem or "")) == is_left


def test_the_kernel_tells_what_is_mounted() -> None:
    proc = Path("/proc")
    assert fences._kinds()[proc.stat().st_dev] == "proc"
    assert fences.mount_of(proc) != fences.mount_of(Path.home()) != ""
    assert fences.mount_of(Path("/nowhere")) == ""
    assert not fences.is_left_in_the_container(proc / "nowhere", proc)


# What is said ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ({}, 30.0),
        ({"spark.headgate.fence": "off"}, None),
        ({"spark.headgate.fence.takeOverAfter": "2m"}, 120.0),
    ],
)
def test_properties(said: dict[str, str], seconds: float | None) -> None:
    assert take_over_in(said.get) == seconds


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("spark.headgate.fence", "no", "spark.headgate.fence is 'no': give on or off"),
        ("spark.headgate.fence.takeOverAfter", "30", "spark.headgate.fence.takeOverAfter: 30 has no unit"),
    ],
)
def test_properties_that_make_no_sense(name: str, value: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        take_over_in({name: value}.get)


def test_a_folder_has_one_name_by_whatever_links_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert folder_of(f"file:{tmp_path}/link/ck") == folder_of(f"{tmp_path}/real/ck/")
    assert folder_of("s3a://b/ck/") == "s3a://b/ck.headgate"


@pytest.mark.parametrize(
    ("checkpoint", "only_one"),
    [("file:/tmp/temporary-1-2", True), ("s3a://b/ck", False), ("/x/temporary-1/ck", False)],
)
def test_what_spark_makes_for_one_run_needs_none(checkpoint: str, only_one: bool) -> None:
    assert is_for_one_run(checkpoint) is only_one


def test_a_checkpoint_that_could_not_be_read_is_read_again_once_it_is_held() -> None:
    class Hiccup:
        def __init__(self) -> None:
            self.left = [OSError("the name node is in safe mode"), OSError("still"), Resumption(7)]

        def resumption(self) -> Resumption:
            left = self.left.pop(0)
            if isinstance(left, OSError):
                raise left
            return left

        batches = SimpleNamespace(load=lambda: None, save=lambda _: None)

    fence: Any = SimpleNamespace(has_waited=False, go_on=lambda: FenceAnswer(held="epoch"))
    state = CheckpointState("orders", Hiccup(), fence=fence)  # type: ignore[arg-type]
    state.resume(None, with_topics=False)
    found = []
    for _ in range(2):
        assert state.stand().held == "epoch"
        found.append(state.resumption.batch)
    assert found == [None, 7]
