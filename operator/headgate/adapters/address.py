"""Where a driver serves its metrics: told by the wings that run drivers, used by the one that asks them."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Address:
    """Where a driver serves its metrics."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"


class Located(NamedTuple):
    """Where a driver serves its metrics, and which attempt it is."""

    attempt: int
    address: Address
    lineage: str | None = None
    """The uid of its application and the attempt, as its metrics say it; `None`: the uid is not known."""
