"""A decoder that a job names is imported where the planner is, or the query is refused in plain words."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path

import pytest

from headgate_contract.settings.said import in_options
from headgate_contract.settings.table import Scope
from headgate_spark.engine import decoders
from headgate_spark.engine.settings import OfJob, SettingsError
from headgate_spark.event_time import Decoder

OPTION = "headgate.eventTime.decoder"


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "rides", raising=False)


def named(name: str, **properties: str) -> Decoder:
    of_job = OfJob({}, {f"spark.headgate.{each}": value for each, value in properties.items()})
    found = decoders.named("q", of_job.read("q", {"rides": {OPTION: name}, "fares": {}}), of_job.properties)
    importlib.invalidate_caches()
    assert found.keys() == {"rides"}
    return found["rides"]


def module(folder: Path, text: str = "def decode(value): return {'at': len(value)}") -> Path:
    (folder / "rides.py").write_text(text)
    return folder


def test_one_in_a_folder_that_is_named_decodes(tmp_path: Path) -> None:
    decoder = named("rides:decode", pythonPath=f"/nowhere:{module(tmp_path)}")
    assert decoder(b"abc") == {"at": 3}


def test_one_in_a_zip_that_the_job_has_sent_along_decodes(tmp_path: Path) -> None:
    sent = tmp_path / "sent.zip"
    with zipfile.ZipFile(sent, "w") as file:
        file.write(module(tmp_path) / "rides.py", "rides.py")
    decoders.look_in(f"{tmp_path}/other.zip, {sent}", ",")
    assert named("rides:decode")(b"abc") == {"at": 3}


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        (None, "rides:decode", "cannot be imported in the planner's process (ModuleNotFoundError: "),
        ("import no_such_library", "rides:decode", "No module named 'no_such_library'"),
        ("raise SystemExit(3)", "rides:decode", "(SystemExit: 3)"),
        ("decode = 3", "rides:decode", "module rides has no function decode"),
        ("", "rides:Codec.decode", "module rides has no function Codec.decode"),
    ],
)  # fmt: skip
def test_one_that_is_not_there_refuses_the_query(
    tmp_path: Path, text: str | None, name: str, told: str
) -> None:
    if text is not None:
        module(tmp_path, text)
    with pytest.raises(SettingsError) as refused:
        named(name, pythonPath=str(tmp_path))
    assert str(refused.value).startswith(f"query q: source rides: option {OPTION}: module rides ")
    assert told in str(refused.value)


@pytest.mark.parametrize("name", ["rides", "rides:", ":decode", "rides.decode()", "../rides:decode", "a b:c"])
def test_a_name_of_no_function_is_refused(name: str) -> None:
    _, problems = in_options({OPTION: name}, Scope.SOURCE)
    assert ["write module:function" in problem.what for problem in problems] == [True]
