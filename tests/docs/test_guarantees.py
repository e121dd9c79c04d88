"""The page of what is promised: each row of it names the test that holds it, or says that there is none, and why."""

from __future__ import annotations

import re

import pytest
from docs.site import ROOT

PAGE = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
HOLDS = re.compile(r"`tests/[\w/]+\.py(?:::test_\w+)?`|`make [a-z-]+|\bno test: \w+")


def rows(after: str) -> list[list[str]]:
    """Return the cells of the first table behind some words."""
    lines = PAGE[PAGE.index(after) :].splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("|---"))
    end = next(number for number, line in enumerate(lines) if number > begin and not line.startswith("|"))
    return [line.strip("| ").split(" | ") for line in lines[begin + 1 : end]]


PROMISED = rows("### Which test holds what")
HAPPENED = rows("row by row:")


@pytest.mark.parametrize("row", [*PROMISED, *HAPPENED], ids=lambda row: row[0])
def test_each_promise_names_what_holds_it(row: list[str]) -> None:
    _, held_by = row
    assert HOLDS.search(held_by)


def test_of_whatever_may_happen_it_is_said_what_holds_it() -> None:
    assert [row[0] for row in HAPPENED] == [row[0] for row in rows("## What a person has to do")]
