"""A SparkApplication in every state that it can be in, as the API server holds it: made by the loop itself.

What tools of others make of our objects is tested on these. They are recorded in `tests/gitops/states`, so that a
change of what we report shows as a change of those files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headgate.adapters.kubernetes.names import FINALIZER
from headgate.decision.driver import Obstacle, StepReason
from headgate.decision.situation import PATIENCE_SECONDS
from headgate.reconcile.ports import Outage, OutageReason
from support.looping import Loop, application, query

Manifest = dict[str, Any]


def _running() -> Loop:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(interval_seconds=5.0, sources=_lag(2.0, pending=120.0))
    loop.acknowledged_reconcile()
    return loop


def _lag(seconds: float, *, pending: float) -> dict[str, dict[str, float]]:
    return {"flights": {"watermark_lag_seconds": seconds, "pending_records": pending, "idle_seconds": 0.0}}


def _starting() -> Loop:
    loop = Loop()
    loop.reconcile()
    loop.reconcile()
    return loop


def _in_backlog() -> Loop:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(
        interval_seconds=120.0,
        throughput_records_per_second=50_000.0,
        sources=_lag(3600.0, pending=4_000_000.0),
    )
    loop.acknowledged_reconcile()
    loop.acknowledged_reconcile()
    return loop


def _change_pending() -> Loop:
    loop = _running()
    loop.declare(queries=[query(checkpoint={"interval": "7s"})])
    loop.reconcile()
    return loop


def _verdict_pending() -> Loop:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(interval_seconds=5.0, sources=_lag(3600.0, pending=4_000_000.0))
    loop.reconcile()
    return loop


def _not_scraped_yet() -> Loop:
    loop = Loop()
    loop.reconcile()
    loop.world.metrics.outage = Outage(OutageReason.NO_SERIES, "Prometheus has no series of the pod")
    loop.world.drivers.becomes_ready()
    loop.reconcile()
    return loop


def _metrics_gone() -> Loop:
    loop = _running()
    loop.world.metrics.hangs()
    loop.reconcile(120)
    return loop


def _stopping() -> Loop:
    loop = _running()
    loop.declare(suspend=True)
    loop.reconcile()
    return loop


def _suspended() -> Loop:
    loop = _stopping()
    loop.world.drivers.ends(0, at=loop.now)
    loop.reconcile()
    return loop


def _backing_off() -> Loop:
    loop = _running()
    loop.world.drivers.ends(1, at=loop.now)
    loop.reconcile()
    return loop


def _completed() -> Loop:
    loop = _running()
    loop.world.drivers.ends(0, at=loop.now)
    loop.reconcile()
    return loop


def _failed() -> Loop:
    loop = Loop(declared=application(restart={"maxRetries": 0}))
    loop.run_until_running()
    loop.world.drivers.ends(1, at=loop.now)
    loop.reconcile()
    return loop


def _checkpoint_in_use() -> Loop:
    loop = _running()
    loop.world.drivers.ends(75, at=loop.now)
    loop.reconcile()
    loop.reconcile(PATIENCE_SECONDS)
    loop.world.drivers.ends(75, at=loop.now)
    loop.reconcile()
    return loop


def _batch_too_large() -> Loop:
    loop = _running()
    loop.world.drivers.ends(76, at=loop.now)
    loop.reconcile()
    return loop


def _image_missing() -> Loop:
    loop = Loop()
    loop.reconcile()
    message = "the driver's container does not start (ImagePullBackOff); correct spec.image"
    driver = loop.world.drivers.driver
    assert driver is not None
    obstacle = Obstacle(reason=StepReason.IMAGE_PULL_FAILED, message=message, since=loop.now)
    loop.world.drivers.driver = replace(driver, obstacle=obstacle)
    loop.reconcile(PATIENCE_SECONDS + 1)
    return loop


STATES: dict[str, Callable[[], Loop]] = {
    "starting": _starting,
    "running": _running,
    "in-backlog": _in_backlog,
    "control-pending": _change_pending,
    "verdict-pending": _verdict_pending,
    "not-scraped-yet": _not_scraped_yet,
    "metrics-gone": _metrics_gone,
    "stopping": _stopping,
    "suspended": _suspended,
    "backing-off": _backing_off,
    "completed": _completed,
    "failed": _failed,
    "checkpoint-in-use": _checkpoint_in_use,
    "batch-too-large": _batch_too_large,
    "image-missing": _image_missing,
}
"""How the loop gets into each."""


def manifests() -> dict[str, Manifest]:
    """Return the application in each state; three of them are no doing of the loop's."""
    made = {name: _held(reach()) for name, reach in STATES.items()}
    running = made["running"]
    unseen = {**running, "status": {"observedGeneration": -1}}
    changed = {**running, "metadata": {**running["metadata"], "generation": 2}}
    asked = {**running["metadata"], "deletionTimestamp": "2023-11-14T22:20:00Z", "finalizers": [FINALIZER]}
    return {"unseen": unseen, "changed": changed, **made, "deleting": {**running, "metadata": asked}}


def _held(loop: Loop) -> Manifest:
    manifest = loop.application.to_manifest()
    status = loop.world.reports.last()
    assert status is not None
    manifest["metadata"]["namespace"] = "etl"
    return {**manifest, "status": status.model_dump(mode="json", exclude_none=True, exclude={"memory"})}
