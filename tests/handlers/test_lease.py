"""The lease: who may take it and when, that its holder is gone before another acts, and how it changes hands."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headgate.adapters.kubernetes.client import Kind, Manifest
from headgate.errors import ApiConflict, ApiNotFound, ApiUnavailable
from headgate.handlers.lease import Candidate, ElectionRecord, LeaseLost, LeaseTerms, Observed
from headgate.key import Key
from support.examples import examples

KEY = Key("headgate", "headgate-operator")
TERMS = LeaseTerms(duration=15, renew_deadline=10, retry_period=2)


@dataclass
class FakeLeases:
    """One Lease, with the API server's rules for writers that know an old version."""

    now: float = 1000.0
    lease: Manifest | None = None
    writes: int = 0
    answers_take: float = 0.0
    is_down: bool = False
    loses_answers: bool = False

    async def get(self, kind: Kind, key: Key) -> Manifest:
        self._arrives()
        if self.lease is None:
            raise ApiNotFound("no such lease")
        return self._answer()

    async def apply(self, kind: Kind, manifest: Mapping[str, Any]) -> Manifest:
        self._arrives()
        if self.lease is not None:
            return self._answer()
        self.lease = {"spec": {}, **copy.deepcopy(dict(manifest))}
        return self._written()

    async def patch(self, kind: Kind, key: Key, patch: Mapping[str, Any]) -> Manifest:
        self._arrives()
        if self.lease is None:
            raise ApiNotFound("no such lease")
        if patch["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiConflict("it has changed")
        merged = {**self.lease["spec"], **patch["spec"]}
        self.lease["spec"] = {name: value for name, value in merged.items() if value is not None}
        return self._written()

    def is_labelled(self) -> None:
        self._written()

    @property
    def holder(self) -> str | None:
        return None if self.lease is None else self.lease["spec"].get("holderIdentity")

    def _arrives(self) -> None:
        self.now += self.answers_take
        if self.is_down:
            raise ApiUnavailable("connection refused")

    def _written(self) -> Manifest:
        assert self.lease is not None
        self.writes += 1
        self.lease["metadata"]["resourceVersion"] = str(self.writes)
        return self._answer()

    def _answer(self) -> Manifest:
        self.now += self.answers_take
        if self.loses_answers:
            raise ApiUnavailable("no answer in time")
        return copy.deepcopy(self.lease) or {}


@dataclass
class Replicas:
    """Candidates for one lease, on clocks that run at the same pace and show different times."""

    leases: FakeLeases = field(default_factory=FakeLeases)

    def __call__(self, identity: str, skew: float = 0.0) -> Candidate:
        return Candidate(self.leases, KEY, identity, TERMS, clock=lambda: self.leases.now + skew)


@pytest.fixture
def replica() -> Replicas:
    return Replicas()


def takes(candidate: Candidate) -> bool:
    return asyncio.run(candidate.try_to_acquire())


def renews(candidate: Candidate) -> None:
    asyncio.run(candidate.renew())


def record(holder: str = "a", renewed_at: str = "t0", version: str = "1") -> ElectionRecord:
    return ElectionRecord(holder=holder, duration=15, renewed_at=renewed_at, transitions=0, version=version)


@pytest.mark.parametrize(
    ("holder", "seen_for", "may_be_taken"),
    [("", 0, True), ("me", 0, True), ("other", 0, False), ("other", 14.9, False), ("other", 15, True)],
)
def test_a_lease_may_be_taken(holder: str, seen_for: float, may_be_taken: bool) -> None:
    observed = Observed()
    observed.saw(record(holder), 100)
    observed.saw(record(holder), 100 + seen_for)  # seen again, unchanged: its age goes on

    assert observed.may_be_taken("me", 100 + seen_for) is may_be_taken


def test_each_renewal_that_is_seen_starts_the_wait_anew() -> None:
    observed = Observed()
    observed.saw(record(renewed_at="t0"), 100)
    observed.saw(record(renewed_at="t1", version="2"), 114)

    assert not observed.may_be_taken("me", 128)
    assert observed.may_be_taken("me", 129)


def test_the_first_replica_gets_the_lease_and_the_second_does_not(replica: Replicas) -> None:
    assert takes(replica("a"))
    assert not takes(replica("b"))
    assert replica.leases.holder == "a"


def test_a_lease_that_is_not_renewed_is_taken_after_its_duration(replica: Replicas) -> None:
    assert takes(replica("a"))
    b = replica("b", skew=-5000)
    assert not takes(b)
    replica.leases.now += 14.9
    assert not takes(b)
    replica.leases.now += 0.1
    assert takes(b)

    assert replica.leases.lease is not None
    assert replica.leases.lease["spec"]["leaseTransitions"] == 1


def test_a_lease_that_is_released_is_taken_at_once(replica: Replicas) -> None:
    a, b = replica("a"), replica("b")
    assert takes(a)
    assert not takes(b)
    asyncio.run(a.release())

    assert takes(b)
    assert not a.overdue()


def test_a_process_that_comes_back_under_its_name_takes_its_own_lease_at_once(replica: Replicas) -> None:
    assert takes(replica("a"))
    assert takes(replica("a"))


def test_a_holder_that_lost_the_lease_is_told_by_its_next_renewal(replica: Replicas) -> None:
    a, b = replica("a"), replica("b")
    assert takes(a)
    assert not takes(b)
    replica.leases.now += 15
    assert takes(b)

    with pytest.raises(LeaseLost, match="held by b now"):
        renews(a)


def test_two_processes_of_one_name_are_told_apart(replica: Replicas) -> None:
    first, second = replica("same"), replica("same")
    assert takes(first)
    assert takes(second)

    with pytest.raises(LeaseLost, match="give each replica an identity of its own"):
        renews(first)


def test_a_label_on_the_lease_does_not_cost_it(replica: Replicas) -> None:
    a = replica("a")
    assert takes(a)
    replica.leases.is_labelled()
    renews(a)
    replica.leases.now += 9
    renews(a)

    assert a.renewed_at == replica.leases.now


def test_a_lease_that_somebody_deleted_is_made_again(replica: Replicas) -> None:
    a = replica("a")
    assert takes(a)
    replica.leases.lease = None
    renews(a)

    assert replica.leases.holder == "a"


def test_a_deleted_lease_that_another_replica_made_again_is_lost(replica: Replicas) -> None:
    a, b = replica("a"), replica("b")
    assert takes(a)
    replica.leases.lease = None
    assert takes(b)

    with pytest.raises(LeaseLost):
        renews(a)


def test_replicas_that_make_the_lease_at_once_do_not_both_take_it(replica: Replicas) -> None:
    a, b = replica("a"), replica("b")
    apply, others = replica.leases.apply, []

    async def meanwhile(kind: Kind, manifest: Mapping[str, Any]) -> Manifest:
        replica.leases.apply = apply  # type: ignore[method-assign]
        made = await apply(kind, manifest)
        others.append(await b.try_to_acquire())
        return made

    replica.leases.apply = meanwhile  # type: ignore[method-assign]

    assert not takes(a)
    assert others == [True]
    assert replica.leases.holder == "b"


def test_a_renewal_whose_answer_was_lost_is_known_by_what_it_wrote(replica: Replicas) -> None:
    a = replica("a")
    assert takes(a)
    replica.leases.now += 4
    replica.leases.loses_answers = True
    renews(a)
    assert a.renewed_at == 1000
    replica.leases.loses_answers = False
    replica.leases.now += 4
    renews(a)

    assert a.renewed_at == 1004


def test_a_holder_that_cannot_renew_is_overdue_after_the_deadline(replica: Replicas) -> None:
    a = replica("a")
    assert not a.overdue()
    assert takes(a)
    replica.leases.is_down = True
    replica.leases.now += 9.9
    renews(a)
    assert not a.overdue()
    replica.leases.now += 0.1
    assert a.overdue()


def test_a_renewal_counts_from_when_it_was_sent(replica: Replicas) -> None:
    a = replica("a")
    assert takes(a)
    replica.leases.answers_take = 3
    renews(a)

    assert (a.renewed_at, replica.leases.now) == (1000, 1006)


def test_a_server_that_is_gone_leaves_a_candidate_waiting(replica: Replicas) -> None:
    replica.leases.is_down = True

    assert not takes(replica("a"))


def test_the_api_server_counts_as_reached_when_it_answers(replica: Replicas) -> None:
    reached: list[str] = []
    a = replica("a")
    a.reached = lambda: reached.append("a")
    replica.leases.is_down = True
    takes(a)
    assert not reached
    replica.leases.is_down = False
    takes(a)
    assert reached


class Election(RuleBasedStateMachine):
    """Replicas, slow answers, lost answers, outages, restarts: never do two act at once."""

    def __init__(self) -> None:
        super().__init__()
        self.leases = FakeLeases()
        replica = Replicas(self.leases)
        self.make: list[Callable[[], Candidate]] = [
            lambda: replica("a"),
            lambda: replica("b", skew=-777.0),
            lambda: replica("c", skew=12345.0),
        ]
        self.candidates = [make() for make in self.make]
        self.leads = [False] * 3

    @rule(seconds=st.floats(0, 12))
    def time_passes(self, seconds: float) -> None:
        self.leases.now += seconds

    @rule(takes=st.floats(0, 6), down=st.booleans(), loses=st.booleans())
    def weather(self, takes: float, down: bool, loses: bool) -> None:
        self.leases.answers_take, self.leases.is_down, self.leases.loses_answers = takes, down, loses

    @rule()
    def fair_weather(self) -> None:
        self.weather(0, down=False, loses=False)

    @rule(who=st.integers(0, 2))
    def steps(self, who: int) -> None:
        candidate = self.candidates[who]
        try:
            if self.leads[who]:
                asyncio.run(candidate.renew())
            else:
                self.leads[who] = asyncio.run(candidate.try_to_acquire())
        except LeaseLost:
            self.restarts(who)

    @rule(silent=st.integers(0, 2), rounds=st.integers(3, 12))
    def all_but_one_keep_looking(self, silent: int, rounds: int) -> None:
        for _ in range(rounds):
            self.leases.now += 1.5
            for who in {0, 1, 2} - {silent}:
                self.steps(who)
                self.at_most_one_acts()

    @rule(who=st.integers(0, 2))
    def restarts(self, who: int) -> None:
        self.candidates[who], self.leads[who] = self.make[who](), False

    @rule(who=st.integers(0, 2))
    def is_asked_to_stop(self, who: int) -> None:
        asyncio.run(self.candidates[who].release())
        self.restarts(who)

    @rule()
    def somebody_labels_the_lease(self) -> None:
        if self.leases.lease is not None:
            self.leases.lease["metadata"]["resourceVersion"] += "0"

    @invariant()
    def at_most_one_acts(self) -> None:
        for who, candidate in enumerate(self.candidates):
            if candidate.overdue():
                self.restarts(who)  # its watchdog has ended it
        assert sum(self.leads) <= 1


Election.TestCase.settings = settings(stateful_step_count=60, max_examples=examples(150))
TestElection = Election.TestCase
