"""A query whose settings make no sense is refused when its sources are opened; its siblings run."""

from __future__ import annotations

import json

from headgate_contract import ControlDocument, QueryControl, RateControl, SourceControl
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.services import Services
from support.engine import Locks, MadeUpCheckpoint, Unmeasured


def governor_of(locks: Locks) -> Governor:
    return Governor(
        Services(
            acquire_lock=locks.acquire,
            open_checkpoint=lambda _: MadeUpCheckpoint(),  # type: ignore[arg-type,return-value]
            observer=Unmeasured(),
        )
    )


def begins(
    governor: Governor, query: str, options: dict[str, str], properties: dict[str, str] | None = None
) -> None:
    members = {"id": f"id-{query}", "runId": f"run-{query}", "name": query, "trigger": "processingTime"}
    told = {"intervalMillis": 3_600_000, "plan": "", "options": options, "properties": properties or {}}
    governor.begins(json.dumps({**members, **told}))


def opened(governor: Governor, handle: int, query: str, options: dict[str, str]) -> str:
    named = {"id": f"id-{query}", "runId": f"run-{query}", "name": query}
    members = {"handle": handle, "query": named, "checkpoint": f"ck-{query}", "format": "kafka"}
    return governor.opened(
        handle, json.dumps({**members, "api": "v2", "options": {"subscribe": "orders", **options}})
    )


def test_one_query_is_refused_and_gives_back_its_lock_and_the_other_runs() -> None:
    locks = Locks()
    governor = governor_of(locks)
    begins(governor, "wrong", {"headgate.interval": "5"})
    begins(governor, "right", {"headgate.interval": "5s"})
    assert opened(governor, 1, "wrong", {"headgate.pausd": "true"}) == (
        "refuse:query wrong: option headgate.interval: 5 has no unit; write for example 250ms, 5s, 2m or 1h30m; "
        "source orders: option headgate.pausd: unknown setting; did you mean headgate.paused?"
    )
    assert opened(governor, 2, "right", {"headgate.paused": "true"}) == "ok"
    governor.ended("run-wrong", None)
    assert [run.name for run in governor.runs] == ["right"]
    assert locks.held == {"ck-right"}


def test_a_live_document_takes_an_option_over_and_gives_it_back_when_it_lists_the_query_no_more() -> None:
    governor = governor_of(Locks())
    properties = {"spark.headgate.queries.q.sources.orders.rateLimit.recordsPerSecond": "5"}
    begins(governor, "q", {"headgate.interval": "5s"}, properties)
    assert opened(governor, 1, "q", {}) == "ok"
    (run,) = governor.runs

    def in_force() -> tuple[float | None, float | None]:
        assert run.settings.control is not None
        limit = run.settings.control.sources["orders"].rate_limit
        return run.settings.control.interval_seconds, limit and limit.records_per_second

    assert in_force() == (5.0, 5.0)
    sources = {"orders": SourceControl(rate_limit=RateControl(records_per_second=9.0))}
    governor.take_document(ControlDocument(generation=1, queries={"q": QueryControl(sources=sources)}))
    assert in_force() == (5.0, 9.0)
    governor.take_document(ControlDocument(generation=2))
    assert in_force() == (5.0, 5.0)


def test_a_source_does_not_keep_settings_among_its_options() -> None:
    governor = governor_of(Locks())
    begins(governor, "q", {})
    options = {
        "headgate.paused": "true",
        "headgate.offsets": "records",
        "scan.rate.limit.record-per-second": "5",
    }
    assert opened(governor, 1, "q", options) == "ok"
    (run,) = governor.runs
    (source,) = run.sources
    assert source.descriptor.options == {"subscribe": "orders", "headgate.offsets": "records"}
