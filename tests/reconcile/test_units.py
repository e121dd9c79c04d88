"""In what the status says that a source can be cut."""

from __future__ import annotations

import pytest

from headgate.api.status import OffsetUnit
from support.looping import Loop, is_read_by


@pytest.mark.parametrize(
    ("read_limit", "unit"),
    [
        ("offsets", OffsetUnit.OFFSETS),
        ("rows", OffsetUnit.RECORDS),
        ("files", OffsetUnit.FILES),
        ("bytes", OffsetUnit.BYTES),
        ("gate", OffsetUnit.NONE),
        ("none", OffsetUnit.NONE),
        ("of a newer driver", None),
        (None, None),
    ],
)
def test_the_lane_that_the_driver_reports_is_the_unit_of_the_source(
    read_limit: str | None, unit: OffsetUnit | None
) -> None:
    loop = Loop()
    loop.run_until_running()
    if read_limit is not None:
        is_read_by(loop, "flights", read_limit)
    loop.acknowledged_reconcile()
    assert loop.memory.status is not None
    (of_query,) = loop.memory.status.queries
    assert [(each.name, each.unit) for each in of_query.sources] == [("flights", unit)]
