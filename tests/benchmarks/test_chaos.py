"""The scenarios of `make chaos`: what they count, and what they say of what does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from benchmarks.chaos import __main__ as chaos
from benchmarks.chaos.catalog import IN_MEMORY
from benchmarks.chaos.scenario import Bench
from benchmarks.chaos.scenarios import fuzz, laws, misoperation, stale, tenants
from benchmarks.laws import ELSEWHERE, Drawn, draw, loaded, rules_of
from support.fuzzing import PROCESSOR_SECONDS, Defect, Fed
from support.staleness import StaleError
from support.surfaces import Surface
from support.tenants import TenantError
from support.transitions import LawError

ROOT = Path(__file__).parents[2]
BREAKS = """
from hypothesis.stateful import RuleBasedStateMachine, rule

class Breaks(RuleBasedStateMachine):
    @rule()
    def counts(self):
        assert False
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    told: list[str] = []
    return Bench(tmp_path, seed=3, share=0.002, tell=told.append)


def test_a_small_share_of_each_holds_and_counts_what_it_tried(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "SLOWEST_SECONDS", PROCESSOR_SECONDS)  # less says how busy the machine is
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


def test_a_surface_that_makes_the_process_grow_has_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        fuzz, "feed", lambda surface, *_: Fed(inputs=9, grown_mib=70 * (surface.name == "log"))
    )
    fuzz.measure(bench)
    assert bench.broken == ["log: the process has grown by 70 MiB in 9 inputs"]


def test_a_surface_that_takes_long_has_failed_and_its_input_is_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    bench = Bench(bench.root, bench.seed, bench.share, told.append)

    def feed(surface: Surface, *_: object) -> Fed:
        return Fed(inputs=9, slowest_seconds=0.3 * (surface.name == "log"), slowest=b"slow")

    monkeypatch.setattr(fuzz, "feed", feed)
    fuzz.measure(bench)
    assert bench.broken == ["log: it takes 0.300 s of processor time"]
    (file,) = (bench.root / "fuzz").iterdir()
    assert file.read_bytes() == b"slow"
    assert f"  again: PYTHONPATH=tests:. python -m support.fuzzing log {file}" in told


def test_it_ends_with_an_error_where_something_did_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(bench: Bench) -> dict[str, object]:
        bench.fails("a law", "a command")
        return {"stale_lives": chaos_measured(300), "stale_lives_failed": chaos_measured(1)}

    scenario = stale.Scenario("stale", stale.FIGURES, measure)
    monkeypatch.setattr(chaos, "SUITE", chaos.Suite("benchmarks.chaos", [scenario], chaos.SUITE.origin))
    monkeypatch.setattr(chaos.structlog, "configure", lambda **_: None)  # of all tests in this process
    monkeypatch.setattr("sys.argv", ["chaos", "--share", "0.5"])

    assert chaos.main() == 1


def test_what_ends_a_scenario_before_it_can_judge_is_told_with_its_seed_and_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A defect of the product, or of who tries it: a law that is broken has words of its own."""

    def measure(_: Bench) -> dict[str, object]:
        raise KeyError("flights")

    scenario = stale.Scenario("stale", stale.FIGURES, measure)
    monkeypatch.setattr(chaos, "SUITE", chaos.Suite("benchmarks.chaos", [scenario], chaos.SUITE.origin))
    monkeypatch.setattr(chaos.structlog, "configure", lambda **_: None)  # of all tests in this process
    monkeypatch.setattr("sys.argv", ["chaos", "--share", "0.5", "--seed", "7"])

    assert chaos.main() == 1
    told = capsys.readouterr().out
    assert "stale could not be measured: KeyError: 'flights'" in told
    assert "  again: python -m benchmarks.chaos --only stale --seed 7 --share 0.5\n" in told


def chaos_measured(value: float) -> object:
    return stale.Measured([value])


def test_each_law_has_a_machine_that_draws_and_is_checked_where_it_is_said_to_be() -> None:
    every = [f"L{number}" for number in range(1, 13)]
    assert list(ELSEWHERE) == every
    assert {law for machine in laws.MACHINES for law in machine.laws} == set(every)
    for machine in laws.MACHINES:
        assert f"class {machine.name}(RuleBasedStateMachine)" in (ROOT / machine.file).read_text()
    assert [place for places in ELSEWHERE.values() for place in places if not (ROOT / place).exists()] == []
    found = laws.by_law({machine.title: 10 for machine in laws.MACHINES})
    assert all(found[law]["steps"] for law in every)


def test_a_step_is_a_rule_and_no_invariant_and_no_beginning() -> None:
    drawn, same, other = (Drawn(rules_of(Counts)) for _ in range(3))
    for begin, of in ((1, drawn), (1, same), (2, other)):
        Counts.steps = 0
        draw(Counts, 20, begin, of)
        assert of.steps == Counts.steps > 500
    assert drawn.told() == same.told() != other.told()


class Counts(RuleBasedStateMachine):
    """Counts what is drawn of it."""

    steps = 0

    @initialize()
    def begin(self) -> None:
        pass

    @rule(number=st.integers())
    def goes_on(self, number: int) -> None:
        Counts.steps += 1

    @invariant()
    def holds(self) -> None:
        pass


@pytest.mark.processes
def test_a_seed_draws_the_same_histories_whatever_else_was_imported(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hypothesis tries the numbers that stand in the modules of ours that a process has."""
    turns = next(machine for machine in laws.MACHINES if machine.name == "Turns")
    monkeypatch.setattr(laws, "MACHINES", (turns,))
    before = laws.measure(bench)["laws"].details
    (tmp_path / "numbers.py").write_text(f"NUMBERS = {list(range(0, 9999, 7))}")
    loaded(tmp_path / "numbers.py")
    after = laws.measure(bench)["laws"].details
    other = laws.measure(Bench(bench.root, 4, bench.share, bench.tell))["laws"].details

    assert before["steps"] == after["steps"]
    assert before["drawn"] == after["drawn"] != other["drawn"]


@pytest.mark.processes
def test_a_broken_law_is_told_with_its_history_and_the_command_that_draws_it_again(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text(BREAKS)
    told: list[str] = []
    bench = Bench(bench.root, bench.seed, 1, told.append)
    machine = laws.Machine(("L0",), "nothing holds", "fuzz/test_surfaces", "Breaks", 5)
    monkeypatch.setattr(laws, "MACHINES", (machine,))
    run = f"import benchmarks.laws as of; of.TESTS = of.Path('{tmp_path}'); of.main()"
    breaks = "of.MACHINES = (of.Machine(('L0',), 'nothing holds', 'broken', 'Breaks', 5),)"
    monkeypatch.setattr(laws, "MODULE", ("-c", run.replace("of.main", f"{breaks}; of.main")))

    found = laws.measure(bench)

    assert found["laws_broken"].runs == [1]
    said, again = told[0], told[1]
    assert said.startswith("BROKEN (seed 3): L0: nothing holds: Breaks: AssertionError")
    assert "state.counts()" in said
    assert again.startswith("  again: PYTHONHASHSEED=0 python ")
    assert again.endswith("Breaks --seed 3 --histories 5")
