"""What a query is refused at its first planning."""

import json
import re

import pytest

from headgate_contract import AlignmentControl, QueryControl, SourceControl
from headgate_spark.engine.refusals import refused_afters, unknown_ends
from headgate_spark.engine.sources import Descriptor

FORMATS = {"history": "parquet", "live": "kafka", "clock": "rate", "steps": "rate-micro-batch"}
QUERY = {"id": "i", "runId": "r", "name": "delays"}
SOURCES = {
    name: Descriptor.parse(
        json.dumps({"handle": 1, "checkpoint": "ck", "query": QUERY, "format": kind, "api": "v2"})
    )
    for name, kind in FORMATS.items()
}


def told(**after):
    return QueryControl(sources={name: SourceControl(after=history) for name, history in after.items()})


ROWS = (
    ("no document", None, 2, None),
    ("watermarks on the branches of a plain union", told(), 2, None),
    ("one watermark, after the union", told(live="history"), 0, None),
    ("a watermark on one branch, for a state of its own", told(live="history"), 1, None),
    ("a watermark on each branch", told(live="history"), 2, "call withWatermark once, after the union"),
    ("a history that is not in the job", told(live="nowhere"), 0, None),
    ("a clock as history", told(live="clock"), 0, "source live comes after clock, which never ends"),
    ("a generator as history", told(live="steps"), 0, r"\(its format is rate-micro-batch\); let it come after"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("control", "watermarks", "message"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_what_cannot_work_is_refused_with_the_remedy(control, watermarks, message):
    refused = refused_afters(control, SOURCES, watermarks)
    if message is None:
        assert not refused
    else:
        assert refused.keys() == {"live"}
        assert re.search(message, refused["live"].sentence)
        assert refused["live"].protects


def aligned(**groups):
    return QueryControl(
        sources={
            name: SourceControl(alignment=AlignmentControl(group=group, max_drift_seconds=1))
            for name, group in groups.items()
        }
    )


UNKNOWN = (
    ("no document", None, None),
    ("two members of one group", aligned(live="delays", history="delays"), "group delays"),
    ("one member here, others elsewhere", aligned(live="delays", elsewhere="delays"), None),
    ("two members of two groups", aligned(live="delays", history="bills"), None),
)


@pytest.mark.parametrize(("control", "message"), [r[1:] for r in UNKNOWN], ids=[r[0] for r in UNKNOWN])
def test_members_whose_ends_are_not_known_are_refused_where_one_would_wait_for_the_other(control, message):
    answer = unknown_ends("delays", control, FORMATS.keys(), is_read=True)
    assert answer is None if message is None else (message in answer and "update Headgate" in answer)
    unread = unknown_ends("delays", control, FORMATS.keys(), is_read=False)
    assert unread is None if message is None else (message in unread and "may read there" in unread)
