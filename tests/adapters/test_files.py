from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from headgate.adapters.local.driver_log import DriverLog
from headgate.adapters.local.files import StateFiles
from headgate.adapters.local.resource_file import (
    RESOURCE_FOUND,
    RESOURCE_MISSING,
    RESOURCE_REFUSED,
    SAVING_SECONDS,
    ResourceFile,
    folder_of,
)
from headgate.adapters.local.state_dir import StateDir
from headgate.api.application import SparkApplication
from headgate.api.status import SparkApplicationStatus
from headgate.decision.driver import State
from headgate.errors import InvalidInputError, TransientError, UsageError
from headgate.reconcile.ports import Problem
from headgate_contract import ControlDocument, QueryControl

DOCUMENT = ControlDocument(
    generation=3, application="flights", queries={"delays": QueryControl(backlog=True)}
)


def state_files(folder: Path) -> StateFiles:
    return StateFiles(StateDir(folder), [].append)


def test_a_control_document_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    file = state_files(tmp_path)
    assert file.published() is None
    file.publish(DOCUMENT)
    assert file.published() == DOCUMENT
    assert [path.name for path in tmp_path.iterdir()] == ["control.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schemaVersion": "9.0"}', "\x00\xff"])
def test_a_control_document_that_cannot_be_read_counts_as_absent(text: str, tmp_path: Path) -> None:
    path = tmp_path / "control.json"
    path.write_text(text)
    assert state_files(tmp_path).published() is None


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '"x"', "[" * 100_000])
def test_a_damaged_memory_is_set_aside_and_told(text: str, tmp_path: Path) -> None:
    path, complaints = tmp_path / "memory.json", []
    path.write_text(text)
    store = StateFiles(StateDir(tmp_path), complaints.append)
    assert store.load() is None
    assert len(complaints) == 1
    assert str(path) in complaints[0]
    (aside,) = tmp_path.iterdir()
    assert aside.read_text() == text
    store.save({"generation": 1})
    assert store.load() == {"generation": 1}


def test_a_status_is_read_back_and_a_damaged_one_counts_as_none(tmp_path: Path) -> None:
    file = state_files(tmp_path)
    assert file.last() is None
    status = SparkApplicationStatus(state=State.RUNNING, attempt=2)
    file.write(status)
    assert file.last() == status
    (tmp_path / "status.json").write_text('{"state": "Flying"}')
    assert file.last() is None


# The driver's log ---------------------------------------------------------------------------------


def test_the_tail_of_a_log_is_that_of_the_last_attempt(tmp_path: Path) -> None:
    path = tmp_path / "driver.log"
    path.write_text("--- attempt 1, then\nold\n--- attempt 2, now\n1\n2\n3\n")
    assert DriverLog(path).tail(2) == ("2", "3")
    assert DriverLog(path).tail(20) == ("1", "2", "3")
    path.write_text("--- attempt 1, then\nold\n")
    assert DriverLog(path).tail(20) == ("old",)
    assert DriverLog(tmp_path / "none.log").tail(2) == ()


def test_the_tail_of_a_log_is_not_spent_on_the_frames_of_a_jvm(tmp_path: Path) -> None:
    frames = "\tat org.apache.spark.sql.Stream.$anonfun$run$1(Stream.scala:357)\n" * 60
    frames += "\tat java.base/java.lang.Thread.run(Thread.java:840)\n\t... 34 more\n"
    told = (
        "Traceback (most recent call last):",
        "    at = None",
        ": java.io.IOException: mkdir failed",
        "the end",
    )
    path = tmp_path / "driver.log"
    path.write_text("--- attempt 1, now\n" + "\n".join(told[:3]) + f"\n{frames}{told[3]}\n")
    assert DriverLog(path).tail(20) == told


def test_the_news_of_a_log_is_what_came_since(tmp_path: Path) -> None:
    path = tmp_path / "driver.log"
    path.write_text("before\n")
    log = DriverLog(path)
    assert log.news() == ""
    with path.open("a") as file:
        file.write("after\n")
    assert log.news() == "after\n"
    path.write_text("anew\n")
    assert log.news() == "anew\n"


# The resource file --------------------------------------------------------------------------------

RESOURCE = """
apiVersion: headgate.dev/v1alpha1
kind: SparkApplication
metadata: {name: NAME}
spec:
  main: {file: job.py}
  queries:
    - name: delays
      checkpoint:
        interval: 5s
"""


def resource(tmp_path: Path, *names: str) -> Path:
    path = tmp_path / "app.yaml"
    path.write_text("---".join(RESOURCE.replace("NAME", name) for name in names or ["flights"]))
    return path


def resource_file(path: Path, name: str | None = None) -> ResourceFile:
    return ResourceFile(path, name, lambda _: None)


def edit(path: Path, before: str, after: str) -> None:
    path.write_text(path.read_text().replace(before, after))


def test_an_edit_is_taken_in_once_and_counted(tmp_path: Path) -> None:
    path = resource(tmp_path)
    file = resource_file(path)
    assert file.application.metadata.generation == 1
    assert file.changed() is None
    edit(path, "5s", "7s")
    changed = file.changed()
    assert isinstance(changed, SparkApplication)
    assert changed is file.application
    assert changed.metadata.generation == 2
    assert file.changed() is None


def test_an_edit_that_says_the_same_is_none(tmp_path: Path) -> None:
    path = resource(tmp_path)
    file = resource_file(path)
    edit(path, "5s", "5000ms  # the same")
    assert file.changed() is None
    assert file.application.metadata.generation == 1


