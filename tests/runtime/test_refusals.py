"""What a query is refused at its first planning."""

import re

import pytest

from headgate_contract import QueryControl, SourceControl
from headgate_spark.engine.refusals import refusal

FORMATS = {"history": "parquet", "live": "kafka", "clock": "rate", "steps": "rate-micro-batch"}


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
    answer = refusal("delays", control, FORMATS, watermarks)
    if message is None:
        assert answer is None
    else:
        assert answer.startswith("query delays: ")
        assert re.search(message, answer)
