"""The control document as a file: what changes is handed on, and nothing that is found can hurt."""

import errno
import json
import os
import threading
from pathlib import Path

import pytest
import structlog

from headgate_contract import ControlDocument, RefusalReason
from headgate_contract.receiving import take, write
from headgate_spark import __version__
from headgate_spark.engine import control_file
from headgate_spark.engine.control_file import ControlFileWatch
from headgate_spark.engine.delivery import Delivery
from headgate_spark.engine.refusals import unknown_members
from headgate_spark.runtime.driver import Runtime
from headgate_spark.runtime.settings import ProcessSettings


@pytest.fixture
def watched(tmp_path):
    documents, refusals = [], []
    path = tmp_path / "control.json"
    return (
        path,
        ControlFileWatch(
            path, on_document=documents.append, on_refusal=lambda refusal, _: refusals.append(refusal)
        ),
        documents,
        refusals,
    )


def replace(path, text):
    unfinished = path.with_suffix(".new")
    unfinished.write_text(text)
    unfinished.replace(path)


def test_a_document_is_handed_on_once(watched):
    path, control, documents, refusals = watched
    replace(path, write(ControlDocument(generation=1)))
    control.poll()
    control.poll()
    assert documents == [ControlDocument(generation=1)]
    assert refusals == []


def test_a_byte_order_mark_as_editors_of_windows_write_it_is_no_matter(watched):
    path, control, documents, refusals = watched
    replace(path, "\ufeff" + write(ControlDocument(generation=1)))
    control.poll()
    assert documents == [ControlDocument(generation=1)]
    assert refusals == []


NOT_KNOWN = (
    "the control document has members that are not known to this driver's Headgate "
    f"({__version__}), and do nothing"
)


def test_members_that_are_not_known_are_told_once_as_slips_or_as_those_of_a_newer_form(tmp_path):
    path, documents, delivery = tmp_path / "control.json", [], Delivery(lambda _: None, lambda: None)
    control = ControlFileWatch(
        path, on_taken=delivery.took, on_document=documents.append, on_refusal=lambda *_: None
    )
    source = '{"rateLimit":{"recordPerSecond":5},"x-note":1,"zebra":{}}'
    query = f'{{"intervalSecond":5,"sources":{{"s":{source}}}}}'
    said = []
    with structlog.testing.capture_logs() as logged:
        for version, generation in (("1.2", 1), ("1.2", 2), ("1.99", 3)):
            replace(
                path,
                f'{{"schemaVersion":"{version}","generation":{generation},"queries":{{"q":{query}}}}}',
            )
            control.poll()
            said.append(delivery.unknown)
    slips = (
        f"{NOT_KNOWN}; correct their names: queries[q].intervalSecond; did you mean intervalSeconds?; "
        "queries[q].sources[s].rateLimit.recordPerSecond; did you mean recordsPerSecond?; "
        "queries[q].sources[s].zebra"
    )
    newer = (
        f"{NOT_KNOWN}; give the job the newer Headgate that wrote it, by jar or image, or take them out: "
        "queries[q].intervalSecond; queries[q].sources[s].rateLimit.recordPerSecond; queries[q].sources[s].zebra"
    )
    assert said == [slips, slips, newer]
    assert [(line["log_level"], line["event"]) for line in logged] == [("warning", slips), ("warning", newer)]
    assert [document.generation for document in documents] == [1, 2, 3]
    replace(path, write(ControlDocument(generation=4)))
    control.poll()
    assert delivery.unknown is None


def test_a_driver_tells_what_it_does_not_know_of_its_document(tmp_path):
    path = tmp_path / "control.json"
    runtime = Runtime(ProcessSettings(token="t", pid=1, application="flights", control=path))
    replace(path, '{"schemaVersion":"1.2","generation":1,"later":1}')
    runtime._control.poll()
    assert runtime.governor.documents.unknown == f"{NOT_KNOWN}; correct their names: later"


def test_a_member_of_a_newer_form_is_told_whole_whatever_is_in_its_name():
    taken = take(json.dumps({"schemaVersion": "1.99", "generation": 1, "later; or never": 1}))
    assert str(unknown_members(taken)).endswith("or take them out: later; or never")


