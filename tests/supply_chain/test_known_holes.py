"""The question about known holes that `make lint` asks: a hole fails, and no answer is no good news."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locks import known
from locks.known import NotAskedError, asked, told
from support.http_server import Handler, serving

LIBRARIES = [("kopf", "1.45.2"), ("urllib3", "1.0")]
NO_HOLES: dict[str, Any] = {"results": [{}, {}]}
HOLES = {"results": [{}, {"vulns": [{"id": "PYSEC-1", "modified": "…"}, {"id": "GHSA-2"}]}]}

Database = Callable[[Any], str]


@pytest.fixture
def database() -> Iterator[Database]:
    """A database that answers as it is told to, at the address that is returned; `asked` has what it was asked."""
    answer = b""

    class Asked(Handler):
        def do_POST(self) -> None:
            server.asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))  # type: ignore[attr-defined]
            self.say(answer)

    def answers(what: Any) -> str:
        nonlocal answer
        answer = what if isinstance(what, bytes) else json.dumps(what).encode()
        return f"http://127.0.0.1:{server.server_port}/v1/querybatch"

    with serving(Asked) as server:
        answers.server = server  # type: ignore[attr-defined]
        yield answers


def test_all_are_asked_about_at_once_and_answered_in_their_order(database: Any) -> None:
    assert asked(LIBRARIES, database(HOLES)) == [[], ["PYSEC-1", "GHSA-2"]]
    assert database.server.asked["queries"] == [
        {"package": {"ecosystem": "PyPI", "name": name}, "version": version} for name, version in LIBRARIES
    ]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"<html>log in to go on</html>", "JSONDecodeError"),
        ({"message": "too many queries"}, "KeyError: 'results'"),
        ({"results": [{}]}, "it was asked about 2 libraries, and answers about 1"),
    ],
    ids=["a page", "an error", "too few"],
)
def test_what_is_no_answer_is_not_taken_for_one(database: Database, answer: Any, problem: str) -> None:
    with pytest.raises(NotAskedError, match=problem):
        asked(LIBRARIES, database(answer))


def test_a_database_that_says_nothing_is_not_waited_for() -> None:
    silent = socket.create_server(("127.0.0.1", 0))  # nobody accepts who knocks
    with silent, pytest.raises(NotAskedError, match=r"no answer in 0.01 s|timed out"):
        asked(LIBRARIES, f"http://127.0.0.1:{silent.getsockname()[1]}", 0.01)


def test_a_hole_fails_until_somebody_says_why_it_does_no_harm(monkeypatch, capsys) -> None:
    holes = [[], ["PYSEC-1"]]
    assert told(LIBRARIES, [[], []]) == 0
    assert told(LIBRARIES, holes) == 1
    said = capsys.readouterr()
    assert "2 libraries looked at, 1 holes known\n  urllib3 1.0: PYSEC-1" in said.out
    assert "ACCEPTED of locks/audit.py" in said.err
    monkeypatch.setattr(known, "ACCEPTED", {"PYSEC-1": "nothing of ours calls it"})
    assert told(LIBRARIES, holes) == 0
    assert "accepted: nothing of ours calls it" in capsys.readouterr().out


@pytest.mark.parametrize(("required", "code"), [([], 0), (["--required"], 3)])
def test_without_a_network_nobody_has_looked_and_that_fails_where_it_is_required(
    monkeypatch, capsys, required, code
) -> None:
    def away(libraries: Any) -> Any:
        raise NotAskedError("no route to host")

    monkeypatch.setattr(known, "asked", away)
    monkeypatch.setattr("sys.argv", ["known", *required])
    assert known.main() == code
    said = capsys.readouterr()
    assert "known holes: NOT LOOKED AT, the database could not be asked: no route to host" in said.err
    assert said.out == ""
