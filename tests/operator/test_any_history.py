"""Whatever happens, and whenever: never two drivers on one checkpoint, and left alone it comes to rest.

Watches lag, writes fail or succeed with their answer lost, the operator dies between any two writes, two
operators believe to be the leader, nodes go, people edit, suspend, delete and declare again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headgate.adapters.kubernetes.pods import is_ended
from headgate.errors import ApiUnavailable, TransientError
from support.examples import examples
from support.fake_cluster import FakeCluster
from support.operating import KEY, Operation

SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "edited": {"queries": [{"name": "delays", "checkpoint": {"interval": "9s"}}]},
    "restarting": {"sparkConf": {"spark.x": "1"}},
    "suspended": {"suspend": True},
    "refused": {"main": {"file": "s3a://nowhere"}},
}
RESTART = {"backoff": "2s", "maxBackoff": "10s", "maxRetries": 1000}


class Crash(BaseException):
    """The operator's process ends."""


class History(RuleBasedStateMachine):
    """Every rule is something that happens."""

    @initialize()
    def begin(self) -> None:
        self.cluster = FakeCluster()
        self.operators = [Operation(self.cluster), Operation(self.cluster)]
        self.declared = "plain"
        self.declare("plain")

    # People and nodes -----------------------------------------------------------------------------------

    @rule(name=st.sampled_from(sorted(SPECS)))
    def declare(self, name: str) -> None:
        if not self.is_leaving:
            self.declared = name
            self.operators[0].declare(restart=RESTART, **SPECS[name])

    @rule()
    def delete(self) -> None:
        if self.is_there and not self.is_leaving:
            self.cluster.remove(KEY)

    @rule(seconds=st.sampled_from([1.0, 5.0, 20.0, 200.0]))
    def time_passes(self, seconds: float) -> None:
        self.cluster.now += seconds

    @precondition(lambda self: self.cluster.pods())
    @rule(ready=st.booleans())
    def kubelet_starts_it(self, ready: bool) -> None:
        for pod in self.cluster.pods():
            if not is_ended(pod):
                self.cluster.pod_runs(pod["metadata"]["name"], ready=ready)

    @precondition(lambda self: self.cluster.running)
    @rule(code=st.sampled_from([0, 1, 137]))
    def it_ends(self, code: int) -> None:
        for pod in self.cluster.pods():
            if pod["metadata"]["uid"] in self.cluster.running:
                self.cluster.pod_ends(pod["metadata"]["name"], code)

    @precondition(lambda self: self.cluster.pods())
    @rule(node_is_gone=st.booleans())
    def somebody_deletes_it(self, node_is_gone: bool) -> None:
        for pod in self.cluster.pods():
            if node_is_gone:
                self.cluster.vanish(pod["metadata"]["name"])
            else:
                self.cluster.evict(pod)

    # Operators ------------------------------------------------------------------------------------------

    @rule(which=st.sampled_from([0, 1]), most=st.integers(0, 4))
    def watch_tells(self, which: int, most: int) -> None:
        self.operators[which].deliver(most)

    @rule(which=st.sampled_from([0, 1]), tells=st.booleans())
    def reconcile(self, which: int, tells: bool) -> None:
        self._reconcile(which, None if tells else 0)

    @rule(
        which=st.sampled_from([0, 1]),
        at=st.integers(0, 4),
        is_lost=st.booleans(),
        dies=st.booleans(),
    )
    def reconcile_that_fails(self, which: int, at: int, is_lost: bool, dies: bool) -> None:
        """The write number `at` fails, or its answer is lost; perhaps the process dies of it."""
        left = at

        def fail(call: str) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise Crash if dies else ApiUnavailable(call)

        setattr(self.cluster, "after" if is_lost else "before", fail)
        try:
            self._reconcile(which, None)
        except Crash:
            self.operators[which].restart()
        finally:
            self.cluster.before = self.cluster.after = lambda _call: None

    @rule(which=st.sampled_from([0, 1]), code=st.sampled_from([1, 137]))
    def drivers_come_and_go(self, which: int, code: int) -> None:
        """One operator is kept up to date while attempts pass; the other one hears nothing of it."""
        for _ in range(2):
            self._reconcile(which, None)
            self.kubelet_starts_it(ready=True)
            self._reconcile(which, None)
            self.it_ends(code)
            self._reconcile(which, None)
            self.cluster.now += 12
            for _ in range(3):
                self._reconcile(which, None)

    @rule(which=st.sampled_from([0, 1]))
    def a_driver_does_not_stop(self, which: int) -> None:
        """A driver runs, another one is wanted in its place, and it takes no notice."""
        self._reconcile(which, None)
        self.kubelet_starts_it(ready=True)
        self._reconcile(which, None)
        self.declare("plain" if self.declared == "restarting" else "restarting")
        self.minutes_pass(which)

    @rule(which=st.sampled_from([0, 1]))
    def minutes_pass(self, which: int) -> None:
        """One operator is kept up to date, and nothing else happens: a driver that should stop does not."""
        for _ in range(5):
            self.cluster.now += 60
            self._reconcile(which, None)

    @rule(which=st.sampled_from([0, 1]))
    def operator_restarts(self, which: int) -> None:
        self.operators[which].restart()

    def _reconcile(self, which: int, most: int | None) -> None:
        operator = self.operators[which]
        operator.deliver(most)
        with suppress(TransientError):
            operator.reconcile_only()

    # Laws -----------------------------------------------------------------------------------------------

    @invariant()
    def never_two_drivers(self) -> None:
        alive = {pod["metadata"]["uid"] for pod in self.cluster.pods() if not is_ended(pod)}
        assert len(alive | self.cluster.running) <= 1

    @property
    def is_there(self) -> bool:
        return ("sparkapplications", *KEY) in self.cluster.objects

    @property
    def is_leaving(self) -> bool:
        return self.is_there and "deletionTimestamp" in self.cluster.application(KEY)["metadata"]

    def teardown(self) -> None:
        """One operator is left, nodes do what they are told: it comes to what is declared."""
        operator = self.operators[0]
        for _ in range(30):
            self.cluster.now += 15
            operator.reconcile_what_is_due()
            for pod in self.cluster.pods():
                name, metadata = pod["metadata"]["name"], pod["metadata"]
                if "deletionTimestamp" in metadata:
                    self.cluster.vanish(name)
                elif not is_ended(pod):
                    self.cluster.pod_runs(name)
            self.never_two_drivers()
        pods = [pod for pod in self.cluster.pods() if not is_ended(pod)]
        if not self.is_there:
            return
        assert not self.is_leaving
        state, ready = operator.state(), operator.condition("Ready")["reason"]
        match self.declared:
            case "refused":
                assert ready == "InvalidSpec"
            case "suspended":
                assert (state, pods) == ("Suspended", [])
            case _:
                assert state in ("Running", "Completed"), ready
                assert len(pods) == (state == "Running")


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=examples(50), stateful_step_count=40, deadline=None)