def test_of_many_members_that_are_not_known_a_few_are_told():
    taken = take(json.dumps({"schemaVersion": "1.2", "generation": 1} | dict.fromkeys("abcdef", 1)))
    assert unknown_members(taken) == f"{NOT_KNOWN}; correct their names: a; b; c; d; e; and more"


def test_of_long_names_the_beginning_is_told_and_of_what_they_are_set_to_nothing():
    name = "n" * 100_000
    queries = {name: {"sources": {name: {name: "hunter2"}}}}
    cut = "n" * 60
    taken = take(json.dumps({"schemaVersion": "1.2", "generation": 1, "queries": queries}))
    told = f"{NOT_KNOWN}; correct their names: queries[{cut}].sources[{cut}].{cut}"
    assert unknown_members(taken) == told


def test_a_document_that_is_written_by_the_contract_has_no_unknown_member():
    text = (Path(__file__).parents[2] / "docs/control-document.md").read_text(encoding="utf-8")
    full = text.partition("## A full example")[2].partition("```json\n")[2].partition("```")[0]
    assert list(take(full).unknown) == []


def test_a_file_that_is_not_there_yet_is_no_refusal(watched):
    path, control, documents, refusals = watched
    control.poll()
    replace(path, write(ControlDocument(generation=1)))
    control.poll()
    assert documents == [ControlDocument(generation=1)]
    assert refusals == []


BAD = (
    ("truncated", write(ControlDocument(generation=2))[:-1], RefusalReason.MALFORMED),
    ("of a wrong type", "[]", RefusalReason.INVALID),
    ("of an older generation", write(ControlDocument(generation=0)), RefusalReason.OLDER_GENERATION),
    ("of a newer major version", '{"schemaVersion":"9.0","generation":5}', RefusalReason.NEWER_VERSION),
    ("missing", None, RefusalReason.MISSING),
    ("not even text", "\ufffd\x00", RefusalReason.MALFORMED),
)


