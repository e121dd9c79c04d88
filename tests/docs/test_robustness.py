"""The page of what was found: each finding is on it with what holds it, and each law with where it is checked."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
from docs.site import ROOT

from benchmarks.laws import ELSEWHERE, MACHINES

PAGE = (ROOT / "docs/robustness.md").read_text(encoding="utf-8")
FINDINGS, _, LAWS = PAGE.partition("## The twelve laws")


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells behind the first one of each row, by that."""
    lines = re.findall(r"^\| (\w+) \| (.*) \|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split(" | ")] for name, rest in lines}


def numbers() -> Iterator[str]:
    """Yield the findings that there were, those of several parts by part."""
    parts = {"D7": "abcdef", "F21": "abcdefghij"}
    for kind, last in (("D", 7), ("H", 4), ("M", 10), ("S", 10), ("F", 22)):
        for number in range(1, last + 1):
            yield from (f"{kind}{number}{part}" for part in parts.get(f"{kind}{number}", [""]))


def test_every_finding_is_there_once() -> None:
    assert list(rows(FINDINGS)) == list(numbers())


@pytest.mark.parametrize("finding", rows(FINDINGS))
def test_a_finding_says_what_was_wrong_and_what_holds_it(finding: str) -> None:
    wrong, since, held_by = rows(FINDINGS)[finding]
    tests, commands = (
        re.findall(r"`(tests/[\w/]+\.py)(?:::\w+)?`", held_by),
        re.findall(r"`(grep [^`]+)`", held_by),
    )
    assert len(wrong.split()) > 5
    assert bool(tests) != bool(commands)
    assert re.fullmatch(r"\d\d Nov(, tried)?" if tests else "told", since)
    for command in commands:
        assert subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_every_law_names_where_it_is_checked() -> None:
    assert list(rows(LAWS)) == [f"L{number}" for number in range(1, 13)]
    for law, (_, drawn, besides) in rows(LAWS).items():
        assert re.findall("`([^`]+)`", drawn) == [machine.file for machine in MACHINES if law in machine.laws]
        assert tuple(re.findall("`([^`]+)`", besides)) == ELSEWHERE[law]
        assert all((ROOT / place).exists() for place in ELSEWHERE[law])
