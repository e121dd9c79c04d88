"""The loop: observe, decide, apply, report; over and over, from whatever state things are in.

`reconcile` is level-based: it compares what should be with what is, and does what is missing. It does not
care what woke it, may be called at any time, and called twice in a row does nothing the second time. The
world is behind `ports`, so one loop serves a terminal on one machine and an operator in a cluster.
"""
