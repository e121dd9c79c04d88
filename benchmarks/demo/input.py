"""The input of a run as a schedule: how much of it is there from the start, and when the rest arrives."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.demo.measures import Arrivals
from benchmarks.demo.recordings import EVENT_TIME
from headgate_spark.sources.arrival import MICROS_PER_SECOND, Schedule, parse_schedule


@dataclass(frozen=True)
class Input:
    """The event times of each source, sorted, and the schedule by which they are replayed."""

    event_times: tuple[npt.NDArray[np.int64], ...]
    """Microseconds since 1970, in the order in which the job lists its sources."""
    schedule: Schedule

    @property
    def backlog(self) -> tuple[int, ...]:
        """The rows of each source that are there from the start."""
        return tuple(int(np.searchsorted(times, self.schedule.cut_micros)) for times in self.event_times)

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows of each source."""
        return tuple(len(times) for times in self.event_times)

    def arrivals(self, started: float, live_since: float | None) -> Arrivals:
        """Return when each row arrived in a run that started at one time and went live at another, if it did."""
        return Arrivals(tuple(self._arrived(times, started, live_since) for times in self.event_times))

    def _arrived(
        self, times: npt.NDArray[np.int64], started: float, live_since: float | None
    ) -> npt.NDArray[np.float64]:
        seconds = (times - self.schedule.cut_micros) / (MICROS_PER_SECOND * self.schedule.speed)
        since = np.inf if live_since is None else live_since
        return np.where(seconds < 0, started, since + seconds)


def read_input(data: Path, arguments: Mapping[str, str]) -> Input:
    """Read the event times of the recordings below `data`; the schedule is that of the arguments of the job."""
    columns = (pq.read_table(data / name, columns=[column]) for name, column in EVENT_TIME.items())
    micros = tuple(table.column(0).cast(pa.int64()).to_numpy() for table in columns)
    schedule = parse_schedule({"cut": arguments["--cut"], "speed": arguments["--speed"]})
    if schedule is None:
        raise ValueError("the resource of the demo sets no --cut; set it to the end of the backlog")
    return Input(micros, schedule)
