"""An application on a real API server that is edited field by field, and where each edit leads it to.

An edit is judged by what it leads to on a cluster in memory (`support.transitions`). That one takes any pod, where
this one refuses such as are none: whether it does is asked of it, with the pod that the driver is to have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.names import CONTROL
from headgate.adapters.kubernetes.pods import is_ended
from headgate.key import Key
from headgate_contract import ControlDocument
from headgate_contract.receiving import read
from support.cluster import KubectlError
from support.every_field import Field, whole, with_value
from support.on_server import OnServer
from support.transitions import Edited, fresh, is_taken, told

TURNS = 40
CALM = 5
"""Turns in which nothing changes any more: longer than it takes until a server that fails is told of."""
SECONDS = 15.0
NAME = "flights"


def begin(o: OnServer) -> None:
    """Declare the application, and let it come to rest."""
    o.kubectl("create", "-f", "-", input=json.dumps({**whole(), "metadata": {"name": NAME}}))
    settle(o)
    assert o.said("Ready")[1] == fresh(whole()).ready[0]


def edited(o: OnServer, edits: Sequence[tuple[Field, str]]) -> Iterator[str | None]:
    """Make each edit and take it back; yields for each what is another thing than in memory, if anything is."""
    for of, kind in edits:
        changed = with_value(whole(), of.path, of.values()[kind])
        if not declared(o, changed):
            yield f"{of}: {kind} is refused by the API server alone" if is_taken(changed) else None
            continue
        try:
            settle(o)
            different = difference(o, changed)
        except AssertionError as error:
            different = str(error)
        yield f"{of}: {kind}: {different}" if different else None
        assert declared(o, whole())
        settle(o)


def difference(o: OnServer, changed: Manifest) -> str | None:
    """Return in what it differs from a fresh application with the same spec, on a cluster in memory."""
    ideal = fresh(changed)
    (_, found, message), wanted = o.said("Ready"), ideal.ready[0]
    if found == "StartRefused" and (refused := pod_refused(o, changed)) is not None:
        return None if refused in message else f"it says {message}, and {refused} is what is refused"
    if found != wanted:
        return f"it is {found}, and {wanted} in memory"
    said = tuple(map(told, documents(o)))
    if wanted != "InvalidSpec" and said != ideal.documents:
        return f"its drivers are told {said}, and {ideal.documents} in memory"
    return None


def pod_refused(o: OnServer, resource: Manifest) -> str | None:
    """Return the field by which the API server refuses the driver's pod, if it names one; `None`: it does not."""
    edited = Edited()
    edited.declare(resource)
    (pod,) = edited.cluster.pods()
    metadata = {name: pod["metadata"][name] for name in ("labels", "annotations")}
    wanted = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "name": "asked", "namespace": o.namespace},
        "spec": {name: value for name, value in pod["spec"].items() if name != "nodeName"},
    }
    try:
        o.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(wanted))
    except KubectlError as error:
        field = re.search(r"\b(?:spec|metadata)\.\S+?(?=: )", str(error))
        return "" if field is None else field[0]
    return None


def declared(o: OnServer, resource: Manifest) -> bool:
    """Replace the resource as a person does; return whether the API server takes it."""
    wanted = {**resource, "metadata": {"name": NAME, "namespace": o.namespace}}
    try:
        o.kubectl("replace", "-f", "-", input=json.dumps(wanted))
    except KubectlError:
        return False
    return True


def settle(o: OnServer) -> None:
    """Let kubelet, driver and operator act until nobody does any more."""
    calm, before = 0, None
    for _ in range(TURNS):
        o.skew += SECONDS
        o.reconciles(1)
        for pod in o.pods():
            name, metadata = pod["metadata"]["name"], pod["metadata"]
            if "deletionTimestamp" in metadata:
                o.ends(name, 0)
            elif not is_ended(pod) and pod["status"].get("phase") != "Running":
                o.runs(name)
        reports(o)
        seen = [one["metadata"]["resourceVersion"] for one in (o.application(NAME), *o.pods())]
        calm, before = (calm + 1 if seen == before else 0), seen
        if calm == CALM:
            return
    raise AssertionError(f"it does not come to rest: {o.said('Ready')}")


def reports(o: OnServer) -> None:
    """The driver has what it was told in force, and no backlog."""
    metrics = o.fake.metrics(Key(o.namespace, NAME))
    metrics.acknowledges(max((document.generation for document in documents(o)), default=0))
    found = {"watermark_lag_seconds": 1.0, "pending_records": 0.0}
    metrics.reports("delays", sources={"flights": found, "history": found})


def documents(o: OnServer) -> list[ControlDocument]:
    """Return what drivers are told."""
    alive = [pod for pod in o.pods() if not is_ended(pod)]
    found = [read(pod["metadata"]["annotations"][CONTROL]) for pod in alive]
    assert all(isinstance(one, ControlDocument) for one in found), found
    return [one for one in found if isinstance(one, ControlDocument)]
