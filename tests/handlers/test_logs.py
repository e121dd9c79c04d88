"""The log: one object a line, of the operator and of the libraries that it uses."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from headgate.handlers import process as logs
from headgate.settings import LogFormat, LogLevel
from support import plain_logs


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    plain_logs.configure()
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


def configured(format_: LogFormat = LogFormat.JSON, level: LogLevel = LogLevel.INFO) -> io.StringIO:
    stream = io.StringIO()
    logs.configure(format_, level, stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_object_that_begins_with_time_level_and_sentence() -> None:
    stream = configured()
    structlog.get_logger("headgate.decisions").info("in backlog", application="team/flights", query="größe")
    [line] = lines(stream)

    assert list(line)[:3] == ["timestamp", "level", "event"]
    assert (line["level"], line["query"], line["logger"]) == ("info", "größe", "headgate.decisions")


def test_a_library_s_line_has_the_same_form_and_names_its_object() -> None:
    stream = configured()
    about = {"kind": "Pod", "namespace": "team", "name": "flights-driver-1"}
    logging.getLogger("kopf.objects").warning("Handler %s failed", "pod", extra={"k8s_ref": about})
    [line] = lines(stream)

    assert (line["event"], line["level"]) == ("Handler pod failed", "warning")
    assert line["object"] == "Pod team/flights-driver-1"


def test_a_traceback_stays_in_its_line() -> None:
    stream = configured()
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        structlog.get_logger("headgate").exception("it failed")
    [line] = lines(stream)

    assert line["exception"].endswith("ZeroDivisionError: integer division or modulo by zero")


def test_kopf_says_nothing_at_info_that_is_worth_a_line() -> None:
    stream = configured()
    logging.getLogger("kopf.objects").info("Handler 'pod' succeeded.")
    structlog.get_logger("headgate").debug("nothing to do")
    assert lines(stream) == []

    stream = configured(level=LogLevel.DEBUG)
    logging.getLogger("kopf.objects").info("Handler 'pod' succeeded.")
    structlog.get_logger("headgate").debug("nothing to do")
    assert len(lines(stream)) == 2


def test_warnings_of_python_are_lines_too() -> None:
    stream = configured()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("deprecated", UserWarning, stacklevel=1)

    assert "deprecated" in lines(stream)[0]["event"]


def test_text_is_for_people() -> None:
    stream = configured(LogFormat.TEXT)
    structlog.get_logger("headgate").info("in backlog", query="delays")

    assert "level=info event=in backlog query=delays" in stream.getvalue()


def test_what_others_wrote_forges_no_line_of_text_and_moves_no_cursor() -> None:
    stream = configured(LogFormat.TEXT)
    forged = "no room\ntimestamp=2026-01-01 level=info event=all is well \x1b[2J"
    structlog.get_logger("headgate").warning(f"query q: {forged}", application=f"mallory/{forged}")

    text = stream.getvalue()
    assert text.count("\n") == 1
    assert "\x1b" not in text


def test_a_traceback_is_set_in_below_its_line_of_text() -> None:
    stream = configured(LogFormat.TEXT)
    forged = ValueError("no room\ntimestamp=2026-01-01 level=info event=all is well \x1b[2J")
    structlog.get_logger("headgate").error("it failed", exc_info=forged)

    first, *traceback = stream.getvalue().splitlines()
    assert first.startswith("timestamp=")
    assert all(line.startswith("    ") for line in traceback)
    assert "all is well ␛[2J" in traceback[-1]
