"""Sets aside what stays in memory, so that the garbage collector need not look at it again and again.

PySpark, what the script imports and the runtime are some hundred thousand objects that live as long as the driver. A
full collection goes through all of them and finds nothing, and nothing is planned meanwhile: with 512 partitions in
an alignment group one planning in twenty took twice as long for it. What is there when a query starts is looked at
once more, and then left out until the next query starts.
"""

from __future__ import annotations

import gc


def set_aside() -> None:
    """Collect what is garbage, and have collections leave out whatever remains."""
    gc.unfreeze()  # what was set aside before may be garbage by now
    gc.collect()
    gc.freeze()
