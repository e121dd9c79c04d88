"""Where a checkpoint is, by the name that Spark gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate_spark.engine.checkpoint import local_path

PLACES = (
    ("/data/ck", "/data/ck"),
    ("file:/data/ck", "/data/ck"),
    ("file:///data/ck", "/data/ck"),
    ("file:/data/a b%20c#d?e/ck", "/data/a b%20c#d?e/ck"),
    ("hdfs://namenode:8020/data/ck", None),
    ("s3a://bucket/ck", None),
)


@pytest.mark.parametrize(("location", "path"), PLACES)
def test_a_path_of_this_machine_is_taken_as_it_is_written(location: str, path: str | None) -> None:
    assert local_path(location) == (None if path is None else Path(path))
