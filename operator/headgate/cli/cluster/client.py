"""A person's client of the API server: applications and their Events, with errors that say what to do.

Calls are short: whoever waits at a terminal wants an answer, and the next try is theirs. Every method raises
`ApiUnavailable`, `ApiRefused`, `ApiNotFound` or `ApiConflict`, each with one sentence and a remedy.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import urllib3
from kubernetes.client import ApiClient, ApiException

from headgate.api.application import API_VERSION, KIND
from headgate.errors import ApiConflict, ApiNotFound, ApiRefused, ApiUnavailable, HeadgateError

CONNECT_SECONDS = 5.0
READ_SECONDS = 15.0

FIELD_MANAGER = "headgate-cli"
"""Who owns what these commands write. Flux takes fields back from managers whose name begins with `kubectl`."""

PAGE = 500
"""Objects in one answer to a listing."""

PLURAL = "sparkapplications"
MERGE_PATCH = "application/merge-patch+json"

Manifest = dict[str, Any]
"""An object of the API, as JSON."""


class _Answer(NamedTuple):
    status: int
    content: bytes


class Cluster:
    """The applications of one namespace, or of all, as the API server has them."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self._api = api
        self.namespace = namespace
        """Where applications are looked for by name."""

    @property
    def host(self) -> str:
        """Address of the API server."""
        host: str = self._api.configuration.host
        return host

    def application(self, name: str) -> Manifest:
        """Return the application; ApiNotFound says which names are like it, or where it is."""
        return self._named("GET", name)

    def applications(self, *, everywhere: bool = False) -> list[Manifest]:
        """Return the applications of the namespace, or of all namespaces."""
        path = f"/apis/{API_VERSION}/{PLURAL}" if everywhere else _applications_in(self.namespace)
        found: list[Manifest] = []
        query = {"limit": str(PAGE)}
        while True:
            page = self._call("GET", path, query=query)
            found += page["items"]
            if not (following := page["metadata"].get("continue")):
                return found
            query["continue"] = following

    def patch(self, name: str, patch: Mapping[str, Any]) -> Manifest:
        """Change the members in `patch` (RFC 7386) and return the application after it.

        With `metadata.resourceVersion` in it, ApiConflict where somebody else was faster.
        """
        return self._named("PATCH", name, patch)

    def events(self, application: Mapping[str, Any]) -> list[Manifest]:
        """Return the Events on the application, in no order; none of one of the same name that was deleted."""
        metadata = application["metadata"]
        about = {"kind": KIND, "name": metadata["name"], "uid": metadata["uid"]}
        selected = ",".join(f"involvedObject.{member}={value}" for member, value in about.items())
        path = f"/api/v1/namespaces/{quote(metadata['namespace'], safe='')}/events"
        answer = self._call("GET", path, query={"fieldSelector": selected, "limit": str(PAGE)})
        items: list[Manifest] = answer["items"]
        return items

    def get(self, path: str, **query: str) -> Manifest:
        """Return what is at a path of the API, such as `/version`."""
        return self._call("GET", path, query=query)

    def text(self, path: str, most_bytes: int, **query: str) -> str:
        """Return what is at a path that has no JSON, such as a log, or its first `most_bytes`."""
        answer = self._sent("GET", f"{path}?{urlencode(query)}" if query else path, None)
        if answer.status >= 300:
            raise self._refusal(answer.status, _decoded(answer.content) or {})
        return answer.content[:most_bytes].decode("utf-8", "replace")

    def may(self, attributes: Mapping[str, str], user: str | None = None) -> bool:
        """Return whether a user (`None`: who calls) has a right; `attributes` are those of an access review."""
        kind = "SelfSubjectAccessReview" if user is None else "SubjectAccessReview"
        whom = {} if user is None else {"user": user, "groups": _groups_of(user)}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": kind,
            "spec": {"resourceAttributes": dict(attributes), **whom},
        }
        path = f"/apis/authorization.k8s.io/v1/{kind.lower()}s"
        return bool(self._call("POST", path, query={}, body=review)["status"].get("allowed"))

    def _named(self, method: str, name: str, patch: Mapping[str, Any] | None = None) -> Manifest:
        path = f"{_applications_in(self.namespace)}/{quote(name, safe='')}"
        query = {} if patch is None else {"fieldManager": FIELD_MANAGER}
        try:
            return self._call(method, path, query=query, body=patch)
        except _NoSuchObjectError:
            raise ApiNotFound(self._where_it_may_be(name)) from None

    def _where_it_may_be(self, name: str) -> str:
        missing = f"there is no application {name} in namespace {self.namespace}"
        here = [application["metadata"]["name"] for application in self.applications()]
        if close := difflib.get_close_matches(name, here, n=1):
            return f"{missing}; did you mean {close[0]}?"
        if elsewhere := self._namespaces_with(name):
            return f"{missing}, but in {', '.join(elsewhere)}; give that with -n"
        return (
            f"{missing}, which has: {', '.join(sorted(here)[:10])}" if here else f"{missing}, which has none"
        )

    def _namespaces_with(self, name: str) -> list[str]:
        try:
            everywhere = self.applications(everywhere=True)
        except HeadgateError:  # who may see one namespace only is told of that one
            return []
        found = (application["metadata"] for application in everywhere)
        return sorted(metadata["namespace"] for metadata in found if metadata["name"] == name)

    def _call(
        self, method: str, path: str, *, query: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> Manifest:
        answer = self._sent(method, f"{path}?{urlencode(query)}" if query else path, body)
        content = _decoded(answer.content)
        if answer.status >= 300:
            raise self._refusal(answer.status, content or {})
        if content is None:
            raise ApiUnavailable(
                f"{self.host} is no API server of Kubernetes; check the server in the kubeconfig"
            )
        return content

    def _sent(self, method: str, target: str, body: Mapping[str, Any] | None) -> _Answer:
        content_type = MERGE_PATCH if method == "PATCH" else "application/json"
        headers = {"Accept": "application/json, */*", "Content-Type": content_type}
        self._api.update_params_for_auth(headers, [], ["BearerToken"], target, method, body)
        try:
            response = self._api.call_api(
                method, self.host + target, headers, body, _request_timeout=(CONNECT_SECONDS, READ_SECONDS)
            )
            content: bytes = response.read()  # type: ignore[no-untyped-call]
            return _Answer(response.status, content)
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            raise ApiUnavailable(
                f"{self.host} cannot be reached: {_reason(error)}; check that the cluster is up, or give another "
                "--context"
            ) from None

    def _refusal(self, status: int, content: Manifest) -> HeadgateError:
        message = content.get("message") or "without a word"
        if status == 404 and not content.get("details", {}).get("name"):
            return ApiNotFound(
                f"the cluster knows no {KIND} of {API_VERSION}; install the CRD, which the chart does, or give "
                "another --context"
            )
        if status == 404:
            return _NoSuchObjectError(message)
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


class _NoSuchObjectError(HeadgateError):
    """The server knows the kind, but not the object."""


def _groups_of(user: str) -> list[str]:
    """Return the groups that the API server puts a service account into."""
    _, _, account = user.partition("system:serviceaccount:")
    own = [f"system:serviceaccounts:{account.partition(':')[0]}"] if account else []
    return ["system:authenticated", *(["system:serviceaccounts"] if account else []), *own]


def _applications_in(namespace: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{quote(namespace, safe='')}/{PLURAL}"


def _decoded(content: bytes) -> Manifest | None:
    try:
        value = json.loads(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _reason(error: Exception) -> str:
    """Return why there was no answer, without the addresses of objects that urllib3 adds."""
    match error:
        case urllib3.exceptions.NameResolutionError():
            return "its name is not known"
        case urllib3.exceptions.NewConnectionError():
            return "nobody listens there"
        case urllib3.exceptions.TimeoutError():
            return "no answer in time"
        case ApiException():  # the client's own wrapping of what TLS has to say
            return str(error.reason).rpartition("\n")[2]
    return str(error) or type(error).__name__
