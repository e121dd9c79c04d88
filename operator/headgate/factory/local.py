"""One application on this machine, put together. It imports no client of a cluster, which a laptop may not have."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.adapters.local.driver import LAUNCHER, LocalDrivers
from headgate.adapters.local.driver_log import DriverLog
from headgate.adapters.local.files import StateFiles
from headgate.adapters.local.state_dir import StateDir
from headgate.adapters.metrics.scrape import DriverScrape
from headgate.reconcile.ports import Ports


@dataclass(frozen=True, slots=True)
class LocalApplication:
    """One application on this machine: the ports of its loop, and what only its terminal needs."""

    ports: Ports
    drivers: LocalDrivers
    log: DriverLog


def local_application(
    state_dir: StateDir, base: Path, complain: Callable[[str], None], launcher: Sequence[str] = LAUNCHER
) -> LocalApplication:
    """Return the application that keeps its files in `state_dir`, which the caller has locked.

    `base` is the folder that a relative `main.file` starts from; `complain` is told of damaged files.
    """
    drivers = LocalDrivers(state_dir, base, launcher)
    files = StateFiles(state_dir, complain)
    metrics = DriverScrape(drivers.locate)
    ports = Ports(drivers=drivers, metrics=metrics, controls=files, store=files, reports=files)
    return LocalApplication(ports, drivers, DriverLog(state_dir.log))
