"""One state machine of the laws, in long histories: `python -m benchmarks.laws Turns --seed 1 --histories 2000`.

Each machine is a test of its own, with a hundredth of these steps; here it is the same class. What hypothesis draws
from a seed depends on which of our modules the process has imported, since it tries the numbers and texts that stand
in them. So a machine has a process of its own, in which a seed draws the same histories each time: what a law says
comes again with the seed. Prints what was broken, and a line of JSON; exits with 1 where something was.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import structlog
from hypothesis import HealthCheck, seed, settings
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

TESTS = Path(__file__).parents[1] / "tests"
sys.path.append(str(TESTS))
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


class Drawn:
    """What was drawn so far."""

    def __init__(self) -> None:
        self.steps = 0
        self._choices = sha256()

    def take(self, choices: object) -> None:
        """Note what one history was made of."""
        self._choices.update(repr(choices).encode())

    def told(self) -> dict[str, str | int]:
        """Return how many steps there were, and a digest of all choices: equal where the same was drawn."""
        return {"steps": self.steps, "drawn": self._choices.hexdigest()[:16]}


@contextmanager
def counted() -> Iterator[Drawn]:
    """Give what is drawn meanwhile, by any machine: hypothesis checks the invariants after each step."""
    drawn = Drawn()
    check, freeze = RuleBasedStateMachine.check_invariants, ConjectureData.freeze

    def counting(self: RuleBasedStateMachine, *arguments: object) -> None:
        drawn.steps += 1
        check(self, *arguments)

    def taking(self: ConjectureData) -> None:
        if not self.frozen:
            drawn.take(self.choices)
        freeze(self)

    RuleBasedStateMachine.check_invariants = counting  # type: ignore[method-assign,assignment]
    ConjectureData.freeze = taking  # type: ignore[method-assign]
    try:
        yield drawn
    finally:
        RuleBasedStateMachine.check_invariants = check  # type: ignore[method-assign]
        ConjectureData.freeze = freeze  # type: ignore[method-assign]


def draw(machine: Machine, histories: int, begin: int) -> None:
    """Live through so many histories, drawn from `begin`. Raises what the machine raises."""
    run_state_machine_as_test(
        seed(begin)(getattr(loaded(TESTS / f"{machine.module}.py"), machine.name)),
        settings=settings(
            max_examples=histories,
            stateful_step_count=STEPS,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def loaded(file: Path) -> ModuleType:
    """Return the module of a test's file, without pytest."""
    spec = importlib.util.spec_from_file_location(".".join(file.with_suffix("").parts[-2:]), file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Draw one machine's histories; exit with 1 where a law was broken."""
    by_name = {machine.name: machine for machine in MACHINES}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.laws", description=__doc__)
    parser.add_argument("machine", choices=by_name, help="which of them")
    parser.add_argument("--seed", type=int, default=1, help="what is drawn is drawn from it [1]")
    parser.add_argument("--histories", type=int, help="how many [those of make chaos]")
    options = parser.parse_args()
    machine = by_name[options.machine]
    # What the operator logs of each edit is of no use to anybody by the thousand.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    broken = None
    with counted() as drawn:
        try:
            draw(machine, options.histories or machine.histories, options.seed)
        except Exception as error:  # what a law raises is the law's
            broken = "\n".join((f"{error!r}", *getattr(error, "__notes__", ())))
            print(broken)
    print(json.dumps(drawn.told() | {"broken": broken}))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
