"""The dashboard of applications: is it catching up, what is in force, and what holds it."""

from __future__ import annotations

from typing import Any

from charts.generate.dashboards.panels import Line, Panel, Row, colours, variable
from charts.generate.dashboards.panels import dashboard as made

OF = '{namespace=~"$namespace", application=~"$application"}'
OF_QUERY = '{namespace=~"$namespace", application=~"$application", query=~"$query"}'
APPLICATION = "namespace, application"
QUERY = "namespace, application, query"
SOURCE = "namespace, application, query, source"
PER_QUERY = "{{namespace}}/{{application}} {{query}}"
PER_SOURCE = "{{namespace}}/{{application}} {{query}} {{source}}"
PER_APPLICATION = "{{namespace}}/{{application}}"
NORMAL_PACE = "Interval|MinPause|NothingPending|FirstLook|Grant"
OUTSIDE_NORMAL_PACE = OF_QUERY.replace("}", f', reason!~"{NORMAL_PACE}"}}')
READ = f"sum by ({QUERY}) (clamp_min(deriv(headgate_source_processed_records_total{OF_QUERY}[5m]), 0))"
"""By its slope and not by `rate`, which takes what a driver has read since its start for that of all five minutes."""
PENDING = f"sum by ({QUERY}) (headgate_source_pending_records{OF_QUERY})"
GROWING = f"sum by ({QUERY}) (deriv(headgate_source_pending_records{OF_QUERY}[5m]))"


def _max(metric: str, by: str = QUERY, of: str = OF_QUERY) -> str:
    """Restarted drivers leave series of two pods for a while: the larger one is shown."""
    return f"max by ({by}) (headgate_{metric}{of})"


def _rate(metric: str, by: str, of: str = OF_QUERY) -> str:
    return f"sum by ({by}) (rate(headgate_{metric}{of}[$__rate_interval]))"


def _quantile(share: float, histogram: str, by: str = QUERY, of: str = OF_QUERY) -> str:
    return f"histogram_quantile({share}, {_rate(f'{histogram}_bucket', f'{by}, le', of)})"


