"""The ports of `headgate.reconcile` on one machine: a process, a scrape, files.

Wired together in `headgate.factory`, and only there.
"""
