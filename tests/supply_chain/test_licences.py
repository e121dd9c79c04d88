"""Licences and known holes: what is accepted, what is told, and that nothing unknown passes for good."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from locks import audit, licences
from locks.licences import faults, is_accepted, licence_of
from locks.lockfile import Pin


class Library:
    """An installed library, as far as its metadata goes."""

    version = "1.0"

    def __init__(self, *, classifiers=(), **said):
        self.said = {name.replace("_", "-"): value for name, value in said.items()}
        self.classifiers = [f"License :: OSI Approved :: {each}" for each in classifiers]
        self.metadata = self

    def __getitem__(self, name):
        return self.said.get(name)

    def get_all(self, _name):
        return self.classifiers


@pytest.mark.parametrize(
    ("library", "licence"),
    [
        (Library(License_Expression="MIT", License="GPL"), "MIT"),
        (Library(License="Apache 2.0"), "Apache-2.0"),
        (Library(License="BSD 3-Clause License\n\nCopyright (c) somebody"), "BSD-3-Clause"),
        (Library(License="UNKNOWN", classifiers=["ISC License (ISCL)"]), "ISC"),
        (Library(License="as told in COPYING"), "as told in COPYING"),
        (Library(), None),
    ],
)
def test_a_licence_is_what_the_library_says(library: Library, licence: str | None) -> None:
    assert licence_of(library) == licence


@pytest.mark.parametrize(
    ("expression", "accepted"),
    [
        ("MIT", True),
        ("Apache-2.0 AND MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-2.0-only", False),
        ("(MIT OR GPL-2.0-only) AND MIT", False),
    ],
)
def test_all_that_binds_has_to_be_accepted(expression: str, accepted: bool) -> None:
    assert is_accepted(expression) is accepted


def test_what_is_wrong_is_told_with_what_to_do() -> None:
    pins = {
        name: Pin(name, "1.0", "", ())
        for name in ("silent", "viral", "other", "good", "absent", "promql-parser")
    }
    pins["other"] = Pin("other", "2.0", "", ())
    installed = {
        "silent": Library(),
        "promql-parser": Library(),
        "viral": Library(License_Expression="AGPL-3.0-only"),
        "other": Library(License="MIT"),
        "good": Library(License="MIT"),
    }
    assert list(faults(pins, installed)) == [
        "other: 1.0 is installed, the lock has 2.0: run `make setup`",
        "silent 1.0 does not say its licence: read its files, then add its name to locks/licences.py",
        "viral 1.0: licence 'AGPL-3.0-only' is not among those accepted in locks/licences.py",
    ]


def test_everything_that_is_locked_may_be_used(capsys) -> None:
    assert licences.main() == 0
    assert capsys.readouterr().err == ""


HOLE = {
    "name": "urllib3",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "aliases": ["CVE-1"], "description": "…"}],
}
SOUND = {"name": "kopf", "version": "1.45.2", "vulns": []}
SKIPPED = {"name": "a", "skip_reason": "not found on PyPI"}


@pytest.mark.parametrize(
    ("dependencies", "code", "out", "err"),
    [
        ([SOUND], 0, "1 libraries looked at, 0 holes known", ""),
        ([SOUND, HOLE], 1, "urllib3 1.0: PYSEC-1, CVE-1; mended in 1.1", ""),
        ([SOUND, SKIPPED], 3, "1 libraries looked at", "NOT LOOKED AT: a: not found on PyPI"),
        ([SKIPPED, HOLE], 1, "PYSEC-1", "NOT LOOKED AT: a"),
    ],
    ids=["sound", "a hole", "one not asked about", "both"],
)
def test_an_audit_tells_holes_and_what_it_could_not_ask_about(dependencies, code, out, err, capsys) -> None:
    assert audit.told("operator", {"dependencies": dependencies}) == code
    said = capsys.readouterr()
    assert out in said.out
    assert err in said.err


@pytest.fixture
def pip_audit(tmp_path: Path, monkeypatch):
    """A program in place of pip-audit."""

    def put(script: str) -> None:
        program = tmp_path / "pip-audit"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(audit, "tool", lambda _name: program)

    return put


def test_an_accepted_hole_is_told_and_no_failure(pip_audit, monkeypatch, capsys) -> None:
    answer = json.dumps({"dependencies": [HOLE]})
    pip_audit(f"""while [ "$1" != --output ]; do shift; done; echo '{answer}' > "$2"; exit 1""")
    assert audit.audit("operator", "pypi") == 1
    monkeypatch.setattr(audit, "ACCEPTED", {"PYSEC-1": "nothing of ours calls it"})
    assert audit.audit("operator", "pypi") == 0
    assert "accepted: nothing of ours calls it" in capsys.readouterr().out


def test_a_database_that_does_not_answer_is_no_good_news(pip_audit, capsys) -> None:
    pip_audit("echo 'requests.exceptions.ConnectionError: no route' >&2; exit 1")
    assert audit.audit("operator", "pypi") == 3
    assert "operator.txt: NOT LOOKED AT, the database could not be asked" in capsys.readouterr().err
