"""The dashboard of the operator itself: is somebody leading, does it keep up, and what does it wait for."""

from __future__ import annotations

from typing import Any

from charts.generate.dashboards.panels import Line, Panel, Row, variable
from charts.generate.dashboards.panels import dashboard as made

CHOSEN = 'namespace=~"$namespace", service=~"$service"'
PREFIX = "headgate_operator_"
POD = "{{pod}}"


def _of(metric: str, *more: str) -> str:
    return f"{PREFIX}{metric}{{{', '.join([CHOSEN, *more])}}}"


def _rate(metric: str, by: str, *more: str) -> str:
    return f"sum by ({by}) (rate({_of(metric, *more)}[$__rate_interval]))"


def _quantile(share: float, histogram: str, by: str = "") -> str:
    labels = ", ".join(filter(None, ("le", by)))
    return f"histogram_quantile({share}, {_rate(f'{histogram}_bucket', labels)})"


WELL = Row(
    "Is it well?",
    [
        Panel(
            "Leaders",
            "Replicas that act. It is 1; 0 while another one takes over.",
            [Line(f"sum({_of('leader')})", "")],
            kind="stat",
            width=4,
            height=4,
        ),
        Panel(
            "Stalled",
            "Applications that wait for a person; the condition Stalled of each says why.",
            [Line(f"sum({_of('stalled_applications')})", "")],
            kind="stat",
            width=4,
            height=4,
        ),
        Panel(
            "Applications by state",
            "By the state of the driver; those that are backing off need nobody.",
            [Line(f"sum by (state) ({_of('applications')})", "{{state}}")],
            width=16,
            stacked=True,
        ),
        Panel(
            "Waiting for a worker",
            "Applications that are due and wait for a worker.",
            [Line(f"max by (pod) ({_of('queue_depth')})", POD)],
        ),
        Panel(
            "Longest wait",
            "For how long one of them has been waiting, and for how long a reconcile has been going on.",
            [
                Line(f"max by (pod) ({_of('queue_longest_wait_seconds')})", f"waiting {POD}"),
                Line(f"max by (pod) ({_of('reconcile_longest_running_seconds')})", f"at work {POD}"),
            ],
            unit="s",
        ),
    ],
)
WORK = Row(
    "What does it do?",
    [
        Panel(
            "Reconciles per second",
            "By how they ended: `retried` is tried again, `defect` is an error of the operator.",
            [Line(_rate("reconcile_duration_seconds_count", "result"), "{{result}}")],
            unit="cps",
        ),
        Panel(
            "Time of a reconcile",
            "Writes included.",
            [
                Line(_quantile(0.5, "reconcile_duration_seconds"), "p50"),
                Line(_quantile(0.99, "reconcile_duration_seconds"), "p99"),
            ],
            unit="s",
        ),
        Panel(
            "Decisions",
            "Decisions that differ from the one before, per second.",
            [Line(f"{_rate('decisions_total', 'kind, reason')} > 0", "{{kind}} {{reason}}")],
            unit="cps",
        ),
        Panel(
            "Until it is in force",
            "Time from a control document being published to a sample in which the driver reports it.",
            [
                Line(_quantile(0.5, "control_acknowledge_seconds"), "p50"),
                Line(_quantile(0.95, "control_acknowledge_seconds"), "p95"),
                Line(f"max({_of('control_longest_pending_seconds')})", "longest pending now"),
            ],
            unit="s",
        ),
    ],
)
WAITS = Row(
    "What does it wait for?",
    [
        Panel(
            "Calls to the API server",
            "Per second.",
            [Line(_rate("api_request_duration_seconds_count", "verb, resource"), "{{verb}} {{resource}}")],
            unit="cps",
        ),
        Panel(
            "Calls to the API server, p99",
            "Time of one call.",
            [Line(_quantile(0.99, "api_request_duration_seconds", "verb"), "{{verb}}")],
            unit="s",
        ),
        Panel(
            "Calls that were refused or failed",
            "Per second, by HTTP status. 409 is another writer and harmless; 403 is a missing right.",
            [Line(f"{_rate('api_request_failures_total', 'resource, code')} > 0", "{{code}} {{resource}}")],
            unit="cps",
        ),
        Panel(
            "Watches",
            "Objects that were heard of per second, and objects that were gone without a watch having said so.",
            [
                Line(_rate("watch_events_total", "resource"), "{{resource}}"),
                Line(_rate("watch_missed_total", "resource"), "missed {{resource}}"),
            ],
            unit="cps",
        ),
        Panel(
            "Look at the metrics",
            "Time of a tick, from asking to all that is worth a reconcile being queued; and of one query.",
            [
                Line(_quantile(0.99, "tick_duration_seconds", "source"), "tick p99, {{source}}"),
                Line(_quantile(0.99, "prometheus_query_duration_seconds"), "query p99"),
            ],
            unit="s",
        ),
        Panel(
            "Looks that brought nothing",
            "Queries without a usable answer, and ticks that came while the one before was at work, per second.",
            [
                Line(_rate("prometheus_query_failures_total", "reason"), "{{reason}}"),
                Line(_rate("ticks_skipped_total", ""), "skipped ticks"),
            ],
            unit="cps",
        ),
    ],
)
PROCESS = Row(
    "The process",
    [
        Panel(
            "Processor",
            "Cores in use.",
            [Line(f"sum by (pod) (rate(process_cpu_seconds_total{{{CHOSEN}}}[$__rate_interval]))", POD)],
        ),
        Panel(
            "Memory",
            "Resident set.",
            [Line(f"max by (pod) (process_resident_memory_bytes{{{CHOSEN}}})", POD)],
            unit="bytes",
        ),
    ],
)


def dashboard() -> dict[str, Any]:
    known = f"{PREFIX}build_info"
    variables = [
        variable("namespace", f"label_values({known}, namespace)"),
        variable("service", f'label_values({known}{{namespace=~"$namespace"}}, service)'),
    ]
    return made("headgate-operator", "Headgate / Operator", variables, [WELL, WORK, WAITS, PROCESS])
