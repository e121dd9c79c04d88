"""The ports of `headgate.reconcile` on real things.

Three wings that do not know each other: `local` (a process and files), `kubernetes` (pods, annotations, status and
Events) and `metrics` (Prometheus, or the drivers' own pages). What two of them need lies beside them. They are wired
together in `headgate.factory`, and only there.
"""
