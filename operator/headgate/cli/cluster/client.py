"""A person's way to the API server: the operator's client, with errors that say what to do.

Calls are short: whoever waits at a terminal wants an answer, and the next try is theirs. Every method raises
`ApiUnavailable`, `ApiRefused`, `ApiNotFound` or `ApiConflict`, each with one sentence and a remedy.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import aiohttp
from kubernetes.aio.client import ApiClient

from headgate.adapters.kubernetes import client
from headgate.adapters.kubernetes.client import APPLICATIONS, EVENTS, Call, Manifest, status_of
from headgate.api.application import KIND, SparkApplication, application_schema
from headgate.errors import (
    ApiConflict,
    ApiNotFound,
    ApiRefused,
    ApiUnavailable,
    HeadgateError,
    TransientError,
    UsageError,
)
from headgate.key import Key, key_of
from headgate_contract.nearest import did_you_mean

if TYPE_CHECKING:
    from headgate.api.finding import Finding

CONNECT_SECONDS = 5.0
READ_SECONDS = 15.0

FIELD_MANAGER = "headgate-cli"
"""Who owns what these commands write. Flux takes fields back from managers whose name begins with `kubectl`."""

T = TypeVar("T")


class Cluster:
    """The applications of one namespace, or of all, as the API server has them, until the `with` block ends.

    All questions of a command go over the same connections: to open one takes longer than most answers.
    """

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self._api = _Api(api)
        self.host = self._api.host
        """Address of the API server."""
        self.namespace = namespace
        """Where applications are looked for by name."""
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._runner.run(self._api.close())
        finally:
            self._runner.close()

    def ask(self, question: Callable[[client.ApiServer], Awaitable[T]]) -> T:
        """Return what the calls of `question` lead to."""

        async def asked() -> T:
            return await question(self._api)

        return self._runner.run(asked())

    def application(self, name: str) -> Manifest:
        """Return the application; ApiNotFound says which names are like it, or where it is."""
        return self._named(name, lambda api: api.get(APPLICATIONS, Key(self.namespace, name)))

    def applications(self, *, everywhere: bool = False) -> list[Manifest]:
        return self.ask(lambda api: api.list(APPLICATIONS, None if everywhere else self.namespace))

    def chosen(self, name: str | None, *, everywhere: bool) -> list[Manifest]:
        """Return the application of that name, or all of them where none is given."""
        return [self.application(name)] if name is not None else self.applications(everywhere=everywhere)

    def patch(self, name: str, patch: Mapping[str, Any]) -> Manifest:
        """Change the members in `patch` (RFC 7386) and return the application after it.

        With `metadata.resourceVersion` in it, ApiConflict where somebody else was faster.
        """
        return self._named(name, lambda api: api.patch(APPLICATIONS, Key(self.namespace, name), patch))

    def validated(self, manifest: Mapping[str, Any]) -> "tuple[SparkApplication | None, tuple[Finding, ...]]":
        """Return what an application of the cluster declares, or None, and the findings.

        As for the operator, what a newer CRD has filled in counts as not set. It is asked for where one is refused.
        """
        from headgate.api.crd import described
        from headgate.api.schema import without_filled_in
        from headgate.api.validation import validate

        shown = {member: value for member, value in manifest.items() if member != "status"}
        application, findings = validate(shown)
        if application is None:
            with suppress(HeadgateError):  # it is refused as before where the server does not tell
                published = described(self.ask(lambda api: api.describe(APPLICATIONS))) or {}
                application, findings = validate(without_filled_in(shown, application_schema(), published))
        return application, findings

    def events(self, application: Mapping[str, Any]) -> list[Manifest]:
        """Return the Events on the application, in no order; none of one of the same name that was deleted."""
        key, uid = key_of(application), application["metadata"]["uid"]
        about = {"kind": KIND, "name": key.name, "uid": uid}
        selected = ",".join(f"involvedObject.{member}={value}" for member, value in about.items())
        return self.ask(lambda api: api.list(EVENTS, key.namespace, fields=selected))

    def _named(self, name: str, question: Callable[[client.ApiServer], Awaitable[Manifest]]) -> Manifest:
        require_name(name, "an application")
        try:
            return self.ask(question)
        except _NoSuchObject:
            raise ApiNotFound(self._where_it_may_be(name)) from None

    def _where_it_may_be(self, name: str) -> str:
        missing = f"there is no application {name} in namespace {self.namespace}"
        here = [application["metadata"]["name"] for application in self.applications()]
        if hint := did_you_mean(name, here):
            return f"{missing}{hint}"
        elsewhere: list[str] = []
        with suppress(HeadgateError):  # who may see one namespace only is told of that one
            everywhere = map(key_of, self.applications(everywhere=True))
            elsewhere = sorted(key.namespace for key in everywhere if key.name == name)
        if elsewhere:
            return f"{missing}, but in {', '.join(elsewhere)}; give that with -n"
        return (
            f"{missing}, which has: {', '.join(sorted(here)[:10])}" if here else f"{missing}, which has none"
        )


def require_name(name: str, what: str) -> None:
    """Raise UsageError for a name that the path of a request has no room for: it would ask for something else."""
    if name in {"", ".", ".."} or not name.isprintable():
        raise UsageError(f"{name!r} is no name of {what}; give one of lower-case letters, digits and -")


class _Api(client.ApiServer):
    """The API server, in words for a person."""

    def __init__(self, api: ApiClient) -> None:
        super().__init__(api, field_manager=FIELD_MANAGER)
        self._timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)
        self.host: str = api.configuration.host

    def _unreachable(self, call: Call, error: Exception) -> TransientError:  # noqa: ARG002
        return ApiUnavailable(
            f"{self.host} cannot be reached: {_reason(error)}; check that the cluster is up, or give "
            "another --context"
        )

    def _foreign(self, call: Call, what: str, content: bytes) -> TransientError:  # noqa: ARG002
        return ApiUnavailable(
            f"{self.host} is no API server of Kubernetes; check the server in the kubeconfig"
        )

    def _refusal(
        self,
        call: Call,  # noqa: ARG002
        status: int,
        content: bytes,
        retry_after: str | None,  # noqa: ARG002
    ) -> TransientError:
        said = status_of(content)
        message = said.get("message") or "without a word"
        if status == 404 and not said.get("details", {}).get("name"):
            return ApiNotFound(
                f"the cluster knows no {KIND} of {APPLICATIONS.group_version}; install the CRD, which the chart "
                "does, or give another --context"
            )
        if status == 404:
            return _NoSuchObject(message)
        if status == 409:
            return ApiConflict(f"{message}; try again")
        if status in _REFUSALS:
            return ApiRefused(_REFUSALS[status].format(host=self.host, message=message), message)
        return ApiUnavailable(f"{self.host} answers {status} {message}; try again later")


_REFUSALS: Final = {
    400: "the API server refuses it: {message}",
    401: "{host} does not know who you are; log in again, or give another --context",
    403: "{message}; ask for that right, or give another --context",
    422: "the API server refuses it: {message}",
}


class _NoSuchObject(ApiNotFound):
    """The server knows the kind, but not the object."""


def _reason(error: Exception) -> str:
    """Return why there was no answer, without the addresses that aiohttp adds."""
    match error:
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ClientConnectorDNSError():
            return "its name is not known"
        case aiohttp.ClientConnectorCertificateError():
            return str(error.certificate_error)
        case aiohttp.ClientConnectorSSLError():
            return str(error.os_error)
        case aiohttp.ClientConnectorError():
            return "nobody listens there"
    return str(error) or type(error).__name__
