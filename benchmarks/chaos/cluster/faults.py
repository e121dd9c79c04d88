"""What is done to a cluster: each fault strikes, and is mended before it returns."""

from __future__ import annotations

import json
import random
import time
from typing import Any

from benchmarks.chaos.blows import Fault
from benchmarks.chaos.cluster.world import FASTEST, PENDING, World
from headgate.adapters.kubernetes.names import CONTROL
from support.chart import NAMESPACE
from support.copies import NAME

# Operator and what it stands on ---------------------------------------------------------------------


def operator_killed(world: World, _: random.Random) -> None:
    world.wait_for(lambda: killed(world, world.leader()), "a leader that runs")


def operator_deleted(world: World, _: random.Random) -> None:
    name = world.leader()["metadata"]["name"]
    world.nodes.kubectl("-n", NAMESPACE, "delete", "pod", name, "--force", "--grace-period=0")


def operator_stands(world: World, chance: random.Random) -> None:
    """Long enough for the other one to lead; then there are two, and the first has to see that it leads no more."""
    pod = world.leader()
    with world.nodes.node_of(pod).standing(pod):
        world.apply(rate=chance.choice([10_000, 12_000]))
        world.wait_for(lambda: world.lease_holder() != pod["metadata"]["name"], "another one that leads")


def operator_rolled_out(world: World, chance: random.Random) -> None:
    """While somebody edits, as an upgrade would: replica after replica is replaced, and no driver."""
    driver = world.driver()["metadata"]["uid"]
    world.nodes.kubectl("-n", NAMESPACE, "rollout", "restart", "deployment/headgate")
    for _ in range(chance.randint(2, 6)):
        world.apply(rate=chance.randint(8_000, FASTEST))
        time.sleep(chance.uniform(0.1, 2.0))
    world.nodes.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/headgate", "--timeout=240s")
    assert world.driver()["metadata"]["uid"] == driver, "a new operator has replaced the driver"


def api_server_killed(world: World, chance: random.Random) -> None:
    world.nodes.stop_api_server()
    time.sleep(chance.uniform(0.0, 8.0))
    world.nodes.start_api_server()


def store_killed(world: World, chance: random.Random) -> None:
    world.nodes.restart_store(chance.uniform(0.0, 3.0))


def prometheus_killed(world: World, chance: random.Random) -> None:
    world.metrics.kill()
    time.sleep(chance.uniform(0.0, 15.0))
    with world.nodes.network():
        world.metrics.start()


# Drivers and executors ------------------------------------------------------------------------------


def driver_killed(world: World, _: random.Random) -> None:
    pod = world.driver()
    killed(world, pod)
    has_gone(world, pod["metadata"]["uid"])


def driver_deleted(world: World, chance: random.Random) -> None:
    pod = world.driver()["metadata"]
    by_force = chance.choice([(), ("--force", "--grace-period=0")])
    world.person.kubectl("delete", "pod", pod["name"], "--wait=false", *by_force)
    has_gone(world, pod["uid"])


def node_drained(world: World, _: random.Random) -> None:
    pod = world.driver()
    node = pod["spec"]["nodeName"]
    how = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=240s")
    world.nodes.kubectl("drain", node, *how)
    has_gone(world, pod["metadata"]["uid"])
    world.nodes.kubectl("uncordon", node)


def executor_killed(world: World, _: random.Random) -> None:
    for pod in world.executors()[:1]:
        killed(world, pod)


def executor_deleted(world: World, _: random.Random) -> None:
    for pod in world.executors()[:1]:
        world.person.kubectl("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")


# Network --------------------------------------------------------------------------------------------

CUT = ("pfifo", "limit", "0")
SLOW = ("tbf", "rate", "256kbit", "burst", "3000", "latency", "2s")


def driver_cut_off(world: World, chance: random.Random) -> None:
    """Nothing of what it sends arrives, without a word: at executors, at the API server, at who scrapes it."""
    pod = world.driver()
    with world.nodes.node_of(pod).sending(pod, *CUT):
        time.sleep(chance.uniform(1.0, 20.0))


def executor_cut_off(world: World, chance: random.Random) -> None:
    for pod in world.executors()[:1]:
        with world.nodes.node_of(pod).sending(pod, *CUT):
            time.sleep(chance.uniform(1.0, 20.0))


def driver_far_away(world: World, chance: random.Random) -> None:
    """What it sends is slow, and waits for as long as two seconds."""
    pod = world.driver()
    with world.nodes.node_of(pod).sending(pod, *SLOW):
        time.sleep(chance.uniform(3.0, 15.0))


