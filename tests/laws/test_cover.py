"""The audit of a checkpoint finds what it is there to find."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from laws.cover import CoverError, audit_checkpoint, audit_checkpoints

EMPTY = "v1\n{}"


def checkpoint(root: Path, offsets: Mapping[int, str], commits: list[int]) -> Path:
    for log, entries in (("offsets", offsets), ("commits", dict.fromkeys(commits, "v1\n{}"))):
        (root / log).mkdir(parents=True)
        for batch, text in entries.items():
            (root / log / str(batch)).write_text(text)
            (root / log / f".{batch}.crc").touch()
    return root


def ends(**positions: int) -> str:
    members = ", ".join(f'"{split}": {end}' for split, end in positions.items())
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
