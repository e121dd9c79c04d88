"""The scenarios of `make chaos`: what they count, and what they say of what does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.chaos import __main__ as chaos
from benchmarks.chaos.catalog import IN_MEMORY
from benchmarks.chaos.scenario import Bench
from benchmarks.chaos.scenarios import fuzz, misoperation, stale, tenants
from support.fuzzing import Defect, Fed
from support.staleness import StaleError
from support.surfaces import Surface
from support.tenants import TenantError
from support.transitions import LawError


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    told: list[str] = []
    return Bench(tmp_path, seed=3, share=0.002, tell=told.append)


def test_a_small_share_of_each_holds_and_counts_what_it_tried(bench: Bench) -> None:
    for scenario in IN_MEMORY:
        found = scenario.measure(bench)
        assert set(found) == {figure.id for figure in scenario.figures}
        counted, failed = list(found.values())[:2]
        assert counted.runs[0] > 0
        assert failed.runs == [0]
    assert bench.broken == []


def test_what_does_not_hold_is_told_with_its_seed_and_a_command(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def walk(*_: object, **__: object) -> int:
        raise LawError("spec.suspend: most: it does not come to rest")

    def lived(_: object) -> int:
        raise StaleError("two drivers at once")

    def feed(surface: Surface, _count: int, _seed: int) -> Fed:
        return Fed(inputs=1, defects=(Defect(surface.name, b"x", "KeyError: 1"),))

    def lockstep(_: int) -> int:
        raise TenantError("her status is another one")

    monkeypatch.setattr(tenants, "lockstep", lockstep)
    monkeypatch.setattr(misoperation, "walk", walk)
    monkeypatch.setattr(stale, "lived", lived)
    monkeypatch.setattr(fuzz, "feed", feed)
    told: list[str] = []
    bench = Bench(bench.root, bench.seed, bench.share, told.append)

    failed = [list(scenario.measure(bench).values())[1].runs[0] for scenario in IN_MEMORY]

    assert all(count > 0 for count in failed)
    assert sum(failed) == len(bench.broken)
    assert "BROKEN (seed 3): spec.suspend: most: it does not come to rest" in told
    assert "  again: python -m benchmarks.chaos --only misoperation --seed 3" in told
    (command,) = {line.rpartition(" ")[0] for line in told if "support.fuzzing moment" in line}
    assert command == "  again: PYTHONPATH=tests:. python -m support.fuzzing moment"
    assert len(list((bench.root / "fuzz").iterdir())) == len(fuzz.SURFACES)


def test_it_ends_with_an_error_where_something_did_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(bench: Bench) -> dict[str, object]:
        bench.fails("a law", "a command")
        return {"stale_lives": chaos_measured(300), "stale_lives_failed": chaos_measured(1)}

    scenario = stale.Scenario("stale", stale.FIGURES, measure)
    monkeypatch.setattr(chaos, "SUITE", chaos.Suite("benchmarks.chaos", [scenario], chaos.SUITE.origin))
    monkeypatch.setattr(chaos.structlog, "configure", lambda **_: None)  # of all tests in this process
    monkeypatch.setattr("sys.argv", ["chaos", "--share", "0.5"])

    assert chaos.main() == 1


def chaos_measured(value: float) -> object:
    return stale.Measured([value])