BEHIND = Row(
    "Is it catching up?",
    [
        Panel(
            "In backlog",
            "Queries in backlog now.",
            [Line(f"sum(max by ({QUERY}) (headgate_query_backlog{OF_QUERY}))", "")],
            kind="stat",
            width=4,
            height=4,
        ),
        Panel(
            "Largest lag",
            "Now minus the watermark of the source that is furthest behind.",
            [Line(f"max(headgate_source_watermark_lag_seconds{OF_QUERY})", "")],
            unit="s",
            kind="stat",
            width=4,
            height=4,
        ),
        Panel(
            "Verdict",
            "In backlog or live, by query. Bands that alternate are flapping: raise backlog.reentry.",
            [Line(_max("query_backlog"), PER_QUERY)],
            kind="state-timeline",
            width=16,
            mappings=colours(_0=("live", "green"), _1=("backlog", "orange")),
        ),
        Panel(
            "Watermark lag",
            "Now minus the watermark, by query. It rises by a second per second while a batch runs.",
            [Line(_max("source_watermark_lag_seconds"), PER_QUERY)],
            unit="s",
        ),
        Panel(
            "Pending records",
            "Latest offsets minus committed positions, by query.",
            [Line(PENDING, PER_QUERY)],
        ),
        Panel(
            "Read and arriving",
            "Records per second. Where more arrives than is read, the backlog grows.",
            [Line(READ, f"read {PER_QUERY}"), Line(f"{READ} + {GROWING}", f"arriving {PER_QUERY}")],
            unit="cps",
        ),
        Panel(
            "Caught up in",
            "Pending records by the speed at which they shrink. No line: they do not shrink.",
            [Line(f"{PENDING} / (-1 * {GROWING} > 0)", PER_QUERY)],
            unit="s",
        ),
    ],
)
IN_FORCE = Row(
    "What is in force?",
    [
        Panel(
            "Commit interval",
            "In force now. 0: one batch spans the backlog, or the job has no interval.",
            [Line(_max("query_interval_seconds"), PER_QUERY)],
            unit="s",
        ),
        Panel(
            "Real-time mode",
            "Whether batches run in Spark's real-time mode, by query. No line: it is not asked for.",
            [Line(_max("query_real_time"), PER_QUERY)],
            kind="state-timeline",
            mappings=colours(_0=("micro-batches", "orange"), _1=("real-time", "green")),
        ),
        Panel(
            "Grant and throughput",
            "Records that the last batch was allowed, the most that memory bears, the most before records get "
            "dearer, and records per second when busy.",
            [
                Line(_max("query_grant_records"), f"grant {PER_QUERY}"),
                Line(_max("query_memory_bound_records"), f"memory bound {PER_QUERY}"),
                Line(_max("query_cost_bound_records"), f"cost bound {PER_QUERY}"),
                Line(_max("query_throughput_records_per_second"), f"throughput {PER_QUERY}"),
            ],
        ),
        Panel(
            "Held by",
            "Share of the time for which sources may not read what is there, by reason; the normal pace left out.",
            [
                Line(
                    _rate("source_held_seconds_total", f"{SOURCE}, reason", OUTSIDE_NORMAL_PACE),
                    f"{{{{reason}}}} {PER_SOURCE}",
                )
            ],
            unit="percentunit",
        ),
        Panel(
            "Rate limit",
            "Records per second that a source may read. No line: no limit.",
            [Line(_max("source_rate_limit_records_per_second", SOURCE), PER_SOURCE)],
            unit="cps",
        ),
        Panel(
            "Drift in a group",
            "How far a source is ahead of the slowest member of its alignment group, in event time.",
            [Line(_max("source_alignment_drift_seconds", SOURCE), PER_SOURCE)],
            unit="s",
        ),
        Panel(
            "Executors",
            "Running, and asked for. Fewer than asked for, for long: a quota or the nodes have no room.",
            [
                Line(_max("executors", APPLICATION, OF), f"running {PER_APPLICATION}"),
                Line(_max("executors_wanted", APPLICATION, OF), f"asked for {PER_APPLICATION}"),
            ],
        ),
        Panel(
            "Control document",
            "Generation in force, by application. It changes without a restart.",
            [Line(_max("control_generation", APPLICATION, OF), PER_APPLICATION)],
        ),
    ],
)
BATCHES = Row(
    "Batches",
    [
        Panel(
            "Duration, p95",
            "From planning to commit, batches with data.",
            [Line(_quantile(0.95, "query_batch_duration_seconds"), PER_QUERY)],
            unit="s",
        ),
        Panel(
            "Batches per second",
            "Committed batches; no_data are those that only moved the watermark.",
            [Line(_rate("query_batches_total", f"{QUERY}, kind"), f"{{{{kind}}}} {PER_QUERY}")],
            unit="cps",
        ),
        Panel(
            "Since the last batch",
            "Time since a batch ended. While records wait, it should not exceed the commit interval by much.",
            [Line(f"time() - {_max('query_last_progress_timestamp_seconds')}", PER_QUERY)],
            unit="s",
        ),
        Panel("State", "Rows in the state stores.", [Line(_max("query_state_rows"), PER_QUERY)]),
        Panel(
            "Planning, p99",
            "Time of one planner call: what governing costs per trigger.",
            [Line(_quantile(0.99, "planner_duration_seconds", APPLICATION, OF), PER_APPLICATION)],
            unit="s",
        ),
        Panel(
            "Failed, out of reach, or not as asked for",
            "Queries that have failed and are not started again, keep the job's own trigger, or stay out of "
            "real-time mode; sources that cannot be asked what they have, or where their snapshot ends. The names of "
            "the lines say why, and what to do.",
            [
                Line(_max("query_failed", f"{QUERY}, cause"), f"{{{{cause}}}} {PER_QUERY}"),
                Line(_max("source_out_of_reach", f"{SOURCE}, cause"), f"{{{{cause}}}} {PER_SOURCE}"),
                Line(_max("query_real_time_refused", f"{QUERY}, cause"), f"{{{{cause}}}} {PER_QUERY}"),
                Line(_max("query_trigger_problem", f"{QUERY}, cause"), f"{{{{cause}}}} {PER_QUERY}"),
                Line(_max("source_snapshot_problem", f"{SOURCE}, cause"), f"{{{{cause}}}} {PER_SOURCE}"),
            ],
        ),
        Panel(
            "What went wrong",
            "Planner calls that failed, and control documents that were refused, per second.",
            [
                Line(_rate("planner_failures_total", APPLICATION, OF), f"planner {PER_APPLICATION}"),
                Line(
                    _rate("control_refused_total", f"{APPLICATION}, reason", OF),
                    f"refused {{{{reason}}}} {PER_APPLICATION}",
                ),
            ],
            unit="cps",
        ),
    ],
)


def dashboard() -> dict[str, Any]:
    started = "headgate_query_started_timestamp_seconds"
    variables = [
        variable("namespace", f"label_values({started}, namespace)"),
        variable("application", f'label_values({started}{{namespace=~"$namespace"}}, application)'),
        variable("query", f"label_values({started}{OF}, query)"),
    ]
    return made("headgate-drivers", "Headgate / Applications", variables, [BEHIND, IN_FORCE, BATCHES])
