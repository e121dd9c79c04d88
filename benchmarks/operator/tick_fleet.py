"""A fleet that Prometheus scrapes: every driver of every application, with two queries of two sources each.

A process of its own, so that its work is not counted as the operator's. Drivers are served in groups, one target
a group, since one machine cannot run ten thousand web servers; a scrape of a real driver brings the same series.
Lags go on, records arrive, and now and then a query falls behind or catches up.

    python -m benchmarks.operator.tick_fleet --applications 1000 --port 9801
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GROUP = 250
"""Drivers behind one target."""
QUERIES, SOURCES = ("delays", "totals"), ("flights", "weather")
BEHIND_SECONDS, LIVE_SECONDS = 900.0, 5.0
REASONS = {"Interval": 0.7, "NothingPending": 0.2, "FirstLook": 0.0, "RateLimit": 0.0}
"""Share of the time for which a source is held by each."""


class Fleet:
    """What its drivers say; one per cent of the queries changes sides in a minute."""

    def __init__(self, applications: int, changes_per_minute: float) -> None:
        self._applications = applications
        self._changes_per_minute = changes_per_minute
        self._began = time.time()
        self._random = random.Random(7)
        self._behind: set[tuple[int, str]] = set()
        self._changed_at = self._began

    def page(self, group: int) -> bytes:
        """Return what the drivers of one group say now."""
        self._change()
        drivers = range(group * GROUP, min((group + 1) * GROUP, self._applications))
        return "".join(line for number in drivers for line in self._driver(number)).encode()

    def _change(self) -> None:
        now = time.time()
        share = self._changes_per_minute * (now - self._changed_at) / 60
        changes = int(share * self._applications * len(QUERIES))
        if not changes:
            return
        self._changed_at = now
        for _ in range(changes):
            self._behind ^= {(self._random.randrange(self._applications), self._random.choice(QUERIES))}

    def _driver(self, number: int) -> Iterator[str]:
        address = f"10.{number // 65536}.{number // 256 % 256}.{number % 256}:8090"
        labels = (
            f'application="app-{number}",container="driver",endpoint="metrics",instance="{address}",'
            f'namespace="team-{number % 20}",pod="app-{number}-driver-1"'
        )
        yield f"headgate_driver_stopping{{{labels}}} 0\nheadgate_control_generation{{{labels}}} 3\n"
        for query in QUERIES:
            yield from self._query(f'{labels},query="{query}"', (number, query) in self._behind)

    def _query(self, labels: str, behind: bool) -> Iterator[str]:
        seconds = time.time() - self._began
        yield (
            f"headgate_query_active{{{labels}}} 1\n"
            f"headgate_query_started_timestamp_seconds{{{labels}}} {self._began}\n"
            f"headgate_query_backlog{{{labels}}} {int(behind)}\n"
            f"headgate_query_interval_seconds{{{labels}}} 5\n"
            f"headgate_query_grant_records{{{labels}}} 100000\n"
            f"headgate_query_throughput_records_per_second{{{labels}}} 50000\n"
            f"headgate_query_state_rows{{{labels}}} 1000\n"
            f"headgate_query_last_progress_timestamp_seconds{{{labels}}} {time.time()}\n"
        )
        lag = (BEHIND_SECONDS if behind else LIVE_SECONDS) + self._random.random() * 5
        for source in SOURCES:
            yield _source(f'{labels},source="{source}"', lag, seconds)


def _source(labels: str, lag: float, seconds: float) -> str:
    held = "".join(
        f'headgate_source_held_seconds_total{{{labels},reason="{reason}"}} {seconds * share}\n'
        for reason, share in REASONS.items()
    )
    return held + (
        f'headgate_source_info{{{labels},lane="offsets"}} 1\n'
        f"headgate_source_watermark_lag_seconds{{{labels}}} {lag}\n"
        f"headgate_source_watermark_timestamp_seconds{{{labels}}} {time.time() - lag}\n"
        f"headgate_source_pending_records{{{labels}}} {int(lag * 1000)}\n"
        f"headgate_source_planned_records_total{{{labels}}} {int(seconds * 1000)}\n"
        f"headgate_source_processed_records_total{{{labels}}} {int(seconds * 1000)}\n"
        f"headgate_source_phase{{{labels}}} 0\nheadgate_source_paused{{{labels}}} 0\n"
        f"headgate_source_finished{{{labels}}} 0\nheadgate_source_idle_seconds{{{labels}}} 0\n"
        f"headgate_source_rate_limit_records_per_second{{{labels}}} 100000\n"
    )


def main() -> None:
    """Serve group N at `/N` until it is ended."""
    parser = argparse.ArgumentParser(description="A fleet of drivers for Prometheus to scrape.")
    parser.add_argument("--applications", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument(
        "--changes", type=float, default=0.01, help="share of verdicts that change in a minute"
    )
    options = parser.parse_args()
    fleet = Fleet(options.applications, options.changes)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = fleet.page(int(self.path.strip("/")))
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *said: object) -> None:
            """Scrapes are not worth a line each."""

    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