def killed(world: World, pod: dict[str, Any]) -> bool:
    """End a container; returns False where it had ended before."""
    return world.nodes.node_of(pod).kill_container(pod)


def has_gone(world: World, uid: str) -> None:
    """Wait until a driver runs no more: until then the status may tell of it as before."""

    def is_gone() -> bool:
        pods = world.person.pods("driver")
        return all(pod["metadata"]["uid"] != uid or pod["status"]["phase"] != "Running" for pod in pods)

    world.wait_for(is_gone, "the end of a driver")


# The person -----------------------------------------------------------------------------------------


def edited(world: World, chance: random.Random) -> None:
    for _ in range(chance.randint(4, 10)):
        world.apply(interval=chance.choice(["500ms", "1s", "2s", "3s"]), rate=chance.randint(8_000, FASTEST))
        time.sleep(chance.uniform(0.1, 1.0))


def verdict_flaps(world: World, chance: random.Random) -> None:
    for _ in range(chance.randint(3, 8)):
        world.apply(pending=chance.choice([1, PENDING, 10_000_000]))
        time.sleep(chance.uniform(0.3, 2.0))
    world.apply(pending=PENDING)


def control_overwritten(world: World, chance: random.Random) -> None:
    text = chance.choice(["{", "", json.dumps({"schemaVersion": "1.0", "generation": 1, "queries": {}})])
    name = world.driver()["metadata"]["name"]
    world.person.kubectl("annotate", "pod", name, f"{CONTROL}={text}", "--overwrite")
    world.apply(rate=chance.randint(8_000, FASTEST))  # something to be told, by which it is found
    world.wait_for(
        lambda: world.driver()["metadata"]["annotations"].get(CONTROL) != text, "a document of the operator's"
    )


def status_erased(world: World, _: random.Random) -> None:
    patch = json.dumps([{"op": "remove", "path": "/status"}])
    world.person.kubectl("patch", "hgapp", NAME, "--subresource=status", "--type=json", "-p", patch)


def suspended(world: World, _: random.Random) -> None:
    suspend(world, True)
    world.wait_for(lambda: not world.person.pods("driver"), "the end of the driver")
    suspend(world, False)


def suspend(world: World, flag: bool) -> None:
    world.person.kubectl(
        "patch", "hgapp", NAME, "--type=merge", "-p", json.dumps({"spec": {"suspend": flag}})
    )


def scaled(world: World, _: random.Random) -> None:
    world.apply(instances=2)
    world.wait_for(lambda: len(world.executors()) == 2, "a second executor")
    world.apply(instances=1)


def deleted(world: World, _: random.Random) -> None:
    world.person.kubectl("delete", "hgapp", NAME, "--timeout=240s")
    running = [pod for pod in world.person.pods("driver") if pod["status"]["phase"] == "Running"]
    assert not running, "an application is gone, and its driver runs"
    world.apply()


def namespace_deleted(world: World, _: random.Random) -> None:
    """With everything in it; what is on the volume stays, and is gone on with in a new one of that name."""
    namespace = world.namespace
    world.nodes.kubectl("delete", "namespace", namespace, "--timeout=240s")
    world.nodes.kubectl("delete", "pv", f"{namespace}-{NAME}", "--timeout=240s")
    world.nodes.kubectl("create", "namespace", namespace)
    world.nodes.admit_pods(namespace)
    world.volume.claim(world.nodes, namespace)
    world.installs()
    world.apply()


FAULTS = (
    Fault("operator_killed", 10, operator_killed),
    Fault("operator_deleted", 8, operator_deleted),
    Fault("operator_stands", 4, operator_stands),
    Fault("operator_rolled_out", 4, operator_rolled_out),
    Fault("api_server_killed", 10, api_server_killed),
    Fault("store_killed", 8, store_killed),
    Fault("prometheus_killed", 8, prometheus_killed),
    Fault("driver_killed", 6, driver_killed),
    Fault("driver_deleted", 6, driver_deleted),
    Fault("node_drained", 3, node_drained),
    Fault("executor_killed", 8, executor_killed),
    Fault("executor_deleted", 6, executor_deleted),
    Fault("driver_cut_off", 6, driver_cut_off),
    Fault("executor_cut_off", 4, executor_cut_off),
    Fault("driver_far_away", 6, driver_far_away),
    Fault("edited", 12, edited),
    Fault("verdict_flaps", 10, verdict_flaps),
    Fault("control_overwritten", 8, control_overwritten),
    Fault("status_erased", 8, status_erased),
    Fault("suspended", 4, suspended),
    Fault("scaled", 4, scaled),
    Fault("deleted", 3, deleted),
    Fault("namespace_deleted", 1, namespace_deleted),
)
