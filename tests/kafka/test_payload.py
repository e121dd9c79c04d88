"""Event times in values of records: where a path leads to, what is a moment, and what is said where there is none."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import EventTimeControl
from headgate_spark import event_time
from headgate_spark.kafka.payload import NoEventTimeError, follow, millis_of, reader_of, steps_of
from support.encoded import EVERY

RIDE = {"pickup": {"time": 5, "a b": 7}, "stops": [{"at": 1}, {"at": 2}], "pick-up": 9, "$": 3}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("pick-up", 9),
        ("$.pickup.time", 5),
        ("$['pickup']['a b']", 7),
        ('$["pickup"].time', 5),
        ("$.stops[1].at", 2),
        ("$.stops[-2].at", 1),
        ("$.pick-up", 9),
    ],
)
def test_a_path_leads_to_one_member(path, found):
    assert follow(steps_of(path), RIDE) == found


@pytest.mark.parametrize(
    "path", ["$.dropoff", "$.pickup[0]", "$.stops.at", "$.stops[2].at", "$.pickup.time.x", "$.pickup.time[0]"]
)
def test_a_path_that_leads_nowhere_says_so(path):
    with pytest.raises(LookupError):
        follow(steps_of(path), RIDE)


@pytest.mark.parametrize("path", ["$", "$..time", "$.stops[*].at", "$.a.", "$[0", "$.a b", "$['a", "$a"])
def test_what_is_no_path_to_one_member_is_refused(path):
    with pytest.raises(ValueError, match="no path of names and indexes"):
        steps_of(path)


AT = datetime(2026, 11, 21, 10, 0, 0, 250_000, tzinfo=UTC)
MILLIS = 1_795_255_200_250


@pytest.mark.parametrize(
    "moment",
    [
        "2026-11-21T10:00:00.250Z",
        "2026-11-21T11:00:00.250+01:00",
        "2026-11-21 10:00:00.250",
        " 20261121T100000.250Z ",
        "2026-11-21T10:00:00.250999999Z",
        MILLIS,
        MILLIS / 1000,
        MILLIS * 1000 + 999,
        MILLIS * 1_000_000 + 999,
        float(MILLIS),
        str(MILLIS),
        str(MILLIS * 1000),
        AT,
        AT.replace(tzinfo=None),
        AT.astimezone(timezone(timedelta(hours=-5))),
    ],
)
def test_a_moment_is_understood_in_each_of_its_forms(moment):
    assert millis_of(moment) == MILLIS


def test_a_date_is_its_midnight_and_no_number():
    midnight = millis_of("2013-11-25")
    assert millis_of("20131125") == midnight == 1_385_337_600_000


@given(st.datetimes(datetime(1973, 4, 1), datetime(5138, 1, 1), timezones=st.just(UTC)), st.integers(0, 3))
def test_a_number_tells_its_unit_by_its_size(moment, thousands):
    seconds = int(moment.timestamp())
    assert millis_of(seconds * 1000**thousands) == seconds * 1000


@pytest.mark.parametrize(
    "value", [None, True, [], {}, "soon", "", -1, float("nan"), float("inf"), 10**400, "1969-12-31T23:59:59Z"]
)
def test_what_is_no_moment_is_refused(value):
    with pytest.raises((ValueError, OverflowError)):
        millis_of(value)


def json_at(column: str):
    return reader_of("rides", EventTimeControl(column=column, format="Json"))


def test_json_is_read_without_a_decoder():
    assert json_at("$.pickup.time").event_time(json.dumps({"pickup": {"time": MILLIS}}).encode()) == MILLIS
    assert (
        reader_of("rides", EventTimeControl(column="at")).event_time(b'{"at": "2013-11-25"}')
        == 1_385_337_600_000
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"\xff\x00no json", "cannot be decoded"),
        (b"", "cannot be decoded"),
        (b"[" * 100_000, "cannot be decoded"),
        (b"17", "no such member"),
        (b'{"to": 1}', "no such member"),
        (b'{"at": null}', "no moment since 1970"),
        (b'{"at": "' + b"x" * 5000 + b'"}', "xxx…"),
        (b'{"at": 1e400}', "no moment since 1970"),
    ],
)
def test_a_value_without_an_event_time_says_why_in_a_few_words(value, why):
    with pytest.raises(NoEventTimeError, match=why) as raised:
        json_at("$.at").event_time(value)
    assert len(str(raised.value)) <= 130


@given(st.binary(max_size=60))
def test_no_value_does_more_harm_than_to_have_no_event_time(value):
    with suppress(NoEventTimeError):
        assert json_at("$.at").event_time(value) >= 0


@pytest.fixture
def no_decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_time, "_decoders", {})


@pytest.mark.usefixtures("no_decoders")
def test_another_format_needs_a_decoder_and_is_told_how_to_register_one():
    where = EventTimeControl(column="$.at", format="Avro")
    with pytest.raises(ValueError, match=r'rides.*\$\.at.*Avro.*event_time\.register\("rides", decoder\)'):
        reader_of("rides", where)
    event_time.register("rides", lambda value: {"at": struct.unpack(">q", value)[0]})
    assert reader_of("rides", where).event_time(struct.pack(">q", MILLIS)) == MILLIS
    with pytest.raises(NoEventTimeError, match="cannot be decoded"):
        reader_of("rides", where).event_time(b"short")


@pytest.mark.usefixtures("no_decoders")
@pytest.mark.parametrize("encoded", EVERY.values(), ids=EVERY)
@given(millis=st.integers(10**11, 10**13))
def test_avro_and_protobuf_are_read_to_the_millisecond_by_the_libraries_that_jobs_use(encoded, millis):
    event_time.register("rides", encoded.decode)
    reader = reader_of("rides", EventTimeControl(column=encoded.column, format=encoded.form))
    assert reader.event_time(encoded.encode(millis)) == millis


@pytest.mark.usefixtures("no_decoders")
@pytest.mark.parametrize("encoded", EVERY.values(), ids=EVERY)
@given(damaged=st.binary(max_size=60))
def test_of_avro_and_protobuf_what_has_no_event_time_only_says_so(encoded, damaged):
    event_time.register("rides", encoded.decode)
    reader = reader_of("rides", EventTimeControl(column=encoded.column, format=encoded.form))
    with pytest.raises(NoEventTimeError, match=r"no such member|no moment since 1970"):
        reader.event_time(encoded.encode(None))
    with suppress(NoEventTimeError):
        assert reader.event_time(damaged) >= 0


@pytest.mark.usefixtures("no_decoders")
def test_a_registered_decoder_takes_the_place_of_the_one_for_json():
    event_time.register("rides", lambda value: json.loads(value[5:]))
    assert json_at("$.at").event_time(b"\x00\x00\x00\x00\x07" + b'{"at": 1700000000}') == 1_700_000_000_000


def test_a_column_that_is_no_path_names_the_source_and_what_is_wrong():
    with pytest.raises(ValueError, match=r"source rides: eventTime\.column: \$\.stops\[\*\] is no path"):
        json_at("$.stops[*]")
