"""The decision core: from what was measured to what shall hold, by computation alone.

It knows no Kubernetes, no Spark and no clock: measurements, time and chance come in as arguments, frozen
values go out. So the same code decides in a cluster, on one machine and over a recording.
"""

from headgate.decision.estimate import NEVER, Eta, Progress, arrival_rate
from headgate.decision.memory import Dwell, Latch, Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.policy import (
    UNLIMITED,
    OnOutage,
    QueryPolicy,
    RateLimit,
    Reentry,
    ReentryPolicy,
    SourcePolicy,
)
from headgate.decision.verdict import SourceVerdict, Verdict, decide
from headgate.decision.voters import VOTERS, Reason

__all__ = [
    "NEVER",
    "UNLIMITED",
    "VOTERS",
    "Dwell",
    "Eta",
    "Latch",
    "Memory",
    "Observation",
    "OnOutage",
    "Progress",
    "QueryPolicy",
    "RateLimit",
    "Reason",
    "Reentry",
    "ReentryPolicy",
    "SourceObservation",
    "SourcePolicy",
    "SourceVerdict",
    "Verdict",
    "arrival_rate",
    "decide",
]
