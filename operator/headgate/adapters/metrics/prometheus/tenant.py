"""An expression of a user, kept to the series of its namespace, as prom-label-proxy does it.

Each selector gets the matcher of the namespace beside those that it has, so what reaches another namespace selects
nothing. The expression is parsed and written anew. `promql-parser` takes escapes in quotes for others than Prometheus
does, writes none, and compiles each regular expression, which takes memory; thousands of brackets in one another end
the process. So words in quotes are set aside meanwhile, and brackets are counted before. It has other faults still:
what was written is parsed again, and is not asked unless it is the same expression, with the matcher in each
selector.
"""

import re
from typing import Final

import promql_parser

from headgate.adapters.metrics.prometheus.answer import QueryFailure
from headgate.reconcile.ports import OutageReason

MOST_PARTS: Final = 50
"""Brackets and operators: parsing takes time by the cube of how deep they are in one another."""

_ASIDE = re.compile(r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)|#[^\r\n]*""")
_QUOTE = re.compile("[\"'`]")
_PARTS = re.compile(r"[-+*/%^(\[<>]|==|!=|\b(?:and|or|unless|atan2)\b", re.IGNORECASE)
_ALTERNATIVES = "a selector has alternatives (or): write a selector for each"
_INFO = "info() reads series that it does not name: join them with group_left"
_UNENDED = "a quoted string does not end"
_NOT_THE_SAME = (
    "it cannot be written anew: give each subquery a step, as [1h:1m], and durations in whole seconds"
)


def bound(expression: str, label: str, namespace: str) -> str:
    """Return `expression` with the matcher `label="namespace"` in each selector.

    Raises QueryFailure where it cannot be kept to that.
    """
    mark = "q_"
    while mark in f"{expression} {label} {namespace}":
        mark += "_"
    quoted: list[str] = []

    def aside(found: re.Match[str]) -> str:
        if found[1] is None:
            return " "
        quoted.append(found[1])
        return f'"{mark}{len(quoted) - 1}"'

    def back(text: str) -> str:
        return re.sub(f'"?{mark}([0-9]+)"?', lambda found: quoted[int(found[1])], text)

    try:
        if _QUOTE.search(_ASIDE.sub("", expression)):
            raise ValueError(_UNENDED)  # noqa: TRY301  all that is refused is told below
        return back(_bound(_ASIDE.sub(aside, expression), label, namespace))
    except BaseException as problem:  # a panic of the parser is no Exception
        message = f"it cannot be kept to the series of its namespace (prometheusNamespaceLabel): {back(str(problem))}"
        raise QueryFailure(OutageReason.QUERY_FAILED, message) from problem


def _bound(expression: str, label: str, namespace: str) -> str:
    """Return an expression with the matcher in each selector; raises ValueError. What is in quotes is a mark."""
    if len(_PARTS.findall(expression)) > MOST_PARTS:
        raise ValueError(
            f"it has more than {MOST_PARTS} brackets and operators: let a recording rule do part of it"
        )
    parsed = promql_parser.parse(expression)
    promql_parser.walk(parsed, _refuse)
    # It writes braces for selectors alone, and for each.
    text = str(parsed).replace("{", f'{{{label}="{namespace}",').replace(",}", "}")
    added = f'Matcher{{op:Equal,name:"{label}",value:"{namespace}",}},'
    written = _tree(promql_parser.parse(text))
    is_bound = written.count(f"matchers:[{added}") == written.count("VectorSelector{")
    if not is_bound or written.replace(added, "") != _tree(parsed):
        raise ValueError(_NOT_THE_SAME)
    return text


def _refuse(part: promql_parser.Expr) -> None:
    if isinstance(part, promql_parser.Call) and part.func.name == "info":
        raise ValueError(_INFO)
    if isinstance(part, promql_parser.VectorSelector) and part.matchers.or_matchers:
        raise ValueError(_ALTERNATIVES)


def _tree(parsed: promql_parser.Expr) -> str:
    """Return all that is known of an expression, without spaces."""
    return "".join(repr(parsed).split())
