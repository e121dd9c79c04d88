"""Whose a query is, where it was started through Spark Connect, is in the status of that query."""

from __future__ import annotations

import pytest

from headgate_contract import metrics as names
from support.looping import Loop, application, query


def tells(loop: Loop, name: str, *users: str) -> None:
    """The driver reports a run of the query, which these users have started, and nothing else of it."""
    loop.world.metrics.reports(name)
    loop.world.metrics.values += [
        (
            names.QUERY_OWNER.name,
            {"application": "flights", "query": name, "user": user, "session": "5f"},
            1.0,
        )
        for user in users
    ]


def owners(loop: Loop) -> dict[str, str | None]:
    assert loop.memory.status is not None
    return {one.name: one.owner for one in loop.memory.status.queries}


@pytest.fixture
def loop() -> Loop:
    """Two clients of a server have a query each, and the job of the server itself has one."""
    declared = [query(name=name) for name in ("delays", "totals", "own")]
    loop = Loop(declared=application(queries=declared))
    loop.run_until_running()
    tells(loop, "delays", "ada")
    tells(loop, "totals", "grace")
    tells(loop, "own")
    loop.acknowledged_reconcile()
    return loop


def test_each_query_has_its_own_and_one_that_no_client_has_started_has_none(loop: Loop) -> None:
    assert owners(loop) == {"delays": "ada", "totals": "grace", "own": None}
    written = loop.world.reports.last()
    assert written is not None
    assert "owner" not in written.model_dump(mode="json", exclude_none=True)["queries"][2]


@pytest.mark.parametrize("user", ["", None])
def test_one_that_is_not_named_is_not_known(loop: Loop, user: str | None) -> None:
    tells(loop, "delays", *([] if user is None else [user]))
    loop.acknowledged_reconcile()
    assert owners(loop)["delays"] is None


def test_a_query_that_another_session_has_the_name_of_is_told_by_its_own(loop: Loop) -> None:
    tells(loop, "delays-2", "grace")
    loop.acknowledged_reconcile()
    assert owners(loop)["delays"] == "ada"


def test_one_that_has_ended_is_still_whose_it_was_until_it_is_started_anew(loop: Loop) -> None:
    loop.world.metrics.reports("delays", active=0.0)
    loop.acknowledged_reconcile()
    assert owners(loop)["delays"] == "ada"
    tells(loop, "delays", "grace")
    loop.acknowledged_reconcile()
    assert owners(loop)["delays"] == "grace"


def test_it_stays_known_where_nobody_tells_and_not_beyond_its_driver(loop: Loop) -> None:
    loop.world.metrics.has_details = False
    loop.acknowledged_reconcile()
    assert owners(loop)["delays"] == "ada"
    loop.restart()
    loop.acknowledged_reconcile()
    assert owners(loop)["delays"] == "ada"
    loop.world.drivers.ends(1, at=loop.now)
    loop.reconcile()
    assert owners(loop) == {"delays": None, "totals": None, "own": None}


def test_nothing_is_written_for_it_while_it_is_the_same(loop: Loop) -> None:
    written = len(loop.world.reports.statuses)
    for has_details in (True, False, True, False, True):
        loop.world.metrics.has_details = has_details
        loop.acknowledged_reconcile()
    assert len(loop.world.reports.statuses) == written
    tells(loop, "delays", "grace")
    loop.acknowledged_reconcile()
    assert len(loop.world.reports.statuses) == written + 1


def test_a_long_name_is_cut_and_shows_it(loop: Loop) -> None:
    tells(loop, "delays", "x" * 300)
    loop.acknowledged_reconcile()
    assert owners(loop)["delays"] == "x" * 127 + "…"
