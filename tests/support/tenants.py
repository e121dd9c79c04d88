"""Two clusters in lockstep: in one there is nobody but Alice, in the other there is Mallory too.

Alice's life is the same in both. Whatever Mallory declares, pretends and breaks in his namespace, her status, pods,
documents, Events and the times of her reconciles are those of the cluster without him, after each step.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, Manifest
from headgate.adapters.kubernetes.pods import is_ended
from headgate.adapters.kubernetes.times import rfc3339
from headgate.errors import TransientError
from headgate.key import Key
from support.every_field import fields, whole, with_value
from support.looping import query
from support.operating import KEY, Operation, manifest

MALLORY: Final = "mallory"
NAMES: Final = ("flights", "orders", "flights-driver-1")
"""Of his applications; hers is called as one of them."""
HERS: Final = {"spark.sql.streaming.checkpointLocation": "s3a://alice/checkpoints"}
STEP_SECONDS: Final = 5.0
IDENTITY: Final = re.compile(r'"(?:uid|resourceVersion)": "[^"]*"|(?<="HEADGATE_LINEAGE", "value": ")[^"]*')
"""What an API server counts for all of its objects together."""
FIELDS: Final = fields()

LIFE: Final[Mapping[int, Mapping[str, Any]]] = {
    1: {},
    8: {"queries": [query(checkpoint={"interval": "7s"})]},
    14: {"executor": {"cores": 2}},
    26: {"suspend": True},
    32: {},
}
"""What Alice declares, and in which step; at the twentieth her driver fails."""
FAILS_AT: Final = 20
BEHIND: Final = range(12)
"""Steps in which her driver tells of a backlog; one that was live before would have to be behind for longer."""
STEPS: Final = 40


class TenantError(AssertionError):
    """What Alice has is another thing where there is Mallory; the message says what and since when."""


class World:
    """A cluster, its operator, and whoever is there."""

    def __init__(self) -> None:
        self.operator = Operation()
        self.cluster = self.operator.cluster

    def step(self, number: int, mallory: random.Random | None) -> None:
        """Let everybody act once."""
        self.cluster.now += STEP_SECONDS
        if (spec := LIFE.get(number)) is not None:
            hers = manifest(restart={"backoff": "2s"}, **{"sparkConf": HERS, **spec})
            self.cluster.declare(hers)
        if number == FAILS_AT:
            for pod in self._of("team"):
                _fails(self, pod)
        self._her_driver_tells(number)
        if mallory is not None:
            for _ in range(mallory.randint(0, 3)):
                self._misuse(mallory)
        self._nodes_act()
        for _ in range(4):
            self.operator.deliver()
            for key in sorted(self.operator.due):
                if self.operator.due[key] <= self.cluster.now:
                    with suppress(TransientError):
                        self.operator.reconcile_only(key)

    def hers(self) -> Mapping[str, Any]:
        """Return all that Alice can see, and when her next reconcile is."""
        mine = [
            manifest
            for (plural, namespace, _), manifest in sorted(self.cluster.objects.items())
            if namespace == KEY.namespace and plural != "leases"
        ]
        told = sorted(_without_name(one) for one in mine if one["kind"] == "Event")
        shown = json.dumps([one for one in mine if one["kind"] != "Event"], sort_keys=True)
        objects = json.loads(
            IDENTITY.sub(lambda found: '"id": ""' if found[0].startswith('"') else "lineage", shown)
        )
        return {"due": self.operator.due.get(KEY), "objects": objects, "told": told}

    def _her_driver_tells(self, number: int) -> None:
        lag, pending = (36_000.0, 9e6) if number in BEHIND else (1.0, 0.0)
        found = {"watermark_lag_seconds": lag, "pending_records": pending}
        self.operator.measurements.metrics(KEY).reports("delays", sources={"flights": found})
        if number == BEHIND.stop:
            self.operator.due[KEY] = self.cluster.now  # who looks at metrics has found something new

    def _nodes_act(self) -> None:
        for pod in self._of("team"):
            metadata = pod["metadata"]
            if "deletionTimestamp" in metadata:
                _ends(self, pod)
            elif not is_ended(pod) and metadata["uid"] not in self.cluster.running:
                _runs(self, pod)

    def _of(self, namespace: str) -> list[Manifest]:
        return [pod for pod in self.cluster.pods() if pod["metadata"]["namespace"] == namespace]

    def _misuse(self, chance: random.Random) -> None:
        """Mallory does something in his namespace."""
        name = chance.choice(NAMES)
        match chance.randrange(6):
            case 0 | 1:
                of = chance.choice(FIELDS)
                resource = with_value(whole(name), of.path, chance.choice(list(of.values().values())))
                self._declare(resource)
            case 2:
                self._declare(manifest(name, sparkConf=HERS, suspend=chance.random() < 0.3))
            case 3:
                self._pretend(name, chance)
            case 4:
                for _ in range(20):
                    self._annotate(name, chance)
            case 5:
                with suppress(TransientError):
                    self.cluster.remove(Key(MALLORY, name))

    def _declare(self, resource: Manifest) -> None:
        self.cluster.declare({**resource, "metadata": {**resource["metadata"], "namespace": MALLORY}})

    def _annotate(self, name: str, chance: random.Random) -> None:
        with suppress(TransientError):
            found = {"headgate.dev/checkpoint": str(chance.random()), "headgate.dev/pause": "delays/flights"}
            self.cluster.edit(
                APPLICATIONS,
                Key(MALLORY, name),
                lambda one: one["metadata"].setdefault("annotations", {}).update(found),
            )

    def _pretend(self, name: str, chance: random.Random) -> None:
        """A pod that says it is a driver, of an application that is called as hers, on her checkpoint."""
        key = Key(MALLORY, f"{name}-driver-{chance.randint(1, 3)}")
        if (PODS.plural, *key) in self.cluster.objects:
            return
        labels = {
            "headgate.dev/application": "flights",
            "headgate.dev/role": "driver",
            "headgate.dev/attempt": "1",
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": key.name,
                "namespace": MALLORY,
                "labels": labels,
                "annotations": {
                    "headgate.dev/checkpoint-location": HERS["spark.sql.streaming.checkpointLocation"]
                },
            },
            "spec": {"containers": []},
        }
        self.cluster._store(PODS, self.cluster._new(pod))


def _without_name(event: Manifest) -> str:
    """Return an Event as text; its name is a hash of what an API server counts."""
    return json.dumps(
        {name: event.get(name) for name in ("reason", "message", "count", "type", "lastTimestamp")}
    )


def _runs(world: World, pod: Manifest) -> None:
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {"name": "driver", "state": {"running": {"startedAt": rfc3339(world.cluster.now)}}}
        ],
    }
    world.cluster.running.add(pod["metadata"]["uid"])
    _reports(world, pod, status)


def _ends(world: World, pod: Manifest) -> None:
    world.cluster.running.discard(pod["metadata"]["uid"])
    world.cluster._drop(PODS, pod)


def _fails(world: World, pod: Manifest) -> None:
    world.cluster.running.discard(pod["metadata"]["uid"])
    ended = {"terminated": {"exitCode": 1, "finishedAt": rfc3339(world.cluster.now)}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "driver", "state": ended}]}
    _reports(world, pod, status)


def _reports(world: World, pod: Manifest, status: Manifest) -> None:
    key = Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
    world.cluster.edit(PODS, key, lambda one: one.update(status=status))


def lockstep(seed: int) -> int:
    """Run both clusters through Alice's life; returns how many steps were compared. Raises `TenantError`."""
    chance = random.Random(seed)
    alone, beside = World(), World()
    for number in range(STEPS):
        alone.step(number, None)
        beside.step(number, chance)
        if (hers := alone.hers()) != (found := beside.hers()):
            raise TenantError(f"L9: seed {seed}, step {number}: {difference(found, hers)}")
    return STEPS


def difference(found: Any, ideal: Any) -> str:
    """Return where two documents differ first."""
    from support.transitions import differences

    return "; ".join(differences(found, ideal)[:3])
