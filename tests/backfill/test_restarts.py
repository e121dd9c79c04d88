"""A backfill that is killed goes on where it was, with the cut that it began with."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_spark.backfill.refusals import BackfillError
from support.backfills import Event, Joining, KilledError, Killing, Rows, closing, finish, rows
from support.spark import failure

pytestmark = pytest.mark.spark

STEPS = {
    "left_outer": ("cut", "horizon", "history", "replayed"),
    "inner": ("cut", "history", "horizon", "replayed"),
}
"""Without a horizon it is not known which rows of an outer join are unmatched for good."""
HISTORY = ([Event(0, 0), Event(1, 4), Event(0, 9)], [Event(0, 1), Event(1, 8), Event(0, 8)])
LIVE = [([Event(0, time)], [Event(0, time + 1), Event(1, time)]) for time in (10, 13, 16, 19)]


@pytest.mark.parametrize("how", STEPS)
def test_a_backfill_that_is_killed_at_every_step_writes_each_row_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    joining = Joining(tmp_path, how, -2, 4, 1, 1)
    joining.arrive([HISTORY])
    killing = Killing(monkeypatch)
    for step, batch in zip(STEPS[how], LIVE, strict=True):
        for moment in ("before", "after"):
            killing.at = (moment, step)
            with pytest.raises(KilledError):
                joining.backfilled(spark)
        joining.arrive([batch])  # once the cut is kept, what arrives between two attempts is live
    fail_after_the_first_batch(joining, joining.backfilled(spark))
    joining.arrive([closing(LIVE)])
    expected = written(spark, joining, joining.plain(spark), f"{tmp_path}/plain")
    assert written(spark, joining, joining.backfilled(spark), joining.checkpoint) == expected


def writing(checkpoint: str) -> Callable[[DataFrame, int], None]:
    """A sink that writes a batch again where it had begun to."""
    return lambda batch, number: batch.write.mode("overwrite").parquet(f"{checkpoint}-out/batch={number}")


def fail_after_the_first_batch(joining: Joining, joined: DataFrame) -> None:
    """Run the query until it has written its first batch, which it then does not commit."""

    def write(batch: DataFrame, number: int) -> None:
        writing(joining.checkpoint)(batch, number)
        raise KilledError

    query = joining.written_by(joined).foreachBatch(write).start()
    assert "KilledError" in failure(query)


def written(spark: SparkSession, joining: Joining, joined: DataFrame, checkpoint: str) -> Rows:
    """What the query has written, from its first start to when it has read all there is."""
    finish(joining.written_by(joined, checkpoint).foreachBatch(writing(checkpoint)))
    return rows(spark.read.schema(joined.schema).parquet(f"{checkpoint}-out/batch=*"))


def test_a_checkpoint_of_another_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    joining = Joining(tmp_path, "inner", 0, 4, 1, 1)
    joining.arrive([HISTORY])
    finish(joining.written_by(joining.plain(spark)))
    with pytest.raises(
        BackfillError, match=r"has batches of a query but no backfill.*choose a new checkpoint"
    ):
        joining.backfilled(spark)


def test_a_backfill_is_not_another_one_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    joining = Joining(tmp_path, "inner", 0, 4, 1, 1)
    joining.arrive([HISTORY])
    joining.backfilled(spark)
    with pytest.raises(
        BackfillError, match="belongs to a backfill with join = inner, not left_semi: write it as it was"
    ):
        joining.backfilled(spark, how="left_semi")


def files(joining: Joining, *below: str) -> list[Path]:
    """What is kept beside the checkpoint, in the order of names."""
    return sorted(Path(f"{joining.checkpoint}.headgate", *below[:-1]).glob(below[-1]))


@pytest.mark.parametrize("table", ["history", "replayed-left", "replayed-right"])
def test_a_result_that_is_gone_before_the_query_has_run_is_refused_and_not_missing_in_silence(
    spark: SparkSession, tmp_path: Path, table: str
) -> None:
    joining = Joining(tmp_path, "inner", 0, 4, 1, 1)
    joining.arrive([HISTORY])
    joining.backfilled(spark)
    gone = files(joining, "backfill", table, "*.parquet")[0]
    gone.unlink()
    with pytest.raises(BackfillError) as refused:
        joining.backfilled(spark)
    assert str(refused.value) == (
        f"file {gone} of the computed history is gone: put it back, or delete {joining.checkpoint}.headgate, and the "
        "history is cut and computed anew"
    )
    shutil.rmtree(f"{joining.checkpoint}.headgate")
    joining.backfilled(spark)


def test_a_checkpoint_that_is_deleted_alone_begins_with_what_was_computed(
    spark: SparkSession, tmp_path: Path
) -> None:
    joining = Joining(tmp_path, "left_outer", -2, 4, 1, 1)
    joining.arrive([HISTORY])
    finish(joining.written_by(joining.backfilled(spark)))
    for left in (joining.checkpoint, f"{joining.checkpoint}-out"):
        shutil.rmtree(left)
    joining.arrive([*LIVE, closing(LIVE)])
    found, expected = joining.compared(spark, joining.backfilled(spark))
    assert found == expected


def test_of_a_query_that_has_run_nothing_is_computed_again(spark: SparkSession, tmp_path: Path) -> None:
    joining = Joining(tmp_path, "inner", 0, 4, 1, 1)
    joining.arrive([HISTORY])
    finish(joining.written_by(joining.backfilled(spark)))
    for file in files(joining, "backfill", "history", "*.parquet"):
        file.unlink()  # the query has read them
    joining.backfilled(spark)
    history = Path(f"{joining.checkpoint}.headgate/backfill/history")
    shutil.rmtree(history)
    with pytest.raises(
        BackfillError, match=rf"directory {history} is gone.*: put it back, or make an empty one"
    ):
        joining.backfilled(spark)
    history.mkdir()
    joining.backfilled(spark)
    journal = files(joining, "backfill.*.json")
    journal[-1].unlink()
    with pytest.raises(
        BackfillError, match=r"does not say that step replayed .*: put the folder back as it was"
    ):
        joining.backfilled(spark)
    shutil.rmtree(f"{joining.checkpoint}.headgate")
    with pytest.raises(BackfillError, match=rf"no backfill.*put {joining.checkpoint}\.headgate back"):
        joining.backfilled(spark)
