"""A class that knows everything is noticed while it is one method too large, and not when it has seventy."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from support.parsing import parsed

ROOT = Path(__file__).parents[2]
MOST_METHODS, MOST_LINES = 25, 350
PACKAGES = ("operator/headgate", "spark_jobs/headgate_contract", "spark_jobs/headgate_spark")


def methods(of: ast.ClassDef) -> int:
    return sum(isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) for each in of.body)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_class_has_more_than_25_methods(package: str) -> None:
    classes = {
        f"{path.relative_to(ROOT)}: {each.name}": methods(each)
        for path in (ROOT / package).rglob("*.py")
        for each in ast.walk(parsed(path.read_text()))
        if isinstance(each, ast.ClassDef)
    }
    assert len(classes) > 10
    assert {name: count for name, count in classes.items() if count > MOST_METHODS} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_has_more_than_350_lines(package: str) -> None:
    lines = {
        str(path.relative_to(ROOT)): path.read_text().count("\n") for path in (ROOT / package).rglob("*.py")
    }
    assert len(lines) > 10
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
