"""Stopping queries at a batch boundary."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import structlog

from headgate_spark.engine.run import QueryRun

log = structlog.get_logger("headgate")


def await_boundaries(runs: Sequence[QueryRun], deadline: float) -> None:
    """Wait until no query is in a batch any more, `deadline` (`time.monotonic`) at the latest.

    All of them, before one is stopped: many a job ends with the first of its queries, and what another one is doing
    ends with it.
    """
    for run in runs:
        if run.governed and not run.at_boundary.wait(max(0.0, deadline - time.monotonic())):
            log.warning(
                "the grace period has passed; stopped in mid-batch, that batch repeats", query=run.name
            )


def stop_queries(runs: Sequence[QueryRun]) -> None:
    """Stop the queries, side by side; those that are cut end by themselves."""
    stops = [threading.Thread(target=_stop, args=(run,), daemon=True) for run in runs if not run.is_cut]
    for stop in stops:
        stop.start()
    for stop in stops:
        stop.join()


def _stop(run: QueryRun) -> None:
    try:
        if run.started is not None:
            run.started.query.stop()
    except Exception as error:  # the job may be ending the session at the same time
        log.debug("query could not be stopped", query=run.name, error=str(error))
        return
    log.info("query stopped", query=run.name)
