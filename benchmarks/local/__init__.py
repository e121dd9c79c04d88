"""`make bench-local`: the figures of one machine, each with its goal, measured on real queries.

Ratios are taken between runs of one call that alternate, so that both meet the same machine. Everything is read
off Spark's own event log, or asked of the operating system: governed and plain queries by the same instrument.
"""
