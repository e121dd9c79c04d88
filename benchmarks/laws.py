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
import re
import sys
from collections.abc import Collection, Mapping
from contextlib import redirect_stdout
from hashlib import sha256
from io import TextIOBase
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import structlog
from hypothesis import HealthCheck, Verbosity, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

TESTS = Path(__file__).parents[1] / "tests"
sys.path.append(str(TESTS))
STEPS = 100
"""Of one history, at most."""
STEP = re.compile(r"state\.(?P<rule>\w+)\(")
"""How hypothesis tells one."""


class Machine(NamedTuple):
    """One of them, and what it holds."""

    laws: tuple[str, ...]
    """Of L1 to L12."""
    what: str
    module: str
    name: str
    histories: int

    @property
    def title(self) -> str:
        """Return its laws, and what it holds."""
        return f"{', '.join(self.laws)}: {self.what}"

    @property
    def file(self) -> str:
        """Return where it is, from the root of the tree on."""
        return f"tests/{self.module}.py"


MACHINES = (
    Machine(("L1", "L7"), "one driver commits", "laws/test_fence_histories", "Histories", 5000),
    Machine(
        ("L2", "L3", "L4", "L5", "L12"),
        "a query under the planner, whatever fails",
        "laws/test_engine_histories",
        "Queries",
        200,
    ),
    Machine(("L8",), "names and settings, whatever is told late", "laws/test_names", "Names", 1500),
    Machine(("L11",), "nothing secret is told", "laws/test_secrets", "Secrets", 500),
    Machine(
        ("L5", "L6"), "two loops, one restarted, decide alike", "reconcile/test_loop_laws", "TwoLoops", 300
    ),
    Machine(("L6", "L7"), "a life with crashes", "decision/test_lifecycle_laws", "World", 3000),
    Machine(("L6", "L7"), "whatever happens on a cluster", "operator/test_any_history", "History", 300),
    Machine(("L5", "L7"), "a store that is put back", "operator/test_put_back", "Restores", 200),
    Machine(("L6",), "turned when it is worth it", "prometheus/test_due_laws", "AttentiveAndRestless", 400),
    Machine(("L7",), "one leader", "handlers/test_lease", "Election", 600),
    Machine(("L9",), "namespaces take turns", "controller/test_fair_turns", "Turns", 2000),
    Machine(("L10",), "a bounded queue that forgets nothing", "controller/test_queue", "Machine", 2500),
)
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "L1": ("tests/laws/cover.py",),
    "L2": ("benchmarks/chaos/end_to_end/audit.py",),
    "L3": ("tests/spark/test_one_batch_of_state.py",),
    "L4": ("benchmarks/chaos/end_to_end/audit.py", "tests/runtime/test_planning_laws.py"),
    "L5": ("tests/laws/test_every_field.py",),
    "L6": ("tests/laws/test_every_field.py", "tests/laws/test_stale.py"),
    "L7": ("tests/laws/test_stale.py", "benchmarks/chaos/scenarios/fence.py"),
    "L8": ("tests/runtime/test_openings.py", "tests/settings/test_agreement.py"),
    "L9": ("tests/laws/test_two_tenants.py",),
    "L10": ("benchmarks/soak",),
    "L11": ("tests/operator_process/test_canaries.py",),
    "L12": ("tests/spark/test_shim_failures.py", "benchmarks/chaos/end_to_end"),
}
"""Where else a law is checked: on real parts, or by properties whose steps are not counted."""


class Drawn(TextIOBase):
    """What was drawn so far: the lines by which hypothesis tells each step, where it is to tell everything."""

    def __init__(self, rules: Collection[str]) -> None:
        """`rules` are the names of what makes a step; initial ones and invariants make none."""
        self.steps = 0
        self._rules = rules
        self._choices = sha256()

    def write(self, text: str) -> int:
        """Take what is printed, a step or something else."""
        if (step := STEP.match(text)) is not None:
            self.steps += step["rule"] in self._rules
            self._choices.update(text.encode())
        return len(text)

    def told(self) -> dict[str, str | int]:
        """Return how many steps there were, and a digest of all of them: equal where the same was drawn."""
        return {"steps": self.steps, "drawn": self._choices.hexdigest()[:16]}


def draw(of: type[RuleBasedStateMachine], histories: int, begin: int, drawn: Drawn) -> None:
    """Live through so many histories of a machine, drawn from `begin`. Raises what the machine raises."""
    with redirect_stdout(drawn):
        run_state_machine_as_test(
            seed(begin)(of),
            settings=settings(
                max_examples=histories,
                stateful_step_count=STEPS,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                verbosity=Verbosity.debug,
            ),
        )


def rules_of(of: type[RuleBasedStateMachine]) -> frozenset[str]:
    """Return the names of a machine's rules."""
    return frozenset(rule.function.__name__ for rule in of().rules)


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
    of = getattr(loaded(TESTS / f"{machine.module}.py"), machine.name)
    drawn = Drawn(rules_of(of))
    try:
        draw(of, options.histories or machine.histories, options.seed, drawn)
    except Exception as error:  # what a law raises is the law's
        broken = "\n".join((f"{error!r}", *getattr(error, "__notes__", ())))
        print(broken)
    print(json.dumps(drawn.told() | {"broken": broken}))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
