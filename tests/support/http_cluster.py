"""An API server in a thread, as far as the commands against a cluster know one: HTTP, JSON, and what may go wrong.

It holds SparkApplications and Events in memory, merges patches as RFC 7386 says, counts versions and generations,
and refuses writers with old knowledge. What a test has it say instead is said once for each call that was told.
"""

from __future__ import annotations

import copy
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import yaml

from support.http_server import Handler, serving

Manifest = dict[str, Any]

ROOT = "/apis/headgate.dev/v1alpha1"
APPLICATIONS = re.compile(rf"{ROOT}(?:/namespaces/([^/]+))?/sparkapplications(?:/([^/]+))?")
EVENTS = re.compile(r"/api/v1/namespaces/([^/]+)/events")


class Answer(NamedTuple):
    """What the server says to one call; text that is no JSON is sent as it is."""

    status: int
    body: Manifest | str

    @property
    def content(self) -> bytes:
        """The body as it is sent."""
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class Request(NamedTuple):
    """One call that was made."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any


def failure(code: int, reason: str, message: str, **details: Any) -> Answer:
    """Return the `Status` object that an API server answers with."""
    return Answer(
        code,
        {
            "kind": "Status",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": message,
            "details": details,
        },
    )


@dataclass
class HttpCluster:
    """The server's memory, and how a test changes it."""

    kubeconfig: Path
    server: str = ""
    """Where it listens."""
    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    events: list[Manifest] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    connections: list[Any] = field(default_factory=list)
    """Address of the other end of each, in the order in which they were opened."""
    scripted: deque[Answer | None] = field(default_factory=deque)
    """Said instead, once for each call; None: that call is answered as usual."""
    after: Callable[[Request], None] = lambda _request: None
    """Called once a call has its answer: what others do meanwhile."""
    others: dict[str, Answer] = field(default_factory=dict)
    """What is said at paths that are none of applications and their Events."""
    denied: set[str] = field(default_factory=set)
    """Rights that nobody has, as `verb resource`."""
    page: int = 500
    """Objects in one answer to a listing, whatever was asked for."""
    _version: int = 0

    def put(self, manifest: Mapping[str, Any], namespace: str = "default") -> Manifest:
        """Store an application as somebody else would."""
        stored = copy.deepcopy(dict(manifest))
        self._version += 1
        stored["metadata"] = {
            "generation": 1,
            "creationTimestamp": "2026-03-01T08:00:00Z",
            "uid": f"uid-of-{stored['metadata']['name']}",
            **stored["metadata"],
            "namespace": namespace,
            "resourceVersion": str(self._version),
        }
        self.objects[namespace, stored["metadata"]["name"]] = stored
        return stored

    def reports(self, name: str, **status: Any) -> None:
        """The operator writes members of a status, for the generation that is there."""
        known = self.objects["default", name]
        seen = {"observedGeneration": known["metadata"]["generation"]}
        self.put({**known, "status": {**known.get("status", {}), **seen, **status}})

    @property
    def patches(self) -> list[Any]:
        """The bodies of the writes, in order."""
        return [request.body for request in self.requests if request.method == "PATCH"]

    # Serving

    def answer(self, request: Request) -> Answer:
        """Return the answer to a call."""
        self.requests.append(request)
        if self.scripted and (said := self.scripted.popleft()) is not None:
            return said
        if request.path.startswith("/apis/authorization.k8s.io/v1/"):
            asked = request.body["spec"]["resourceAttributes"]
            resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
            return Answer(
                201, {"metadata": {}, "status": {"allowed": f"{asked['verb']} {resource}" not in self.denied}}
            )
        if request.path in self.others:
            return self.others[request.path]
        if found := EVENTS.fullmatch(request.path):
            return Answer(200, {"metadata": {}, "items": self._events(found[1], request.query)})
        if not (found := APPLICATIONS.fullmatch(request.path)):
            return Answer(404, "404 page not found\n")
        namespace, name = found.groups()
        if name is None:
            return self._listed(namespace, request.query)
        if (known := self.objects.get((namespace, name))) is None:
            message = f'sparkapplications.headgate.dev "{name}" not found'
            return failure(404, "NotFound", message, name=name, kind="sparkapplications")
        return Answer(200, known) if request.method == "GET" else self._patched(known, request.body)

    def _listed(self, namespace: str | None, query: Mapping[str, str]) -> Answer:
        found = [each for (where, _), each in sorted(self.objects.items()) if namespace in {None, where}]
        start = int(query.get("continue", "0"))
        end = start + min(self.page, int(query["limit"]))
        more = {"continue": str(end)} if end < len(found) else {}
        return Answer(200, {"metadata": more, "items": found[start:end]})

    def _patched(self, known: Manifest, patch: Manifest) -> Answer:
        version = known["metadata"]["resourceVersion"]
        if patch.get("metadata", {}).get("resourceVersion", version) != version:
            name = known["metadata"]["name"]
            message = f'cannot be fulfilled on sparkapplications.headgate.dev "{name}": it has been modified'
            return failure(409, "Conflict", message, name=name)
        merged = _merged(known, patch)
        merged["metadata"]["generation"] += merged["spec"] != known["spec"]
        return Answer(200, self.put(merged, known["metadata"]["namespace"]))

    def _events(self, namespace: str, query: Mapping[str, str]) -> list[Manifest]:
        wanted = dict(pair.split("=") for pair in query["fieldSelector"].split(","))
        return [
            event
            for event in self.events
            if event["metadata"]["namespace"] == namespace
            and all(
                event["involvedObject"].get(name.partition(".")[2]) == value for name, value in wanted.items()
            )
        ]


@contextmanager
def http_cluster(folder: Path) -> Iterator[HttpCluster]:
    """Serve a cluster on loopback, its kubeconfig in `folder`."""
    cluster = HttpCluster(folder / "kubeconfig")

    class Asked(Handler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            cluster.connections.append(self.client_address)

        def _handle(self) -> None:
            url = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            request = Request(self.command, url.path, query, body)
            answer = cluster.answer(request)
            cluster.after(request)
            self.say(answer.content, answer.status)

        def do_GET(self) -> None:
            self._handle()

        def do_POST(self) -> None:
            self._handle()

        def do_PATCH(self) -> None:
            self._handle()

    with serving(Asked) as server:
        cluster.server = f"http://127.0.0.1:{server.server_port}"
        cluster.kubeconfig.write_text(kubeconfig_text(cluster.server))
        yield cluster


def kubeconfig_text(server: str, **context: Any) -> str:
    """Return a kubeconfig with the context `test` and nobody's credentials."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server}}],
            "users": [{"name": "test", "user": {"token": "secret"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", **context}}],
        }
    )


def _merged(known: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(known) if isinstance(known, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return copy.deepcopy(merged)
