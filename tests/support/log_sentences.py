"""What the product logs as a warning or an error, read from its sources: sentences, and those made up of parts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from support.parsing import parsed

ROOT = Path(__file__).parents[2]
FILES = [
    file
    for package in ("spark_jobs/headgate_spark", "spark_jobs/headgate_contract", "operator/headgate")
    for file in sorted((ROOT / package).rglob("*.py"))
]
JAVA = sorted((ROOT / "spark_jobs/shim/src").rglob("*.java"))
LOGS = {f"log.{level}" for level in ("warning", "error", "critical", "exception")}
MADE_BY = {
    "f'{what} cannot be {done}: {lost}'": "engine/side_folder.py:Kept",
    "remark.text": "planner/reporting.py:Remark",
    "complaint": "reconcile/memory.py:complain",
    "warning": "handlers/definition.py:warnings",
    "obstacle": "handlers/rights.py:obstacle",
}
"""Whence a call is given ready-made sentences: from a function, an Enum, or whoever calls something with them."""

Parts = tuple[str, ...]
"""The fixed parts of a sentence, in order; between them stands what is put in."""


class UnknownSentenceError(AssertionError):
    """Nobody can say what is logged there."""


def warned() -> Sequence[Parts]:
    """Return what is logged as a warning or an error, by whichever language. Raises `UnknownSentenceError`."""
    return sorted({*(parts for file in FILES for parts in of_python(file)), *_of_java()})


def of_python(file: Path) -> Iterator[Parts]:
    """Yield what one file logs as a warning or an error. Raises `UnknownSentenceError`."""
    for call in nodes(file):
        if isinstance(call, ast.Call) and LOGS & set(_called(call.func)) and call.args:
            yield from _sentences(file, call)


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@cache
def tree(file: Path) -> ast.Module:
    return parsed(text_of(file))


@cache
def nodes(file: Path) -> Sequence[ast.AST]:
    return list(ast.walk(tree(file)))


@cache
def functions(file: Path) -> Sequence[ast.FunctionDef]:
    return [node for node in nodes(file) if isinstance(node, ast.FunctionDef)]


def _called(func: ast.expr) -> Iterator[str]:
    """Yield what may be called: one of two, where it is `(log.exception if … else log.debug)(…)`."""
    if isinstance(func, ast.IfExp):
        yield from (*_called(func.body), *_called(func.orelse))
    else:
        yield ast.unparse(func)


def _sentences(file: Path, call: ast.Call) -> list[Parts]:
    said = ast.unparse(call.args[0])
    found = list(_made_by(MADE_BY[said]) if said in MADE_BY else _texts(file, call.args[0], call.lineno))
    is_plain = isinstance(call.args[0], ast.Constant)
    if not found or not (is_plain or all(any(len(part.split()) > 2 for part in parts) for parts in found)):
        raise UnknownSentenceError(
            f"{file.name}:{call.lineno} logs {said}, of which no words can be looked for; say in MADE_BY where they "
            "come from"
        )
    return found


def _made_by(place: str) -> Iterator[Parts]:
    """Yield what a function returns, the first of each member of an Enum, or what somebody is called with."""
    name, _, symbol = place.partition(":")
    (file,) = (one for one in FILES if str(one).endswith(name))
    for node in nodes(file):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == symbol:
            given = [each.value for each in ast.walk(node) if isinstance(each, ast.Return | ast.Yield)]
            yield from (parts for value in given if value for parts in _texts(file, value, node.end_lineno))
        elif isinstance(node, ast.ClassDef) and node.name == symbol:
            members = [each.value for each in node.body if isinstance(each, ast.Assign)]
            yield from ((ast.literal_eval(member)[0],) for member in members)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == symbol:
            yield from _texts(file, node.args[0], node.lineno)


def _texts(file: Path, value: ast.expr, line: int | None) -> Iterator[Parts]:
    """Yield what an expression at a line of a file may be; nothing for what cannot be told, or is no text."""
    match value:
        case ast.Constant(str(text)) if text:
            yield (text,)
        case ast.JoinedStr(values):
            yield tuple(part.value for part in values if isinstance(part, ast.Constant))
        case ast.BinOp(left, ast.Mod()):
            yield from (tuple(re.split(r"%[a-z]", "".join(parts))) for parts in _texts(file, left, line))
        case ast.IfExp(_, body, otherwise):
            yield from (*_texts(file, body, line), *_texts(file, otherwise, line))
        case ast.Name() | ast.Attribute():
            for given in _assigned(file, ast.unparse(value), line):
                yield from _texts(file, given, None)
        case ast.Call(ast.Name(function)):
            for other in FILES:
                for node in functions(other):
                    if node.name == function:
                        returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
                        yield from (parts for one in returned if one for parts in _texts(other, one, None))


def _assigned(file: Path, name: str, line: int | None) -> Iterator[ast.expr]:
    """Yield what a name is given: in the function that a line is in, in the module, or as a member anywhere."""
    around = [node for node in functions(file) if line and node.lineno <= line <= (node.end_lineno or 0)]
    within = around or ([tree(file)] if "." in name else [])
    beneath = [each for scope in within for each in ast.walk(scope)] or tree(file).body
    found = [
        (target, value)
        for node in beneath
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for target, value in _pairs(target, node.value)
    ]
    given = [value for target, value in found if ast.unparse(target) == name]
    yield from given or (_assigned(file, name, None) if around else ())


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _of_java() -> Iterator[Parts]:
    for file in JAVA:
        text = re.sub(r'"\s*\n?\s*\+\s*"', "", text_of(file))
        for said in re.findall(r'LOG\.(?:warn|error)\(\s*("[^"]*"(?:, \w+)?|\w+)', text):
            yield _java_parts(file, text, said)


def _java_parts(file: Path, text: str, said: str) -> Parts:
    if match := re.fullmatch(r'"([^"]{3,})".*', said):
        return tuple(match[1].split("{}"))
    name = said.rpartition(", ")[2]
    given: Mapping[str, str] = dict(re.findall(r'\b(\w+) = (?:String\.format\()?"([^"]+)"', text))
    if name not in given:
        raise UnknownSentenceError(f"{file.name} logs {said}, and {name} is no text in it")
    return tuple(re.split(r"\{\}|%s", given[name]))
