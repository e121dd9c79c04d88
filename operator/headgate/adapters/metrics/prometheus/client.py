"""One query to Prometheus, within its time.

`prometheus-api-client` writes the request. Three things are done for it here, in the session that it is given.
Its own time-out starts anew with each byte, so a server that sends one a second would hold a tick for ever: the
whole exchange has one deadline. It puts the parameters even of a POST into the URL, which proxies cut off: they
go into the body. And it reports an error as the bytes of a page: here it becomes a sentence.

Nothing is tried twice. The next tick is the next try, with newer numbers.
"""

import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import requests
from prometheus_api_client import PrometheusConnect
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3 import HTTPResponse
from urllib3.exceptions import HTTPError, ReadTimeoutError
from urllib3.util.ssl_ import create_urllib3_context

from headgate.adapters.metrics.prometheus.answer import Decoder, QueryFailure, TooMuch, Vector, error_of
from headgate.reconcile.ports import OutageReason


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """Address, credentials and limits. Files are read again for each request, so that they may be rotated."""

    url: str
    """Base of the API, without `/api/v1`; may have a path: `https://thanos.example/prometheus`."""
    bearer_token_file: Path | None = None
    username: str | None = None
    """The user for basic authentication, with the content of `password_file`."""
    password_file: Path | None = None
    ca_file: Path | None = None
    """Certificates that the server is trusted by; `None`: those of the system."""
    timeout_seconds: float = 10.0
    """For one answer, from the connection to its last byte. Prometheus is told, and gives up as well."""
    matchers: str = ""
    """Label matchers for every query of the operator, as `cluster="a"`: where one server knows several
    clusters. Expressions of users are left as they are."""
    expressions_per_tick: int = 20
    """Different expressions of users that are evaluated in one tick at most; the others wait for their turn."""
    expression_timeout_seconds: float = 2.0
    tick_seconds: float = 5.0
    """Seconds between two ticks: how many can be evaluated in a time depends on it."""
    tenant_header: str = ""
    """Header that tells the server of which namespace an expression is; empty: none does."""
    namespace_label: str = ""
    """Label whose value each series has to be of the expression's own namespace by; empty: any series will do."""


LabelsT = TypeVar("LabelsT")

LARGEST_BYTES = 32 * 1024 * 1024
EACH_BYTES = 4096
"""For each application more: an answer for ten thousand has 12 MB. Three answers are held at once, each of which has
three times its size, and the operator has 512 MiB for everything."""
_CHUNK_BYTES = 1024 * 1024
USUAL_LOOKBACK = 300.0
"""Seconds; Prometheus' own."""


Queried = Callable[[float, str | None], None]
"""Told of each query: how many seconds it took, and the reason if it brought nothing."""


def ignore(seconds: float, reason: str | None) -> None:
    """Take no notice of a query."""


