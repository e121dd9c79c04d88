"""On the module path of a driver: its planner's process kills it at the switch from a history to what follows.

`DIES=before` does so before the switch is remembered, `DIES=after` just after, when nothing has been planned yet.
"""

import os
import signal
import sys

MOMENT = os.environ.get("DIES")

if MOMENT and "headgate_spark.runtime" in sys.orig_argv:
    from headgate_spark.engine.store import NumberedStore

    save = NumberedStore.save

    def die():
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def save_or_die(self, value):
        switches = self._name == "hybrid" and value.finished
        if switches and MOMENT == "before":
            die()
        save(self, value)
        if switches:
            die()

    NumberedStore.save = save_or_die
