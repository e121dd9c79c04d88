"""Tests that read sources are not failed by what other threads do."""

from __future__ import annotations

import ast
from pathlib import Path

from support.parsing import parsed

TESTS = Path(__file__).parents[1]


def test_text_is_parsed_whatever_a_finalizer_does_meanwhile() -> None:
    class Parses:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            compile("1", "<finalizer>", "eval", ast.PyCF_ONLY_AST)

    text = Path(__file__).read_text(encoding="utf-8")
    for _ in range(50):
        for _ in range(100):
            Parses()
        assert isinstance(parsed(text), ast.Module)


def test_no_test_parses_in_another_way() -> None:
    own = {Path(__file__), TESTS / "support" / "parsing.py"}
    others = [file for file in TESTS.rglob("*.py") if "ast.parse(" in file.read_text(encoding="utf-8")]
    assert set(others) == own
