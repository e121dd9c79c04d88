"""The audit of a checkpoint finds what it is there to find."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from laws.cover import CoverError, audit_checkpoint, audit_checkpoints

EMPTY = "v1\n{}"
TESTS = Path(__file__).parents[1]
JUDGED = """
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location("of_all_tests", "{conftest}")
of_all_tests = module_from_spec(spec)
spec.loader.exec_module(of_all_tests)
covered_checkpoints, logs_are_forged = of_all_tests.covered_checkpoints, of_all_tests.logs_are_forged
"""
WITH_A_GAP = """
import pytest

def leave_a_gap(folder):
    for entry in ("offsets/0", "offsets/2", "commits/0"):
        (folder / entry).parent.mkdir(parents=True, exist_ok=True)
        (folder / entry).touch()

@pytest.fixture
def job(tmp_path):
    leave_a_gap(tmp_path / "job" / "ck")

@pytest.mark.spark
def test_with_spark(tmp_path):
    leave_a_gap(tmp_path)

@pytest.mark.spark
def test_with_spark_in_a_fixture(job):
    pass

@pytest.mark.spark
def test_that_forges(tmp_path, logs_are_forged):
    leave_a_gap(tmp_path)

def test_without_spark(tmp_path):
    leave_a_gap(tmp_path)
"""


def checkpoint(root: Path, offsets: Mapping[int, str], commits: list[int]) -> Path:
    for log, entries in (("offsets", offsets), ("commits", dict.fromkeys(commits, "v1\n{}"))):
        (root / log).mkdir(parents=True)
        for batch, text in entries.items():
            (root / log / str(batch)).write_text(text)
            (root / log / f".{batch}.crc").touch()
    return root


def ends(**positions: int) -> str:
    members = ", ".join(f'"{partition}": {end}' for partition, end in positions.items())
    return f'v1\n{{"batchWatermarkMs": 9}}\n{{"orders": {{{members}}}}}\n-'


@pytest.mark.parametrize(
    ("offsets", "commits"),
    [
        ({}, []),
        ({0: ends(a=1)}, []),
        ({0: ends(a=1), 1: ends(a=1, b=0), 2: ends(a=5, b=3)}, [0, 1]),
        ({7: ends(a=1), 8: ends(a=2)}, [5, 6, 7, 8]),
        ({0: EMPTY, 1: ends(a=1)}, [0, 1]),
        ({0: "v1\n{}\n-", 1: 'v1\n{}\n{"a": 1}', 2: 'v1\n{}\n{"a": 1}'}, [0, 1]),
        ({0: "v2\n{}\nx:5\ny:1", 1: "v2\n{}\ny:1\nx:6"}, [0]),
    ],
)
def test_a_checkpoint_that_keeps_the_law(
    tmp_path: Path, offsets: Mapping[int, str], commits: list[int]
) -> None:
    assert audit_checkpoint(checkpoint(tmp_path / "ck", offsets, commits)) == len(offsets)


@pytest.mark.parametrize(
    ("offsets", "commits", "found"),
    [
        ({0: ends(a=5), 1: ends(a=4)}, [0], "'a'.* goes back from 5 to 4"),
        ({0: ends(a=5, b=1), 1: ends(a=5)}, [0], "'b'.* vanished"),
        ({0: ends(a=5), 1: "v1\n{}\n-\n-"}, [0], "vanished"),
        ({0: "v2\n{}\nx:5", 1: "v2\n{}\nx:4"}, [0], "source x: .* goes back"),
        ({0: ends(a=1), 2: ends(a=2)}, [0], "have a gap"),
        ({0: ends(a=1), 1: ends(a=2), 2: ends(a=2)}, [0, 2], "commits: .* have a gap"),
        ({0: ends(a=1)}, [0, 1], r"\[1\] were committed, and never planned"),
        ({}, [0], "none was planned"),
        ({0: ends(a=1), 1: ends(a=2)}, [], "1 was planned before 0 was committed"),
        ({0: 'v1\n{}\n[{"at": 3}]', 1: 'v1\n{}\n[{"at": 2}]'}, [0], "goes back"),
    ],
)
def test_a_checkpoint_that_breaks_it(
    tmp_path: Path, offsets: Mapping[int, str], commits: list[int], found: str
) -> None:
    checkpoint(tmp_path / "deep" / "ck", offsets, commits)
    with pytest.raises(CoverError, match=found):
        audit_checkpoints(tmp_path)


def test_where_topics_were_created_anew_ends_may_go_back(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "ck", {0: ends(a=5, b=1), 1: ends(a=4)}, [0])
    assert audit_checkpoint(path, logs_may_change=True) == 2


@pytest.mark.processes
def test_whatever_a_test_with_spark_leaves_is_judged_when_it_is_over(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(JUDGED.format(conftest=TESTS / "conftest.py"))
    (tmp_path / "test_gaps.py").write_text(WITH_A_GAP)
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", TESTS.parent / "pyproject.toml", "--rootdir", tmp_path),
            *("-p", "no:cacheprovider", tmp_path),
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in ended.stdout.splitlines() if line.startswith("ERROR")]
    assert [line.split("::")[1].split()[0] for line in told] == [
        "test_with_spark",
        "test_with_spark_in_a_fixture",
    ], ended.stdout
    assert all("have a gap" in line for line in told)
    assert "4 passed, 2 errors" in ended.stdout
