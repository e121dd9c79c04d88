"""What records of change streams say of themselves, in the envelopes of three connectors and all that is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.kafka.envelope import TOMBSTONE, Mark, NoEnvelopeError, mark_of
from support.debezium import CONNECTORS, avro, behind_an_id, of_avro, plain, with_schema

SNAPSHOT = {"true", "first", "first_in_data_collection", "last_in_data_collection", "last"}
FLAGS = [*sorted(SNAPSHOT), "false", "incremental", None]
FORMS = {"plain": plain, "with its schema": with_schema, "behind an id": behind_an_id, "avro": avro}


@pytest.mark.parametrize("connector", CONNECTORS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("flag", FLAGS)
def test_every_flag_of_every_connector_in_every_form(connector: str, form: str, flag: str | None) -> None:
    value = FORMS[form](CONNECTORS[connector](flag))
    assert mark_of(value, partial(of_avro, connector=connector) if form == "avro" else None) == Mark(
        is_snapshot=flag in SNAPSHOT,
        connector="shop",
        ends_table=flag in ("last", "last_in_data_collection"),
        ends_snapshot=flag == "last",
    )


@pytest.mark.parametrize("flag", [True, False])
def test_before_version_1_the_flag_was_a_boolean(flag: bool) -> None:
    assert (
        mark_of(json.dumps({"source": {"snapshot": flag, "name": "shop"}}).encode(), None).is_snapshot is flag
    )


@pytest.mark.parametrize("value", [None, b'{"schema": {}, "payload": null}'])
def test_a_tombstone_is_a_change(value: bytes | None) -> None:
    assert mark_of(value, None) == TOMBSTONE


def test_a_flattened_record_tells_by_the_field_that_was_added() -> None:
    assert mark_of(b'{"id": 1, "__source_snapshot": "last", "__source_name": "shop"}', None).ends_snapshot
    assert not mark_of(b'{"id": 1, "__source_snapshot": "false"}', None).is_snapshot


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "cannot be decoded"),
        (b"\xff\xfe", "cannot be decoded"),
        (b"[" * 100_000, "cannot be decoded"),
        (b"7", "no object"),
        (b'{"id": 1}', "no `source`"),
        (b'{"source": "shop"}', "no `source`"),
        (b'{"source": {"snapshot": "initial"}}', "'initial', which no known version"),
        (b"\0\0\0\0\x07\x02a", "the job has no decoder"),
        (b"\0", "the job has no decoder"),
    ],
)
def test_what_does_not_tell_says_why(value: bytes, why: str) -> None:
    with pytest.raises(NoEnvelopeError, match=why):
        mark_of(value, None)


def told(value: bytes, decode: Callable[[bytes], object] | None) -> Mark | str:
    try:
        return mark_of(value, decode)
    except NoEnvelopeError as error:
        return str(error)


@pytest.mark.parametrize("decode", [None, of_avro], ids=["json", "avro"])
@given(value=st.binary(max_size=40))
def test_whatever_comes_is_a_mark_or_a_short_reason(
    decode: Callable[[bytes], object] | None, value: bytes
) -> None:
    assert isinstance(found := told(value, decode), Mark) or len(found) < 200