class PrometheusClient:
    """Asks one server; may be used by several threads."""

    def __init__(
        self,
        options: PrometheusOptions,
        *,
        timeout_seconds: float,
        largest_bytes: int = LARGEST_BYTES,
        queried: Queried = ignore,
    ) -> None:
        self.url = options.url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._queried = queried
        self._session = _Session(
            largest_bytes, verify=True if options.ca_file is None else str(options.ca_file)
        )
        self._connection = PrometheusConnect(
            url=self.url,
            headers={"Accept-Encoding": "identity"},  # packing costs both sides more than the way does
            auth=Credentials(options),
            session=self._session,
            timeout=timeout_seconds,
            method="POST",
        )
        self._session.mount(self.url, _Adapter())

    def ask(  # noqa: PLR0913  each is a parameter of the API
        self,
        query: str,
        decoder: Decoder[LabelsT],
        *,
        at: float | None = None,
        lookback: float | None = None,
        limit: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Vector[LabelsT]:
        """Return what `query` evaluates to at Unix time `at` of the server's clock (`None`: its now).

        Samples older than `lookback` seconds do not count where that is less than usual; some servers that are
        not Prometheus itself do not know it. `limit` is the largest number of samples; servers before 3.0 do not
        know that. `headers` are sent beside the usual ones. Raises QueryFailure.
        """
        params = {"timeout": f"{self._timeout_seconds:g}s"}
        params |= {} if at is None else {"time": repr(at)}
        params |= (
            {} if lookback is None or lookback >= USUAL_LOOKBACK else {"lookback_delta": f"{lookback:.3f}"}
        )
        params |= {} if limit is None else {"limit": str(limit)}
        reason: str | None = None
        began = time.monotonic()
        try:
            with self._session.sending(headers or {}):
                return decoder.decode(self._connection.custom_query(query, params))
        except QueryFailure as failure:
            reason = failure.outage.reason
            failure.outage = replace(failure.outage, message=f"{self.url} {failure.outage.message}")
            raise
        finally:
            self._queried(time.monotonic() - began, reason)

    def expect(self, applications: int) -> None:
        """Read answers for so many applications, and none that are much larger."""
        self._session.largest_bytes = LARGEST_BYTES + EACH_BYTES * applications

    def close(self) -> None:
        self._connection.close()


class _Body:
    """A response as `prometheus-api-client` takes it apart; what it takes out is the body, not decoded yet."""

    status_code = HTTPStatus.OK

    def __init__(self, content: bytearray) -> None:
        self.content = content

    def json(self) -> Mapping[str, Mapping[str, bytearray]]:
        return {"data": {"result": self.content}}


class _Headers(threading.local):
    """What one thread sends."""

    headers: Mapping[str, str] = {}


class _Adapter(HTTPAdapter):
    """Trusts, as curl and Grafana do, certificates that lack what Python 3.13 wants of them; tries nothing twice."""

    def init_poolmanager(self, *sizes: Any, **rest: Any) -> None:
        super().init_poolmanager(*sizes, ssl_context=_context(), **rest)

    def proxy_manager_for(self, proxy: str, **rest: Any) -> Any:
        return super().proxy_manager_for(proxy, ssl_context=_context(), **rest)


def _context() -> ssl.SSLContext:
    context = create_urllib3_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class _Session(requests.Session):
    def __init__(self, largest_bytes: int, *, verify: bool | str) -> None:
        super().__init__()
        self.verify = verify
        self.largest_bytes = largest_bytes
        self._more = _Headers()

    @contextmanager
    def sending(self, headers: Mapping[str, str]) -> Iterator[None]:
        """Send these with what this thread asks meanwhile; the library has the same headers for each query."""
        self._more.headers = headers
        try:
            yield
        finally:
            self._more.headers = {}

    def request(self, method: str, url: str, **rest: Any) -> Any:  # type: ignore[override]
        """Return the body of an answer of success; raises QueryFailure for all else."""
        timeout_seconds: float = rest["timeout"]
        deadline = time.monotonic() + timeout_seconds
        rest["data"] = rest.pop("params")
        rest["headers"] = {**(rest.get("headers") or {}), **self._more.headers}
        try:
            with super().request(method, url, stream=True, allow_redirects=False, **rest) as response:
                body = _read(response.raw, deadline, self.largest_bytes)
        except (TimeoutError, ReadTimeoutError, requests.Timeout) as problem:
            raise QueryFailure(
                OutageReason.QUERY_TIMEOUT, f"did not answer within {timeout_seconds:g} s{_SLOW}"
            ) from problem
        except (OSError, HTTPError) as problem:  # requests' own errors are OSErrors
            raise QueryFailure(
                OutageReason.CONNECTION_FAILED, f"cannot be reached: {_cause(problem)}{_AWAY}"
            ) from problem
        if response.status_code != HTTPStatus.OK:
            raise _refusal(response, body)
        if not body[:1024].lstrip().startswith(b"{"):
            kind = response.headers.get("Content-Type", "something without a type")
            raise QueryFailure(OutageReason.MALFORMED, f"answers with {kind}, not JSON: {_WRONG_URL}")
        return _Body(body)


_SLOW = ": it is overloaded, or was asked for too much"
_AWAY = "; check prometheusUrl, and network policies"
_WRONG_URL = "is it the base URL of a Prometheus API?"


def _read(raw: HTTPResponse, deadline: float, largest_bytes: int) -> bytearray:
    body = bytearray()
    while chunk := raw.read1(_CHUNK_BYTES, decode_content=True):
        body += chunk
        if time.monotonic() > deadline:
            raise TimeoutError
        if len(body) > largest_bytes:
            raise TooMuch(f"sends more than {largest_bytes:,} bytes", _namespace_with_most(body))
    return body  # as it is: a copy takes as much again


_SERIES = re.compile(rb'\{\s*"metric"\s*:')
_NAMESPACE = re.compile(rb'[{,]\s*"namespace"\s*:\s*"([a-z0-9-]{1,63})"')
_POD = re.compile(rb'[{,]\s*"pod"\s*:\s*"([^"\\]{1,253})"')
"""In JSON, where no text of a label has a quote that is not escaped."""


def _namespace_with_most(body: bytearray) -> str | None:
    """Return the namespace of the driver with most of an answer that is cut off, where it names any.

    Many drivers may have as much together, and are none the worse for it.
    """
    sizes: Counter[tuple[bytes, bytes]] = Counter()
    begins = [found.start() for found in _SERIES.finditer(body)]
    for begin, end in pairwise((*begins, len(body))):
        if (namespace := _NAMESPACE.search(body, begin, end)) is not None:
            pod = _POD.search(body, begin, end)
            sizes[namespace[1], b"" if pod is None else pod[1]] += end - begin
    return max(sizes, key=lambda one: (sizes[one], one))[0].decode() if sizes else None


def _refusal(response: requests.Response, body: bytearray) -> QueryFailure:
    status = f"{response.status_code} {response.reason or ''}".strip()
    if (error := error_of(body)) is not None:
        kind, text = error
        is_late = kind in {"timeout", "canceled"}
        return QueryFailure(
            OutageReason.QUERY_TIMEOUT if is_late else OutageReason.QUERY_FAILED, f"says: {text}"
        )
    if response.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        remedy = "give the operator a token or a password that it accepts"
    elif response.is_redirect:
        remedy = f"it sends to {response.headers['Location']}; {_WRONG_URL}"
    elif response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
        remedy = _WRONG_URL
    else:
        remedy = "it, or a proxy before it, is not well"
    return QueryFailure(OutageReason.HTTP_ERROR, f"answers {status}: {remedy}")


def _cause(problem: BaseException) -> str:
    """Return the innermost reason: libraries wrap "connection refused" three times."""
    inner: BaseException | None = problem
    while inner is not None:
        problem = inner
        first = problem.args[0] if problem.args else None
        reason = getattr(problem, "reason", None)
        inner = next((one for one in (reason, first) if isinstance(one, BaseException)), problem.__cause__)
    return getattr(problem, "strerror", None) or str(problem) or type(problem).__name__


class Credentials(AuthBase):
    """Signs each request with what the files hold at that moment.

    Tokens of service accounts are rotated within the hour, so files are read for each request: a few kilobytes at a
    few requests in five seconds, and no moment at which the old one is still in use.
    """

    def __init__(self, options: PrometheusOptions) -> None:
        self._options = options

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the header; raises QueryFailure when a file cannot be read."""
        options = self._options
        if options.bearer_token_file is not None:
            request.headers["Authorization"] = f"Bearer {_secret(options.bearer_token_file)}"
        elif options.username is not None:
            password = "" if options.password_file is None else _secret(options.password_file)
            HTTPBasicAuth(options.username, password)(request)
        return request


def _secret(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no text"
        raise QueryFailure(
            OutageReason.CREDENTIALS_UNREADABLE, f"cannot read {file} to sign in to Prometheus: {reason}"
        ) from problem
