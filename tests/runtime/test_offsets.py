"""Offsets and positions are two forms of one thing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.engine.open_source import OpenSource
from headgate_spark.engine.sources import Descriptor, RecordCounts
from headgate_spark.planner.model import ReadLimit, Source
from support.engine import described

keys = st.text(st.characters(blacklist_characters="/"), min_size=1, max_size=6)
counts = st.integers(0, 10**15)
offsets = st.dictionaries(keys, st.dictionaries(keys, counts, min_size=1, max_size=4), min_size=1, max_size=3)
form = RecordCounts()


@given(offsets)
def test_an_offset_survives_the_way_there_and_back(offset):
    text = json.dumps(offset)
    assert json.loads(form.offset(form.position(text), text)) == offset


def test_kafka_partitions_are_partitions():
    assert form.position('{"orders":{"0":17,"1":3},"refunds":{"0":1}}') == {
        "orders/0": 17,
        "orders/1": 3,
        "refunds/0": 1,
    }


def test_a_partition_without_a_planned_end_is_taken_to_its_latest():
    latest = '{"orders":{"0":20,"1":9}}'
    assert json.loads(form.offset({"orders/0": 18}, latest)) == {"orders": {"0": 18, "1": 9}}


def test_members_keep_the_order_in_which_the_source_writes_them():
    # Spark compares offsets of some sources as text: another order would be another offset.
    assert form.offset({"b": 1, "a": 2}, '{"b":5,"a":5}') == '{"b":1,"a":2}'


@pytest.mark.parametrize(
    "offset", ["17", '"x"', '{"row":"17"}', '{"row":1.5}', '{"row":null}', '{"row":true}', "[]"]
)
def test_what_does_not_count_records_is_refused(offset):
    with pytest.raises(ValueError, match="expected a count of records"):
        form.position(offset)


def test_an_offset_that_was_counted_last_is_not_counted_again():
    descriptor = Descriptor.parse(described(1, topic="orders", query="copy"))
    opened = OpenSource(descriptor, Source("orders", ReadLimit.OFFSETS))
    text, other = '{"orders":{"0":17}}', '{"orders":{"0":18}}'
    assert opened.position(text) is opened.position(text)
    assert [opened.position(each) for each in (other, text)] == [{"orders/0": 18}, {"orders/0": 17}]
