"""Expressions of users that are kept to the series of their namespace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headgate.adapters.metrics.prometheus import expressions
from headgate.adapters.metrics.prometheus.answer import QueryFailure
from headgate.adapters.metrics.prometheus.client import PrometheusOptions
from headgate.adapters.metrics.prometheus.expressions import LONGEST, Expressions
from headgate.adapters.metrics.prometheus.tenant import MOST_PARTS, bound
from headgate.factory.cluster import prometheus_options
from headgate.reconcile.ports import OutageReason
from headgate.settings import Settings
from support.fake_prometheus import FakePrometheus, fake_prometheus, vector
from support.prometheus import Exposed, Prometheus

PATIENCE = 240.0
OURS = 'namespace="ours"'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("lag", f"lag{{{OURS}}}"),
        ("sum by (topic) (rate(lag[5m])) > 3", f"sum by (topic)(rate(lag{{{OURS}}}[5m])) > 3"),
        ('{__name__=~".+"}', f'{{{OURS},__name__=~".+"}}'),
        ('lag{namespace="theirs"}', f'lag{{{OURS},namespace="theirs"}}'),
        ('lag{namespace!="ours"}', f'lag{{{OURS},namespace!="ours"}}'),
        ('lag{"namespace"=~".*"}', f'lag{{{OURS},"namespace"=~".*"}}'),
        ('{"my.lag", "a.b"="c"}', f'{{{OURS},__name__="my.lag","a.b"="c"}}'),
        ('sum by ("a.b") (lag)', f'sum by ("a.b")(lag{{{OURS}}})'),
        (
            "max_over_time(lag[5m:1m] @ start() offset 1h)",
            f"max_over_time(lag{{{OURS}}}[5m:1m] @ start() offset 1h)",
        ),
        (
            "lag @ 1609746000 and lag offset -5m",
            f"lag{{{OURS}}} @ 1609746000.000 and  lag{{{OURS}}} offset -5m",
        ),
        ("absent(lag)", f"absent(lag{{{OURS}}})"),
        ("topk(scalar(a), b)", f"topk(scalar(a{{{OURS}}}), b{{{OURS}}})"),
        ("a * on(x) group_left(y) b", f"a{{{OURS}}} * on (x) group_left (y) b{{{OURS}}}"),
        (
            r'label_replace(lag, "namespace", "$1\n", "x", "(.*)")',
            rf'label_replace(lag{{{OURS}}}, "namespace", "$1\n", "x", "(.*)")',
        ),
        (r'lag{topic=~"a\\.b|\"[\u00e9"}', rf'lag{{{OURS},topic=~"a\\.b|\"[\u00e9"}}'),
        ("lag{a=`\\`, b='\"}'} # } or {", f"lag{{{OURS},a=`\\`,b='\"}}'}}"),
        ("q_0{a='q_'}", f"q_0{{{OURS},a='q_'}}"),
        ("1", "1"),
    ],
)
def test_each_selector_gets_the_matcher(expression: str, expected: str) -> None:
    assert bound(expression, "namespace", "ours") == expected


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ('vector(1) or "}"', "(prometheusNamespaceLabel)"),
        ('a{b="c" or namespace="theirs"}', "a selector has alternatives"),
        ("info(lag)", "info() reads series that it does not name"),
        ('sum(info(lag, {x=~".+"}))', "info() reads series that it does not name"),
        ("max_over_time(lag[5m:])", "give each subquery a step"),
        ("lag[1m1ms]", "it cannot be written anew"),
        ("lag{", "unexpected end of input inside braces"),
        ('lag{a="\\"} or b{c=""}', "a quoted string does not end"),
        ('lag{a="b\n"}', "a quoted string does not end"),
        ("count_of_a_newer_version(lag)", "unknown function with name 'count_of_a_newer_version'"),
        ("", "no expression found"),
        ("-" * (LONGEST - 1) + "a", f"it has more than {MOST_PARTS} brackets and operators"),
        ("(" * (MOST_PARTS + 1) + "a" + ")" * (MOST_PARTS + 1), "let a recording rule do part of it"),
        (" unless ".join(["a"] * (MOST_PARTS + 2)), "let a recording rule do part of it"),
    ],
)
def test_what_cannot_be_kept_to_the_namespace_is_refused_in_words(expression: str, why: str) -> None:
    with pytest.raises(QueryFailure) as failure:
        bound(expression, "namespace", "ours")
    outage = failure.value.outage
    assert outage.reason is OutageReason.QUERY_FAILED
    assert outage.message.startswith(
        "it cannot be kept to the series of its namespace (prometheusNamespaceLabel): "
    )
    assert why in outage.message


@pytest.mark.parametrize("namespace", ['x"} or lag{a="b', "x\\", "x\n", 'x",a=~"', "q_0", "x}", "x{"])
def test_a_namespace_that_is_none_lets_nothing_out(namespace: str) -> None:
    try:
        text = bound('lag{a="b"} + rate(lag[5m])', "namespace", namespace)
    except QueryFailure:
        return
    assert matchers(text) == [[("namespace", namespace), ("a", "b")], [("namespace", namespace)]]


def matchers(expression: str) -> list[list[tuple[str, str]]]:
    """Return what each selector asks for by `=`."""
    found: list[list[tuple[str, str]]] = []

    def look(part: promql_parser.Expr) -> None:
        if isinstance(part, promql_parser.VectorSelector):
            assert not part.matchers.or_matchers
            equal = [one for one in part.matchers.matchers if str(one) == f'{one.name}="{one.value}"']
            found.append([(one.name, one.value) for one in equal])

    promql_parser.walk(promql_parser.parse(expression), look)
    return found


NAMES = st.sampled_from(["lag", "a:b", "sum", "namespace", "q_0", "by"])
WORDS = st.text(st.sampled_from("ab.*|{}[]()#\\\"'`,= é\n"), max_size=5)
QUOTED = WORDS.map(
    lambda text: '"' + text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'
)
# The library, which the test reads with, takes a backslash in these for an escape; Prometheus does not.
RAW = WORDS.map(lambda text: "`" + text.replace("`", "").replace("\\", "") + "`")
MATCHERS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["a", "namespace", '"namespace"', '"a.b"']),
    st.sampled_from(["=", "!="]),
    QUOTED | RAW,
)
SELECTORS = st.builds(
    lambda name, ones: f"{name}{{{','.join(ones)}}}", NAMES, st.lists(MATCHERS, max_size=3)
) | st.builds('{{{},__name__!="x"}}'.format, st.sampled_from(['"my.lag"', '__name__=~".+"']))


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "and", "unless on(a)", "> bool"]), inner)
        | st.builds("absent({})".format, inner)
        | st.builds("max_over_time(({})[5m:1m] offset 1m)".format, inner)
        | st.builds("topk by (a) (scalar({}), {})".format, inner, inner)
        | st.builds("label_replace({}, 'namespace', {}, 'a', {})".format, inner, QUOTED, RAW)
        | st.builds("{} # {}\n".format, inner, WORDS.map(lambda text: text.replace("\n", "")))
    )


@given(st.recursive(SELECTORS | st.builds("rate({}[5m])".format, SELECTORS), larger, max_leaves=6))
def test_whatever_is_written_each_selector_is_of_the_namespace(expression: str) -> None:
    found = matchers(bound(expression, "namespace", "ours"))
    assert found
    assert all(("namespace", "ours") in one for one in found)


PIECES = st.sampled_from(
    [*"{}()[],\"'`#\\\n", "lag", " or ", "=", "=~", "+", "a", "[5m]", "q_0", OURS, '{a="b"}', "sum", "info("]
)


@given(st.lists(PIECES, max_size=25).map("".join))
def test_whatever_is_no_expression_is_refused_in_words(expression: str) -> None:
    try:
        text = bound(expression, "namespace", "ours")
    except QueryFailure:
        return
    assert all(("namespace", "ours") in one for one in matchers(text))


@contextmanager
def asked(url: str, *wanted: str, namespaces: Sequence[str], label: str) -> Iterator[Expressions]:
    """Expressions that each of these namespaces has had asked."""
    made = Expressions(PrometheusOptions(url=url, expressions_per_tick=100, namespace_label=label))
    try:
        made.ask(dict.fromkeys(namespaces, wanted), 100.0)
        made.take(PATIENCE)
        yield made
    finally:
        made.close()


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    with fake_prometheus(vector([({}, 1.0)])) as made:
        yield made


def test_each_namespace_has_its_own_answer(server: FakePrometheus) -> None:
    server.answer = lambda query: vector([({}, 1.0 if "ours" in query["query"] else 2.0)])
    with asked(server.url, "lag", namespaces=("ours", "theirs"), label="namespace") as made:
        assert [made.answer(name, "lag").value for name in ("ours", "theirs")] == [1.0, 2.0]


def test_the_operator_binds_by_the_label_that_it_is_set() -> None:
    label = {"prometheus_namespace_label": "namespace"}
    options = prometheus_options(Settings(prometheus_url="http://prometheus:9090", **label))
    assert options is not None
    assert options.namespace_label == "namespace"
    with pytest.raises(ValidationError):
        Settings(prometheus_namespace_label='a="b",c')


def test_an_expression_is_bound_once_for_each_namespace(
    server: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, ...]] = []
    monkeypatch.setattr(expressions, "bound", lambda *what: told.append(what) or bound(*what))
    with asked(server.url, "lag", namespaces=("ours", "theirs"), label="namespace") as made:
        made.ask({"ours": ["lag"], "theirs": ["lag"]}, 105.0)
        made.take(PATIENCE)
    assert len(server.parameters) == 4
    assert sorted(told) == [("lag", "namespace", "ours"), ("lag", "namespace", "theirs")]


def test_what_cannot_be_kept_to_its_namespace_is_not_asked(server: FakePrometheus) -> None:
    with asked(server.url, "info(lag)", namespaces=("ours",), label="namespace") as made:
        failure = made.answer("ours", "info(lag)").failure
    assert server.parameters == []
    assert failure is not None
    assert failure.reason is OutageReason.QUERY_FAILED
    assert "join them with group_left" in failure.message


REACHING = (
    "secret",
    '{__name__=~".+"} == 7',
    'secret{namespace="theirs"}',
    '{"secret", "namespace"=~".*s"}',
    "max_over_time(secret[1h:1s])",
    "sum_over_time(secret[1h])",
    'label_replace(secret, "namespace", "ours", "", "")',
    'count({namespace="theirs"})',
    "topk(scalar(secret) > bool 0, vector(1))",
)


@pytest.mark.programs
def test_no_expression_sees_the_series_of_another_namespace(running: tuple[Prometheus, Exposed]) -> None:
    server, target = running
    target.text = 'lag{namespace="ours"} 3\nlag{namespace="theirs"} 5\nsecret{namespace="theirs"} 7\n'
    for one in REACHING:
        server.wait_for(one)
    wanted = (*REACHING, "lag == 3", "lag == 5", "absent(secret)")

    def values(namespace: str, label: str) -> dict[str, float | None]:
        with asked(server.url, *wanted, namespaces=("ours", "theirs"), label=label) as made:
            return {one: made.answer(namespace, one).value for one in wanted}

    anybody, ours, theirs = values("ours", ""), values("ours", "namespace"), values("theirs", "namespace")
    for one in REACHING:
        assert anybody[one], one
        assert theirs[one], one
        assert ours[one] == 0, one
    assert [found["absent(secret)"] for found in (anybody, theirs, ours)] == [0, 0, 1]
    assert [(found["lag == 3"], found["lag == 5"]) for found in (ours, theirs)] == [(3, 0), (0, 5)]
