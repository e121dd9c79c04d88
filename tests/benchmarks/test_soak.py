"""The soak in short: what it says of what grows, and a loop whose driver dies. Of a driver: `door/test_soak.py`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.local.statistics import slope_interval
from benchmarks.soak import __main__ as soak
from benchmarks.soak.scenario import slopes
from benchmarks.soak.scenarios import operator

RESTARTS = 8


@given(st.floats(-100, 100), st.floats(-1e6, 1e6))
def test_a_line_has_its_own_slope(slope: float, start: float) -> None:
    low, middle, high = slope_interval(range(10), [start + slope * x for x in range(10)])
    assert low == pytest.approx(middle, abs=1e-6) == pytest.approx(high, abs=1e-6)
    assert middle == pytest.approx(slope, abs=1e-6)


def test_what_only_comes_and_goes_has_not_grown_and_what_grows_has() -> None:
    chance = random.Random(1)
    at = [10 * n for n in range(1, 21)]
    looks = [{"noise": 80 + chance.randint(-3, 3), "leak": 80 + n + chance.randint(-3, 3)} for n in range(20)]
    found = slopes("soak", ["noise", "leak"], at, looks)
    assert found["soak_noise_slope"].runs == [0.0]
    leak = found["soak_leak_slope"]
    assert leak.runs[0] > 0
    assert leak.details["low"] <= 10 <= leak.details["high"], "one in ten restarts is ten in a hundred"


def test_a_slope_of_two_values_is_refused() -> None:
    with pytest.raises(ValueError, match="2 values are too few"):
        slope_interval([1, 2], [1, 2])


def test_what_has_grown_is_told_with_a_command_and_ends_it_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def held(_: Path, restarts: int) -> Iterator[dict[str, float]]:
        for n in range(restarts):
            yield {"threads": 5, "descriptors": 9 + n, "sockets": 0, "files": 3, "rss_bytes": 1e6 * n}

    @contextmanager
    def no_broker(_: Path) -> Iterator[None]:
        yield None

    monkeypatch.setattr(operator, "held", held)
    monkeypatch.setattr(soak, "kept_broker", no_broker)
    monkeypatch.setattr(soak, "BUILD", tmp_path)
    monkeypatch.setattr(soak, "tell", told.append)
    monkeypatch.setattr(
        "sys.argv", ["soak", "--only=operator", "--scale=0.5", f"--results={tmp_path}/soak.json"]
    )

    assert soak.main() == 1
    assert [line for line in told if line.startswith("GROWN")] == [
        "GROWN: soak_operator_descriptors_slope: 100 per 100 restarts"
    ], "what memory a process has is told, and is no defect"
    assert "  again: python -m benchmarks.soak --only operator --scale 0.5" in told


@pytest.mark.processes
def test_a_loop_whose_driver_dies_again_and_again_holds_no_more_than_before(tmp_path: Path) -> None:
    looks = list(operator.held(tmp_path, RESTARTS))
    for kind in ("threads", "descriptors", "sockets"):
        of_kind = [look[kind] for look in looks]
        assert of_kind[-1] - of_kind[1] < RESTARTS - 2, f"{kind}: {of_kind}"
    assert max(look["files"] for look in looks) < RESTARTS + 2, "one for each restart would be more"
