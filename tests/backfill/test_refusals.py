"""A join that cannot be backfilled is refused with one sentence that names the side and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit, make_interval

from headgate_spark.backfill import Files, Side, refusals
from headgate_spark.backfill.refusals import BackfillError
from support.backfills import LEFT, Event, Joining

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        (None, "the join has no lower time bound, so no row of shipments would ever leave"),
        ((timedelta(0), None), "the join has no upper time bound, so no row of orders would ever leave"),
        ((None, DAY), "the join has no lower time bound, so no row of shipments would ever leave"),
        ((DAY, SECOND), "holds no time at all: write the smaller bound first"),
        ((timedelta(microseconds=5), DAY), "no whole number of milliseconds"),
        ((SECOND, 200_000_000 * DAY), "longer than Spark knows: give 100,000,000 days at most"),
        ((-100_000_000 * DAY, DAY), None),
        ((SECOND, DAY), None),
        ((-DAY, -SECOND), None),
    ],
)
def test_a_join_that_time_does_not_bound_is_refused(within: Any, expected: str | None) -> None:
    refused(refusals.time_bounds("orders", "shipments", within), expected)


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        (None, "no watermark is given.*set `watermark` to how late"),
        ("10 minutes", "watermark is '10 minutes': write a timedelta"),
        (-SECOND, "make it 0 or more"),
        (timedelta(0), None),
    ],
)
def test_a_side_without_a_watermark_is_refused(delay: Any, expected: str | None) -> None:
    refused(refusals.watermark(delay), expected)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("right_outer", "swap the sides and use how='left_outer'"),
        ("full", "cannot be backfilled: use one of inner, left_outer, left_semi"),
        ("inner", None),
    ],
)
def test_a_join_of_another_kind_is_refused(how: str, expected: str | None) -> None:
    refused(refusals.kind_of_join(how), expected)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ({"at": "timestamp"}, "there is no column k, only at: make it in `prepare`"),
        ({"k": "bigint"}, "there is no column at, only k"),
        ({"k": "bigint", "at": "string"}, "event time at is of type string: cast it to timestamp"),
        ({"k": "bigint", "at": "timestamp"}, None),
    ],
)
def test_a_side_without_a_column_is_refused(types: dict[str, str], expected: str | None) -> None:
    refused(refusals.columns(types, ["k"], "at"), expected)


@pytest.mark.parametrize(
    ("names", "spelled", "expected"),
    [
        (["k", "at", "K"], str.lower, "there are two columns k and K: leave one out"),
        (["k", "at", "k"], str, "there are two columns k and k"),
        (["k", "at", "K"], str, None),
    ],
)
def test_a_column_that_is_there_twice_is_refused(
    names: list[str], spelled: Callable[[str], str], expected: str | None
) -> None:
    refused(refusals.twice(names, spelled), expected)


@pytest.mark.parametrize(
    ("right", "spelled", "expected"),
    [
        (["k", "bt", "X"], str.lower, "both sides have a column X, which is no key"),
        (["k", "bt", "X"], str, None),
        (["k", "bt", "y"], str.lower, None),
    ],
)
def test_a_column_of_both_sides_is_refused(
    right: list[str], spelled: Callable[[str], str], expected: str | None
) -> None:
    refused(refusals.shared(["k", "at", "x"], right, ["k"], spelled), expected)


def test_a_key_that_is_the_event_time_is_refused() -> None:
    refused(refusals.columns({"at": "timestamp"}, ["at"], "at"), "both event time and key")


def test_keys_that_are_no_list_are_refused() -> None:
    refused(refusals.keys("order_id"), r"give a list of columns")


def test_a_history_with_other_columns_is_refused() -> None:
    refused(
        refusals.parts({"k": "int"}, {"k": "bigint"}),
        "column k is bigint in live rows and int in the history",
    )


def test_a_column_that_parquet_does_not_have_is_refused() -> None:
    types = {"k": "bigint", "span": "interval"}
    refused(refusals.parquet_types(types, ["span"]), "column span is of type interval.*cast it, or leave it")
    refused(refusals.parquet_types(types, []), None)


def test_a_state_store_that_takes_no_initial_state_is_refused() -> None:
    provided = "org.apache.spark.sql.execution.streaming.state.{}StateStoreProvider".format
    refused(refusals.state_store(provided("HDFSBacked")), "providerClass to .*RocksDBStateStoreProvider")
    refused(refusals.state_store(provided("RocksDB")), None)


def refused(reason: str | None, expected: str | None) -> None:
    if expected is None:
        assert reason is None
    else:
        with pytest.raises(BackfillError, match=expected):
            refusals.refuse(reason)


@pytest.fixture
def joining(tmp_path: Path) -> Joining:
    made = Joining(tmp_path, "inner", 0, 4, 1, 1)
    made.arrive([([Event(0, 0)], [Event(0, 1)])])
    return made


@pytest.mark.spark
def test_a_missing_column_is_told_with_its_side_before_anything_is_kept(
    spark: SparkSession, joining: Joining
) -> None:
    with pytest.raises(BackfillError, match=r"left side \(left\): there is no column key, only k, at, x"):
        joining.backfilled(spark, on=["key"])
    joining.backfilled(spark)


@pytest.mark.spark
def test_a_column_that_cannot_be_kept_is_told_before_anything_is(
    spark: SparkSession, joining: Joining, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = Joining.side

    def with_interval(self: Joining, name: str, schema: str, time: str, delay: int) -> Side:
        prepared = side(self, name, schema, time, delay)
        return replace(prepared, prepare=lambda rows: rows.withColumn(f"{name} span", make_interval(lit(1))))

    monkeypatch.setattr(Joining, "side", with_interval)
    with pytest.raises(BackfillError, match=r"^left side \(left\): column left span is of type interval"):
        joining.backfilled(spark)
    assert not list(Path(f"{joining.checkpoint}.headgate").glob("backfill*"))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"path": "{}/none"}, r"path .*/none does not exist: create it"),
        ({"schema": "k lnog"}, r"path .* cannot be read as parquet with columns k lnog \(.*\): check format"),
        ({"format": "parket"}, r"path .* cannot be read as parket with columns k long \(.*\): check format"),
    ],
)
def test_files_that_cannot_be_read_are_told_with_the_remedy(
    spark: SparkSession, tmp_path: Path, changed: dict[str, str], expected: str
) -> None:
    source = {"path": "{}", "format": "parquet", "schema": "k long"} | changed
    with pytest.raises(BackfillError, match=expected):
        Files(**source | {"path": source["path"].format(tmp_path)}).cut(spark)


@pytest.mark.spark
def test_files_of_the_history_that_have_gone_since_the_cut_are_missed(
    spark: SparkSession, tmp_path: Path
) -> None:
    joining = Joining(tmp_path / "a%3Ab c", "inner", 0, 4, 1, 1)
    joining.arrive([([Event(0, 0)], []), ([Event(0, 1)], [])])
    source = joining.side("left", LEFT, "at", 1).source
    assert isinstance(source, Files)
    cut = source.cut(spark)
    assert source.history(spark, cut).count() == 2
    joining.arrive([([Event(0, 2)], [])])
    (joining.folder / "left" / "001 of left.parquet").unlink()
    with pytest.raises(
        BackfillError, match=r"left/001.*left\.parquet was cut as history and is gone: put it back"
    ):
        source.history(spark, cut)
    passed_over = replace(source, options={**source.options, "ignoreMissingFiles": "true"})
    assert passed_over.history(spark, cut).count() == 1


@pytest.mark.spark
def test_columns_of_one_name_are_refused(
    spark: SparkSession, joining: Joining, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = Joining.side
    monkeypatch.setattr(
        Joining, "side", lambda self, name, _schema, _time, delay: side(self, name, LEFT, "at", delay)
    )
    with pytest.raises(
        BackfillError, match="both sides have a column at, which is no key: rename it in `prepare`"
    ):
        joining.backfilled(spark)


@pytest.mark.spark
def test_another_output_mode_is_refused_by_spark(spark: SparkSession, joining: Joining) -> None:
    writer = joining.written_by(joining.backfilled(spark, how="left_outer")).outputMode("update")
    with pytest.raises(AnalysisException, match=r"(?i)update"):
        writer.start()