@pytest.mark.parametrize("after", ["5", "1ms", "{"])
def test_an_edit_that_is_refused_leaves_the_one_before_in_force(after: str, tmp_path: Path) -> None:
    path = resource(tmp_path)
    file = resource_file(path)
    before = file.application
    edit(path, "5s", after)
    refused = file.changed()
    assert isinstance(refused, Problem)
    assert refused.reason == RESOURCE_REFUSED
    assert str(path) in refused.message
    assert file.application is before
    assert file.changed() is None, "told once"


def test_an_edit_that_this_machine_cannot_run_is_refused(tmp_path: Path) -> None:
    def require(application: SparkApplication) -> None:
        if application.spec.main.file != "job.py":
            raise InvalidInputError("no such script")

    path = resource(tmp_path)
    file = ResourceFile(path, None, require)
    edit(path, "job.py", "other.py")
    text = "the file was edited, and the resource before stays in force: no such script"
    assert file.changed() == Problem(RESOURCE_REFUSED, text)
    assert file.application.spec.main.file == "job.py"


def test_a_file_that_is_gone_for_a_moment_is_no_edit(tmp_path: Path) -> None:
    path = resource(tmp_path)
    file = resource_file(path)
    path.rename(tmp_path / "elsewhere")
    assert file.changed() is None


def test_a_file_that_stays_away_is_told_once_and_once_more_when_it_is_back(tmp_path: Path) -> None:
    now = 100.0
    path, elsewhere = resource(tmp_path), tmp_path / "elsewhere"
    file = ResourceFile(path, None, lambda _: None, clock=lambda: now)
    before = file.application
    for _ in range(2):
        path.rename(elsewhere)
        assert file.changed() is None, "it may be being saved"
        now += SAVING_SECONDS
        assert file.changed() == Problem(
            RESOURCE_MISSING,
            f"{path}: No such file or directory; the resource as it was read last stays in force until the file is "
            "back",
        )
        now += SAVING_SECONDS
        assert file.changed() is None, "told once"
        assert file.application is before
        elsewhere.rename(path)
        assert file.changed() == Problem(RESOURCE_FOUND, f"{path}: can be read again")
        assert file.changed() is None


def test_an_edit_that_comes_back_with_the_file_is_taken_in(tmp_path: Path) -> None:
    now = 100.0
    path = resource(tmp_path)
    file = ResourceFile(path, None, lambda _: None, clock=lambda: now)
    text = path.read_text()
    path.unlink()
    file.changed()
    now += SAVING_SECONDS
    file.changed()
    path.write_text(text.replace("5s", "7s"))
    assert isinstance(file.changed(), Problem)
    assert isinstance(file.changed(), SparkApplication)


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    text = resource(tmp_path).read_text()
    os.mkfifo(pipe := tmp_path / "pipe")
    threading.Thread(target=pipe.write_text, args=(text,), daemon=True).start()
    file = resource_file(pipe)
    assert (file.application.name, file.changed()) == ("flights", None)


def test_the_folder_of_a_file_outlives_what_the_links_of_a_volume_led_to(tmp_path: Path) -> None:
    for version in ("..1", "..2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "job.py").write_text(version)
        (tmp_path / version / "app.yaml").write_text("")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "app.yaml").symlink_to("..data/app.yaml")
    folder = folder_of(tmp_path / "app.yaml")
    assert (folder / "job.py").read_text() == "..1"

    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").replace(tmp_path / "..data")
    shutil.rmtree(tmp_path / "..1")

    assert (folder / "job.py").read_text() == "..2"


def test_links_in_a_circle_have_a_folder_too(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert folder_of(tmp_path / "a") == tmp_path
    with pytest.raises(UsageError, match="Too many levels of symbolic links"):
        resource_file(tmp_path / "a")


def test_another_name_is_another_application(tmp_path: Path) -> None:
    path = resource(tmp_path)
    file = resource_file(path)
    edit(path, "flights", "trains")
    refused = file.changed()
    assert isinstance(refused, Problem)
    assert "no application flights" in refused.message


def test_one_of_several_is_chosen_by_name(tmp_path: Path) -> None:
    path = resource(tmp_path, "flights", "trains")
    assert resource_file(path, "trains").application.name == "trains"
    with pytest.raises(InvalidInputError, match="choose one with --name: flights, trains"):
        resource_file(path)
    with pytest.raises(InvalidInputError, match="no application ships; it holds: flights, trains"):
        resource_file(path, "ships")


def test_a_resource_that_is_refused_says_where_and_why(tmp_path: Path) -> None:
    path = resource(tmp_path)
    edit(path, "5s", "5")
    with pytest.raises(InvalidInputError, match=r"app.yaml:10: error: .*checkpoint.interval"):
        resource_file(path)


def test_a_file_that_is_not_there_is_a_mistake_in_the_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml"):
        resource_file(tmp_path / "none.yaml")


def test_a_folder_that_cannot_be_written_is_named_and_leaves_the_old_content(tmp_path: Path) -> None:
    file = state_files(tmp_path / "gone")
    with pytest.raises(TransientError, match=r"gone/control.json cannot be written"):
        file.publish(DOCUMENT)


def test_a_folder_where_a_file_should_be_is_named_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "control.json").mkdir()
    with pytest.raises(TransientError, match=r"control\.json cannot be read: Is a directory"):
        state_files(tmp_path).published()
