"""A backfilled join of keys with very many rows, beside one of as many rows of keys with few.

In both a key comes as often in an hour, so a row has as many partners; what differs is how long the history is. So
the time for each pair that is found should be the same. Comparing each row with all of its key would take a thousand
times as long.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.backlog.engine import Ran, Request
from benchmarks.backlog.scenario import WARM_UP, Bench, Scenario
from benchmarks.backlog.session import plain_session
from benchmarks.local.recording import Recording
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided, rotated

ROWS = 600_000
APART_SECONDS = 20
"""Between two rows of a key, on average."""
FEW, MANY = "few", "many"
ROWS_OF_A_KEY = {FEW: 30, MANY: 30_000}
FIGURE = Figure("backfill_hot_keys", "ratio", Goal("<=", 2))


def side(name: str, rows_of_a_key: int) -> Recording:
    """Return one side of the join."""
    seconds = rows_of_a_key * APART_SECONDS
    return Recording(f"hot-keys-{name}", ROWS, seconds, 1, 0, keys=ROWS // rows_of_a_key)


SIDES = {
    name: tuple(side(f"{name}-{place}", rows) for place in ("left", "right"))
    for name, rows in ROWS_OF_A_KEY.items()
}


def asked(bench: Bench, name: str, share: float = 1.0) -> Request:
    """Return what is asked of the driver."""
    return Request("join", [bench.recording(one, share) for one in SIDES[name]], mode="backfill")


def seconds_per_pair(run: Ran) -> float:
    """Return how long a run took for each pair that it has found. Raises ValueError where it has found none."""
    if not run.output.rows:
        raise ValueError("the join has found no pair, so there is no time for one; give it more records")
    return run.seconds / run.output.rows


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run both in turns; returns how many times as long a pair takes where keys have very many rows."""
    runs: dict[str, list[Ran]] = {name: [] for name in SIDES}
    with plain_session(bench, "hot-keys") as session:
        for name in SIDES:
            session.run(asked(bench, name, WARM_UP))
        for turn in range(bench.rounds):
            for name in rotated(tuple(SIDES), turn):
                run = session.run(asked(bench, name))
                runs[name].append(run)
                bench.tell(f"round {turn + 1}, {name}: {run.seconds:.1f} s, pairs: {run.output.rows}")
    each = {name: [seconds_per_pair(run) for run in found] for name, found in runs.items()}
    details = {
        "records": 2 * ROWS,
        "rows_of_a_key": ROWS_OF_A_KEY,
        "seconds": {name: [run.seconds for run in found] for name, found in runs.items()},
        "pairs": {name: found[0].output.rows for name, found in runs.items()},
    }
    return {FIGURE.id: Measured(divided(each[MANY], each[FEW]), details)}


SCENARIO = Scenario(FIGURE.id, (FIGURE,), measure)
