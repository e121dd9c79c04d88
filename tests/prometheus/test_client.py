"""One query: what a person is told when Prometheus is away, slow, wrong or somebody else."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import msgspec
import pytest
from urllib3.util.ssl_ import create_urllib3_context

from headgate.adapters.metrics.prometheus import client as prometheus_client
from headgate.adapters.metrics.prometheus.answer import (
    FORGOTTEN_SECONDS,
    SPARE,
    AnyLabels,
    Labels,
    QueryFailure,
    SeriesDecoder,
    TooMuch,
    VectorDecoder,
)
from headgate.adapters.metrics.prometheus.client import PrometheusClient, PrometheusOptions
from headgate.reconcile.ports import Outage, OutageReason
from support.certificates import Authority
from support.fake_prometheus import NOW, Answer, fake_prometheus, refused, vector
from support.servers import free_port

SERIES = VectorDecoder(Labels)


def ask(url: str, *, seconds: float = 60.0, largest_bytes: int = 10_000, **options: object) -> object:
    client = PrometheusClient(
        PrometheusOptions(url=url, **options), timeout_seconds=seconds, largest_bytes=largest_bytes
    )
    try:
        return client.ask("up", SERIES)
    finally:
        client.close()


def outage(url: str, *, seconds: float = 60.0, **options: object) -> Outage:
    with pytest.raises(QueryFailure) as failure:
        ask(url, seconds=seconds, **options)
    return failure.value.outage


def page(status: int, text: str = "<html>", **headers: str) -> Answer:
    return Answer(text.encode(), status, {"Content-Type": "text/html", **headers})


BAD_ANSWERS = {
    "an expression it cannot parse": (
        refused(400, "bad_data", 'invalid parameter "query": parse error'),
        OutageReason.QUERY_FAILED,
        'says: invalid parameter "query": parse error',
    ),
    "an expression it gave up on": (
        refused(503, "timeout", "query timed out in expression evaluation"),
        OutageReason.QUERY_TIMEOUT,
        "says: query timed out in expression evaluation",
    ),
    "no rights": (page(401), OutageReason.HTTP_ERROR, "answers 401 Unauthorized: give the operator a token"),
    "not these rights": (
        page(403),
        OutageReason.HTTP_ERROR,
        "answers 403 Forbidden: give the operator a token",
    ),
    "a page that is not there": (
        page(404),
        OutageReason.HTTP_ERROR,
        "is it the base URL of a Prometheus API?",
    ),
    "a login page": (
        page(302, Location="https://login.example/"),
        OutageReason.HTTP_ERROR,
        "answers 302 Found: it sends to https://login.example/",
    ),
    "a proxy that finds nobody": (
        page(502),
        OutageReason.HTTP_ERROR,
        "answers 502 Bad Gateway: it, or a proxy",
    ),
    "somebody else's page": (
        page(200),
        OutageReason.MALFORMED,
        "answers with text/html, not JSON: is it the base",
    ),
    "JSON of somebody else": (Answer(b'{"a": 1}'), OutageReason.MALFORMED, "is not an answer of Prometheus"),
    "half an answer": (
        Answer(b'{"status":"success","da'),
        OutageReason.MALFORMED,
        "is not an answer of Prometheus",
    ),
    "a value that is none": (
        Answer(b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":7}]}}'),
        OutageReason.MALFORMED,
        "is not an answer of Prometheus: Expected `array | null`, got `int` - at `$[0].value`",
    ),
    "a range vector": (
        Answer(b'{"status":"success","data":{"resultType":"matrix","result":[]}}'),
        OutageReason.QUERY_FAILED,
        "returns a range vector, not an instant vector or a scalar",
    ),
    "too much": (Answer(b" " * 10_001), OutageReason.MALFORMED, "sends more than 10,000 bytes"),
    "nothing": (Answer(b""), OutageReason.MALFORMED, "answers with application/json, not JSON"),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_bad_answer_is_an_outage_that_names_the_server_and_the_remedy(name: str) -> None:
    answer, reason, message = BAD_ANSWERS[name]
    with fake_prometheus(answer) as server:
        found = outage(server.url)
    assert found.reason is reason
    assert message in found.message
    assert found.message.startswith(f"{server.url} ")


@pytest.mark.parametrize("answer", [Answer(b"", hang=True), Answer(b" " * 500, drip=True)])
def test_a_server_that_hangs_or_sends_byte_by_byte_costs_no_more_than_the_time_out(answer: Answer) -> None:
    with fake_prometheus(answer) as server:
        began = time.monotonic()
        found = outage(server.url, seconds=0.3)
        assert time.monotonic() - began < 20
    assert found == Outage(
        OutageReason.QUERY_TIMEOUT,
        f"{server.url} did not answer within 0.3 s: it is overloaded, or was asked for too much",
    )


def test_nobody_at_the_address_is_told_in_plain_words() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert outage(url) == Outage(
        OutageReason.CONNECTION_FAILED,
        f"{url} cannot be reached: Connection refused; check prometheusUrl, and network policies",
    )


def test_a_url_that_is_none_is_told_in_plain_words() -> None:
    assert (
        outage("http://").message
        == "http: cannot be reached: Invalid URL 'http:/api/v1/query': No host supplied; check prometheusUrl, and "
        "network policies"
    )


def test_nothing_is_tried_twice() -> None:
    with fake_prometheus(page(503)) as server:
        outage(server.url)
        assert len(server.parameters) == 1


def test_the_query_goes_into_the_body_with_the_time_in_which_it_must_be_answered() -> None:
    with fake_prometheus(vector([])) as server:
        client = PrometheusClient(PrometheusOptions(url=f"{server.url}/path/"), timeout_seconds=2.5)
        client.ask("up" * 5000, SERIES, at=NOW, limit=7)
        client.close()
    sent = server.parameters[0]
    assert sent == {
        "path": "/path/api/v1/query",
        "query": "up" * 5000,
        "timeout": "2.5s",
        "time": repr(NOW),
        "limit": "7",
    }


def test_a_token_is_read_anew_for_each_request(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with fake_prometheus(vector([])) as server:
        options = PrometheusOptions(url=server.url, bearer_token_file=token)
        client = PrometheusClient(options, timeout_seconds=60)
        for text in ("first\n", "second"):
            token.write_text(text)
            client.ask("up", SERIES)
        client.close()
    assert [sent["Authorization"] for sent in server.headers] == ["Bearer first", "Bearer second"]


def test_a_token_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with fake_prometheus(vector([])) as server:
        found = outage(server.url, bearer_token_file=tmp_path / "none")
    assert found.reason is OutageReason.CREDENTIALS_UNREADABLE
    assert f"cannot read {tmp_path / 'none'} to sign in to Prometheus: No such file" in found.message
    assert server.parameters == []


def test_a_user_signs_in_with_the_password_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    with fake_prometheus(vector([])) as server:
        ask(server.url, username="me", password_file=tmp_path / "password")
    assert server.headers[0]["Authorization"] == "Basic bWU6c2VjcmV0"


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e+06", 1e6), ("+Inf", float("inf")), ("-0", 0.0), ("garbage", None), ("NaN", None)],
)
def test_a_value_is_a_number_or_nothing(text: str, number: float | None) -> None:
    sample = VectorDecoder(AnyLabels).decode(vector([({}, text)]).body).samples[0]
    assert (sample.number == number) if number is not None else (sample.number != sample.number)


def test_a_histogram_among_the_samples_is_no_number() -> None:
    body = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{}]}]}}'
    number = VectorDecoder(Labels).decode(body).samples[0].number
    assert number != number


def read(text: bytes) -> AnyLabels:
    """Read labels as a new object each time."""
    return msgspec.json.decode(text, type=AnyLabels)


UP = {"__name__": "up", "pod": "a-driver-1"}
GONE = {"__name__": "up", "pod": "gone-driver-1"}


def test_labels_of_a_series_that_comes_again_are_read_once() -> None:
    decoder = SeriesDecoder(read)
    first = decoder.decode(vector([(UP, 1.0), (GONE, 2.0)]).body).samples
    second = decoder.decode(vector([(GONE, 3.0), (UP, "NaN")]).body).samples
    assert [(one.metric, one.value and one.value[1]) for one in second] == [(GONE, "3.0"), (UP, "NaN")]
    assert (second[0].metric, second[1].metric) == (first[1].metric, first[0].metric)
    assert second[0].metric is first[1].metric
    assert decoder.remembered == 2


def test_a_series_that_comes_no_more_is_forgotten() -> None:
    now = 0.0
    decoder = SeriesDecoder(read, clock=lambda: now)
    decoder.decode(vector([(UP, 1.0), (GONE, 1.0)]).body)
    remembered = []
    for now in (1.0, FORGOTTEN_SECONDS, FORGOTTEN_SECONDS * 2, FORGOTTEN_SECONDS * 3):  # noqa: B007  the clock
        decoder.decode(vector([(UP, 1.0)]).body)
        remembered.append(decoder.remembered)
    assert remembered == [2, 2, 1, 1]


def test_series_that_are_others_each_time_are_not_all_remembered() -> None:
    decoder = SeriesDecoder(read)
    for scrape in range(20):
        decoder.decode(vector([({"pod": f"{scrape} {number}"}, 1.0) for number in range(SPARE)]).body)
    assert decoder.remembered <= 4 * SPARE


def test_of_an_answer_that_is_too_large_the_driver_with_most_is_found_whatever_its_labels_have() -> None:
    alice = [({"namespace": "alice", "pod": f"a-driver-{n}", "x": "y" * 50}, 1.0) for n in range(80)]
    named = '"namespace":"alice","pod":"a-driver-1"'
    mallory = ({"namespace": "mallory", "pod": "m-driver-1", "a": named, "x": named * 50}, 1.0)
    with fake_prometheus(vector([*alice, mallory, *alice])) as server, pytest.raises(TooMuch) as failure:
        ask(server.url)
    assert failure.value.namespace == "mallory"


def test_labels_that_are_none_are_no_answer_whoever_reads_them() -> None:
    body = (
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod":1},"value":[1,"1"]}]}}'
    )
    with pytest.raises(QueryFailure) as failure:
        SeriesDecoder(read).decode(body)
    assert failure.value.outage.reason is OutageReason.MALFORMED


def test_queries_are_told_with_the_reason_of_those_that_failed() -> None:
    told: list[tuple[float, str | None]] = []
    with fake_prometheus(vector([])) as server:
        options = PrometheusOptions(url=server.url)
        client = PrometheusClient(options, timeout_seconds=60, queried=lambda *said: told.append(said))
        client.ask("up", SERIES)
        server.answer = lambda _: page(500)
        with pytest.raises(QueryFailure):
            client.ask("up", SERIES)
        client.close()
    assert [reason for _, reason in told] == [None, "HttpError"]
    assert all(seconds >= 0 for seconds, _ in told)


def test_a_certificate_that_lacks_what_python_3_13_wants_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_python_3_13() -> ssl.SSLContext:
        context = create_urllib3_context()
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(prometheus_client, "create_urllib3_context", of_python_3_13)
    authority = Authority.create(tmp_path / "ours")
    with fake_prometheus(vector([]), authority.server("prometheus", ["IP:127.0.0.1"])) as server:
        ask(server.url, ca_file=authority.own.certificate)


def test_a_server_is_trusted_by_the_given_certificates_alone(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "ours")
    certificate = authority.server("prometheus", ["IP:127.0.0.1"])
    with fake_prometheus(vector([]), certificate) as server:
        ask(server.url, ca_file=authority.own.certificate)
        found = outage(server.url)
        assert found.reason is OutageReason.CONNECTION_FAILED
        assert "certificate verify failed" in found.message
        missing = outage(server.url, ca_file=tmp_path / "none.crt")
        assert str(tmp_path / "none.crt") in missing.message
