"""The laws of operator, queue, lease and fence in more histories than a test draws: their state machines, long.

Each machine is a test of its own, with a hundredth of these steps; here it is the same class. The plan's other laws
are checked by what real drivers leave: L1 by a fixture of every Spark test, L2 to L4 and L12 by `end_to_end`, L9 by
`tenants`, L11 by `tests/operator_process/test_canaries.py`.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.local.results import Figure, Goal, Measured

TESTS = Path(__file__).parents[3] / "tests"
STEPS = 100
"""Of one history, at most."""


class Machine(NamedTuple):
    """One of them, and what it holds."""

    laws: str
    """Of L1 to L12."""
    module: str
    name: str
    histories: int


MACHINES = (
    Machine("L1, L7: one driver commits", "laws/test_fence_histories", "Histories", 5000),
    Machine("L5, L6: two loops, one restarted, decide alike", "reconcile/test_loop_laws", "TwoLoops", 300),
    Machine("L6, L7: a life with crashes", "decision/test_lifecycle_laws", "World", 3000),
    Machine("L6, L7: whatever happens on a cluster", "operator/test_any_history", "History", 300),
    Machine("L5, L7: a store that is put back", "operator/test_put_back", "Restores", 200),
    Machine("L6: turned when it is worth it", "prometheus/test_due_laws", "AttentiveAndRestless", 400),
    Machine("L7: one leader", "handlers/test_lease", "Election", 600),
    Machine("L9: namespaces take turns", "controller/test_fair_turns", "Turns", 2000),
    Machine("L10: a bounded queue that forgets nothing", "controller/test_queue", "Machine", 2500),
)
FIGURES = (Figure("laws", "steps", Goal(">=", 1_000_000)), Figure("laws_broken", "machines", Goal("<=", 0)))


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Draw all histories of each machine, from the bench's seed."""
    drawn: dict[str, int] = {}
    took: dict[str, int] = {}
    broken = 0
    for machine in MACHINES:
        histories, began = max(1, round(bench.share * machine.histories)), time.monotonic()
        with counted() as steps:
            try:
                draw(machine, histories, bench.seed)
            except Exception as error:  # what a law raises is the law's
                broken += 1
                history = "\n".join(getattr(error, "__notes__", ()))  # the same seed may draw others
                command = f"python -m pytest tests/{machine.module}.py --hypothesis-profile=explore"
                bench.fails(f"{machine.laws}: {machine.name}: {error!r}\n{history}", command)
        drawn[machine.laws], took[machine.laws] = len(steps), round(time.monotonic() - began)
        bench.tell(f"{machine.laws}: {len(steps):,} steps in {took[machine.laws]} s")
    details = {"steps": drawn, "seconds": took, "seed": bench.seed}
    return {"laws": Measured([sum(drawn.values())], details), "laws_broken": Measured([broken], details)}


@contextmanager
def counted() -> Iterator[list[None]]:
    """Give a list that grows by one with each step of any machine: hypothesis checks the invariants after each."""
    steps: list[None] = []
    check = RuleBasedStateMachine.check_invariants

    def counting(self: RuleBasedStateMachine, *arguments: object) -> None:
        steps.append(None)
        check(self, *arguments)

    RuleBasedStateMachine.check_invariants = counting  # type: ignore[method-assign,assignment]
    try:
        yield steps
    finally:
        RuleBasedStateMachine.check_invariants = check  # type: ignore[method-assign]


def draw(machine: Machine, histories: int, begin: int) -> None:
    """Live through so many histories, drawn from `begin`. Raises what the machine raises."""
    spec = importlib.util.spec_from_file_location(
        machine.module.replace("/", "."), TESTS / f"{machine.module}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run_state_machine_as_test(
        seed(begin)(getattr(module, machine.name)),
        settings=settings(
            max_examples=histories,
            stateful_step_count=STEPS,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


SCENARIO = Scenario("laws", FIGURES, measure)