@pytest.mark.parametrize(("text", "reason"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_document_is_refused_once_and_a_good_one_heals(watched, text, reason):
    path, control, documents, refusals = watched
    replace(path, write(ControlDocument(generation=1)))
    control.poll()
    if text is None:
        path.unlink()
    else:
        replace(path, text)
    control.poll()
    control.poll()
    assert [refusal.reason for refusal in refusals] == [reason]
    replace(path, write(ControlDocument(generation=3)))
    control.poll()
    assert documents == [ControlDocument(generation=1), ControlDocument(generation=3)]


def test_a_change_is_seen_without_being_asked_for(watched, tmp_path):
    seen = threading.Event()
    control = ControlFileWatch(
        tmp_path / "c.json", on_document=lambda _: seen.set(), on_refusal=lambda *_: None
    )
    control.start()
    replace(tmp_path / "c.json", write(ControlDocument(generation=1)))
    assert seen.wait(240)
    control.stop()


def test_a_document_that_is_not_there_at_the_start_is_told_once(watched):
    path, control, _, refusals = watched
    control.start()
    control.poll()
    control.stop()
    assert [refusal.reason for refusal in refusals] == [RefusalReason.MISSING]
    assert str(path) in refusals[0].message


NO_FILES = {"a pipe": os.mkfifo, "a folder": os.mkdir}


@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_refused_once_and_a_good_document_heals(watched, make):
    path, control, documents, refusals = watched
    replace(path, write(ControlDocument(generation=1)))
    control.poll()
    path.unlink()
    make(path)
    looking = threading.Thread(target=lambda: (control.poll(), control.poll()), daemon=True)
    looking.start()
    looking.join(60)
    assert not looking.is_alive(), "it waits for whoever may write to it"
    assert [refusal.reason for refusal in refusals] == [RefusalReason.UNREADABLE]
    assert f"{path} cannot be read: it is no file" in refusals[0].message
    path.rmdir() if path.is_dir() else path.unlink()
    replace(path, write(ControlDocument(generation=2)))
    control.poll()
    assert documents == [ControlDocument(generation=1), ControlDocument(generation=2)]


def test_what_cannot_be_read_at_the_start_is_told_as_that(watched):
    path, control, documents, refusals = watched
    path.mkdir()
    control.start()
    control.stop()
    assert [refusal.reason for refusal in refusals] == [RefusalReason.UNREADABLE]
    assert documents == []


def test_a_change_of_rights_alone_is_looked_at(watched, monkeypatch):
    path, control, documents, refusals = watched
    path.write_text(write(ControlDocument(generation=1)))

    def forbidden(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:  # tests may run as root, which may read everything
        patch.setattr(control_file, "_file", forbidden)
        control.poll()
    path.chmod(0o640)
    control.poll()
    assert [refusal.message for refusal in refusals] == [f"{path} cannot be read: Permission denied"]
    assert documents == [ControlDocument(generation=1)]


def test_the_watching_outlives_what_a_document_causes(tmp_path):
    tried, seen = threading.Event(), threading.Event()

    def act(document):
        if document.generation == 1:
            tried.set()
            raise RuntimeError("broken")
        seen.set()

    control = ControlFileWatch(tmp_path / "c.json", on_document=act, on_refusal=lambda *_: None)
    control.start()
    replace(tmp_path / "c.json", write(ControlDocument(generation=1)))
    assert tried.wait(240)
    replace(tmp_path / "c.json", write(ControlDocument(generation=2)))
    assert seen.wait(240)
    control.stop()


def test_after_each_look_what_is_owed_is_tried_again(tmp_path):
    looks, often = [], threading.Event()

    def look():
        looks.append(1)
        if len(looks) == 1:
            raise RuntimeError("broken")
        often.set()

    file = tmp_path / "c.json"
    control = ControlFileWatch(file, on_document=lambda _: None, on_refusal=lambda *_: None, on_look=look)
    control.start()
    assert often.wait(240)
    control.stop()


UNREAD = {
    "empty, as a projected annotation that is not there": "",
    "cut short": write(ControlDocument(generation=2))[:-1],
    "of a wrong type": '{"schemaVersion": "1.0", "generation": "two"}',
    "of a newer major version": '{"schemaVersion":"9.0","generation":5}',
}


def told_of(path):
    """A control file, and what it tells: by a document its generation, by a refusal whether nothing may be read."""
    told = []
    control = ControlFileWatch(
        path,
        on_document=lambda document: told.append(document.generation),
        on_refusal=lambda _, is_unread: told.append(is_unread),
    )
    return control, told


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
def test_one_that_cannot_be_read_is_no_missing_one_until_it_is_taken_away_or_a_good_one_comes(tmp_path, text):
    path = tmp_path / "control.json"
    path.write_text(text)
    control, told = told_of(path)
    control.poll()
    assert told == [True]
    path.unlink()
    control.poll()
    assert told == [True, False], "the person has said that there is none"
    replace(path, text + " ")
    control.poll()
    replace(path, write(ControlDocument(generation=1)))
    control.poll()
    replace(path, text)
    control.poll()
    assert told == [True, False, True, 1, False], "with one in force nothing is unknown"


@pytest.mark.parametrize(
    ("raised", "is_unread"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), False),
        (PermissionError(errno.EACCES, "Permission denied"), True),
        (OSError(errno.EIO, "Input/output error"), True),
        (OSError(errno.ESTALE, "Stale file handle"), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_folder_that_cannot_be_searched_is_no_missing_document(tmp_path, monkeypatch, raised, is_unread):
    path = tmp_path / "folder" / "control.json"
    control, told = told_of(path)

    def away(*_, **__):
        raise raised

    with monkeypatch.context() as patch:
        patch.setattr(type(path), "stat", away)
        patch.setattr(control_file, "_file", away)
        control.start()
        control.stop()
    assert told == [is_unread]
    path.parent.mkdir()
    replace(path, write(ControlDocument(generation=1)))
    control.poll()
    assert told == [is_unread, 1]


def test_what_fails_once_to_be_read_is_read_again_though_it_looks_the_same(tmp_path, monkeypatch):
    path = tmp_path / "control.json"
    path.write_text(write(ControlDocument(generation=1)))
    control, told = told_of(path)

    def fails(*_):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(control_file, "_file", fails)
        control.poll()
        control.poll()
    control.poll()
    assert told == [True, 1]
