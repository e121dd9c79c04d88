"""The calls to the API server: plain JSON objects in and out, a time limit on each, errors of our own.

Generated models cost more than they give here: they refuse fields of a server that is newer than they are,
and their validation is the larger part of a call. So objects are dictionaries, as they are in every manifest,
and of the official client only connection, certificates and tokens are used. Not even its request, which costs a
fifth of a call: ten thousand applications that start are forty thousand of them.
"""

import asyncio
import math
import sys
import time
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypedDict
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient, Configuration

from headgate.adapters.kubernetes.names import MANAGER
from headgate.errors import ApiConflict, ApiNotFound, ApiRefused, ApiUnavailable, TransientError
from headgate.key import Key, key_of
from headgate_contract.foreign import scrubbed

Manifest = dict[str, Any]
"""An object of the API, as JSON."""

TIMEOUT_SECONDS = 10.0
"""Seconds for one call, from the first byte sent to the last one read."""

PAGE = 500
"""Objects in one answer to a listing."""

_DEEPEST = 11_000
"""Recursion limit of a process that reads what is there: an API server takes ten thousand objects in one another from
whoever may write one. By Python's default, one such object keeps everybody from listing all. This takes five of
the eight MiB of a stack."""

LONGEST_PAUSE_SECONDS = 300.0
"""As long as a server may ask to be left alone; an application must not stand still for a day for one header."""

_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

LIST = frozenset({"metadata", "items"})

_Continue = TypedDict("_Continue", {"continue": str}, total=False)


class _Version(TypedDict):
    uid: str
    resourceVersion: str


class _Item(TypedDict):
    metadata: _Version


class _Versions(TypedDict):
    """What is read of a listing of metadata. Most of it says who wrote which field; to read that takes seven times as
    long."""

    metadata: _Continue
    items: list[_Item] | None


_JSON = msgspec.json.Decoder()
_DECODERS = {_METADATA_ONLY: msgspec.json.Decoder(_Versions)}
"""By what is asked for, where not all of it is read."""


class Kind(NamedTuple):
    """Where objects of a kind are found."""

    group_version: str
    plural: str

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of an object, or of all of them in a namespace or everywhere."""
        root = f"/apis/{self.group_version}" if "/" in self.group_version else f"/api/{self.group_version}"
        steps = [self.plural, name, subresource]
        below = ["namespaces", namespace, *steps] if namespace is not None else steps
        return "/".join([root, *(quote(step, safe="") for step in below if step is not None)])


APPLICATIONS = Kind("headgate.dev/v1alpha1", "sparkapplications")
PODS = Kind("v1", "pods")
EVENTS = Kind("v1", "events")
LEASES = Kind("coordination.k8s.io/v1", "leases")
DEPLOYMENTS = Kind("apps/v1", "deployments")


class Call(NamedTuple):
    """One request."""

    method: str
    kind: Kind
    path: str
    query: Mapping[str, str] = MappingProxyType({})
    body: Mapping[str, Any] | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    expects: frozenset[str] = frozenset({"metadata"})
    """Members without which an answer is none of the API server's."""

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def __str__(self) -> str:
        return f"API server: {self.method} {self.path}"


class Listener(Protocol):
    """Told of each call once it has ended, for metrics."""

    def __call__(self, *, verb: str, kind: str, status: str, seconds: float) -> None:
        """`status` is the HTTP status, or `unavailable` where there was none."""


