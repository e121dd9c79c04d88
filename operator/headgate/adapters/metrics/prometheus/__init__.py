"""Metrics of all applications from one Prometheus.

`poller` asks once a tick for everybody, with a number of queries that does not depend on how many there are. From
the bottom: `client` asks one query within its time; `fetch` writes the queries, `targets` finds the driver behind a
series, `columns` puts together what a decision needs, `details` what only people need, `expressions` evaluates what
users wrote in `backlog.query`. Which applications are worth a reconcile then is judged in `metrics/due`.
"""
