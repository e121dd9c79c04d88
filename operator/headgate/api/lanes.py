"""By which way a setting reaches the running job.

Three lanes, from cheap to dear: live (the control document, in force at the next planning of a batch), executors
(Spark adds or removes some, the query goes on), restart (the driver is stopped at the end of a batch and started
anew). Only what cannot be changed in a running driver is in the last one.
"""

from collections.abc import Mapping
from typing import Final

from headgate.api.status import Lane

_LANES: Final[Mapping[str, Lane]] = {
    "spec.sparkVersion": Lane.RESTART,
    "spec.image": Lane.RESTART,
    "spec.main": Lane.RESTART,
    "spec.sparkConf": Lane.RESTART,
    "spec.driver": Lane.RESTART,
    "spec.executor": Lane.RESTART,
    "spec.executor.instances": Lane.EXECUTORS,
    "spec.duringBacklog.executor": Lane.EXECUTORS,
    "spec.duringBacklog.sparkConf": Lane.RESTART,
}


def lane_of(path: str) -> Lane:
    """Return the lane of the setting at `path`, such as `spec.executor.instances`: that of its closest owner."""
    while path:
        if lane := _LANES.get(path):
            return lane
        path = path.rpartition(".")[0]
    return Lane.LIVE