class ApiServer:
    """The API server. Every call raises `ApiConflict`, `ApiNotFound`, `ApiRefused` or `ApiUnavailable`."""

    def __init__(
        self,
        api: ApiClient,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        listener: Listener | None = None,
        field_manager: str = MANAGER,
    ) -> None:
        self._api = api
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._listener = listener
        # Asked to warn of fields that nobody knows, as it is by default, the server decodes more strictly; nobody
        # would read the warnings, and what it does not know it leaves out either way.
        self._writing = {"fieldManager": field_manager, "fieldValidation": "Ignore"}

    async def close(self) -> None:
        """Close the connections; another call opens new ones."""
        rest = self._api.rest_client
        await rest.close()
        rest.pool_manager = None

    async def get(self, kind: Kind, key: Key) -> Manifest:
        return await self._call(Call("GET", kind, kind.path(*key)))

    async def version(self) -> Manifest:
        """Return what the API server says of its own version."""
        return await self._call(
            Call("GET", Kind("v1", "version"), "/version", expects=frozenset({"major", "minor"}))
        )

    async def text(self, kind: Kind, key: Key, subresource: str, **query: str) -> str:
        """Return a subresource that is no JSON, such as the log of a pod."""
        call = Call("GET", kind, kind.path(*key, subresource), query, accept="*/*")
        return (await self._content(call)).decode("utf-8", "replace")

    async def list(  # noqa: PLR0913  each is a part of the query
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
        rest: float = 0.0,
    ) -> list[Manifest]:
        """Return all objects of a namespace, or of all namespaces, that fit the selectors of labels and fields.

        `metadata_only`: of each nothing but `uid` and `resourceVersion` in its `metadata`. `rest`: how many times as
        long as one page of many took the next one is left, for whoever is not in a hurry. They are all of the moment
        of the first one; after some minutes the server does not know that any more, which is `ApiNotFound`.
        """
        accept = _METADATA_ONLY if metadata_only else "application/json"
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        query = {"limit": str(PAGE)} | {name: text for name, text in selectors.items() if text is not None}
        found: list[Manifest] = []
        while True:
            began = time.monotonic()
            page = await self._call(
                Call("GET", kind, kind.path(namespace), query, accept=accept, expects=LIST)
            )
            took = time.monotonic() - began
            found += page["items"] or ()  # metadata alone of nothing is null
            if not (token := page["metadata"].get("continue")):
                return found
            query["continue"] = token
            if rest:
                await asyncio.sleep(rest * took)

    async def describe(self, kind: Kind) -> Manifest:
        """Return the OpenAPI document of the kind's group, with the fields that the API server knows."""
        return await self._call(
            Call("GET", kind, f"/openapi/v3/apis/{kind.group_version}", expects=frozenset({"openapi"}))
        )

    async def create(self, kind: Kind, manifest: Mapping[str, Any]) -> Manifest:
        """Create an object; `ApiConflict` where there is one of that name."""
        path = kind.path(manifest["metadata"].get("namespace"))
        return await self._call(Call("POST", kind, path, self._writing, manifest))

    async def apply(
        self, kind: Kind, manifest: Mapping[str, Any], *, subresource: str | None = None
    ) -> Manifest:
        """Make the fields in `manifest` ours and as given (server-side apply, field manager `headgate`).

        What was ours and is not in it is taken away. With `metadata.resourceVersion`, `ApiConflict` where the
        object has changed since; without, it is created where there is none.
        """
        path = kind.path(*key_of(manifest), subresource)
        query = {**self._writing, "force": "true"}
        return await self._call(Call("PATCH", kind, path, query, manifest, "application/apply-patch+yaml"))

    async def apply_status(self, manifest: Mapping[str, Any]) -> Manifest:
        return await self.apply(APPLICATIONS, manifest, subresource="status")

    async def patch(self, kind: Kind, key: Key, patch: Mapping[str, Any]) -> Manifest:
        """Change the members in `patch`, `None` deletes (RFC 7386); with `metadata.resourceVersion` as above."""
        return await self._call(
            Call("PATCH", kind, kind.path(*key), self._writing, patch, "application/merge-patch+json")
        )

    async def delete(
        self, kind: Kind, key: Key, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> Manifest:
        """Ask for the end of an object; with `uid`, `ApiConflict` where another one bears its name by now."""
        options: Manifest = {"propagationPolicy": "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return await self._call(Call("DELETE", kind, kind.path(*key), body=options, expects=frozenset()))

    async def _call(self, call: Call) -> Manifest:
        """Return the object of an answer; a proxy in between may answer with a page, and call it a success."""
        content = await self._content(call)
        try:
            answer = _DECODERS.get(call.accept, _JSON).decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._foreign(call, f"not as expected ({error})", content) from None
        if not isinstance(answer, dict) or not call.expects <= answer.keys():
            raise self._foreign(call, "no object of the API", content)
        return answer

    async def _content(self, call: Call) -> bytes:
        started, status = time.monotonic(), "unavailable"
        try:
            response, content = await self._send(call)
            status = str(response.status)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._unreachable(call, error) from error
        finally:
            if self._listener is not None:
                seconds = time.monotonic() - started
                self._listener(verb=call.method, kind=call.kind.plural, status=status, seconds=seconds)
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise self._refusal(call, response.status, content, response.headers.get("Retry-After"))
        return content

    def _unreachable(self, call: Call, error: Exception) -> TransientError:
        what = "no answer in time" if isinstance(error, TimeoutError) else str(error) or repr(error)
        return ApiUnavailable(f"{call}: {what}")

    def _foreign(self, call: Call, what: str, content: bytes) -> TransientError:
        return ApiUnavailable(f"{call}: the answer is {what}: {scrubbed(_beginning(content))}")

    def _refusal(self, call: Call, status: int, content: bytes, retry_after: str | None) -> TransientError:
        return refusal(call, status, content, retry_after)

    async def _send(self, call: Call) -> tuple[aiohttp.ClientResponse, bytes]:
        api, headers = self._api, {"Accept": call.accept, "Content-Type": call.content_type}
        await api.update_params_for_auth(headers, [], ["BearerToken"], call.path, call.method, call.body)
        if (session := api.rest_client.pool_manager) is None:  # made in the event loop that it belongs to
            session = api.rest_client.pool_manager = session_of(api)
        async with session.request(
            call.method,
            api.configuration.host + call.target,
            headers=headers,
            data=None if call.body is None else msgspec.json.encode(call.body),
            timeout=self._timeout,
            server_hostname=api.configuration.tls_server_name,
        ) as response:
            return response, await response.read()


def connection(configuration: Configuration) -> ApiClient:
    """Return a connection as configured, by the proxy that the environment names where the configuration has none.

    The process may read from then on whatever an API server takes.
    """
    sys.setrecursionlimit(_DEEPEST)
    if configuration.proxy is None:
        target = urlsplit(configuration.host)
        is_direct = proxy_bypass(target.hostname or "")
        configuration.proxy = None if is_direct else getproxies().get(target.scheme)
    # Python 3.13 refuses certificates without key identifiers, and the authorities of many clusters have none.
    configuration.disable_strict_ssl_verification = True
    return ApiClient(configuration)


def session_of(api: ApiClient, *middlewares: aiohttp.ClientMiddlewareType) -> aiohttp.ClientSession:
    """Return a session with the certificates and the proxy of `api`."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=api.rest_client.ssl_context),
        middlewares=middlewares,
        proxy=api.configuration.proxy,
        read_bufsize=2**21,
    )


def refusal(call: Call, status: int, content: bytes, retry_after: str | None) -> TransientError:
    """Return the error that an answer with this status is, in the server's words without what is secret in them."""
    message = scrubbed(str(status_of(content).get("message") or _beginning(content)))
    text = f"{call}: {status}: {message}"
    match status:
        case 404 | 410:
            return ApiNotFound(text)
        case 409:
            return ApiConflict(text)
        case 408 | 429 | 500 | 502 | 503 | 504:
            return ApiUnavailable(text, _seconds(retry_after))
        case _:
            return ApiRefused(text, message)


def status_of(content: bytes) -> Manifest:
    """Return the `Status` with which the server refuses; empty where a proxy answers in a form of its own."""
    try:
        status = _JSON.decode(content)
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}


def _beginning(content: bytes) -> str:
    return content[:200].decode("utf-8", "replace")


def _seconds(retry_after: str | None) -> float | None:
    """Return for how long the server wants to be left alone; `None` where it does not say, or gives a date."""
    try:
        asked = math.nan if retry_after is None else float(retry_after)
    except ValueError:
        return None
    return None if math.isnan(asked) else min(max(0.0, asked), LONGEST_PAUSE_SECONDS)
