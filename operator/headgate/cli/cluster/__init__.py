"""What a person at a terminal does to applications in a cluster, with that person's rights.

The commands read and write objects as `kubectl` would: no server of our own stands behind them, and they do nothing
that somebody without them could not do. The client is the operator's, loaded only when a command needs it. It speaks
to people in its errors, and writes under a field manager of its own, so that nobody takes an edit by hand for one of
the operator's.
"""
