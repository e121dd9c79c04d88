"""YAML as the API server reads it, with lines, and never a traceback."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.api.document import Document, Malformed, read_documents


def content(text: str) -> Any:
    (only,) = read_documents(text)
    assert isinstance(only, Document), only
    return only.content


def malformed(text: str) -> Malformed:
    *_, last = read_documents(text)
    assert isinstance(last, Malformed), last
    return last


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e6", 1_000_000),
        ("1.0", 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("-3", -3),
        ("0x10", 16),
        ("2013-01-01", "2013-01-01"),
        ("1:30", "1:30"),
        ("5s", "5s"),
        ("4.3.0", "4.3.0"),
        ("'64'", "64"),
        ("yes", True),
        ("08", 8),
        ("1_000", 1000),
    ],
)
def test_scalars_are_what_kubernetes_takes_them_for(text: str, expected: object) -> None:
    value = content(f"a: {text}")["a"]

    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{64: a, true: b, null: c, 1.5: d}", {"64": "a", "true": "b", "null": "c", "1.5": "d"}),
        ("a: !!binary gA==", {"a": "\ufffd"}),
    ],
)
def test_an_object_is_what_json_can_hold(text: str, expected: object) -> None:
    assert content(text) == expected


def test_a_byte_order_mark_may_stand_before_each_document() -> None:
    documents = read_documents("\ufeffa: 1\n---\n\ufeffb: 2\n")

    assert [each.content for each in documents if isinstance(each, Document)] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("a: 1\nb: [", "expected the node content", 2),
        ("a: 1\n b: 2", "mapping values are not allowed", 2),
        ("a: 1\nb:\n  c: 1\n  c: 2", "c stands twice", 4),
        ("a: 1\nb: &x [*x]", "an alias refers to itself", 2),
        ("a: !!python/object:os.system x", "could not determine a constructor", 1),
        ("a: 1\nb: \x07", "is not allowed in YAML", 2),
        ("a: " + "[" * 2000, "is nested too deeply", 1),
        ("- " * 2000 + "a", "is nested too deeply", 1),
        ("\n".join(" " * level + "a:" for level in range(2000)), "is nested too deeply", 200),
        ("[" * 200_000, "is nested too deeply", 1),
        ('{"a":' * 200_000, "is nested too deeply", 1),
        ("a: " + "1" * 5000, "a value is no int", 1),
        ("a: 1\nb: !!timestamp x", "a value is no timestamp", 2),
        ("? [1, 2]\n: 3", "found unhashable key", 1),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text: str, said: str, line: int | None) -> None:
    found = malformed(text)

    assert said in found.message
    assert found.line == line


def test_aliases_that_blow_up_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]

    assert "too large with its aliases" in malformed("\n".join(lines)).message


def test_documents_before_a_malformed_one_are_read() -> None:
    first, second = read_documents("a: 1\n---\nb: [\n")

    assert isinstance(first, Document)
    assert isinstance(second, Malformed)


def test_empty_documents_are_passed_over() -> None:
    assert list(read_documents("---\n---\n# nothing\n---\n")) == []


def test_merged_keys_are_values_like_any_other() -> None:
    assert content("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}")["y"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("location", "line"),
    [
        ((), 2),
        (("a",), 2),
        (("b",), 3),
        (("b", 1), 5),
        (("b", 1, "d"), 6),
        (("b", 1, "missing"), 5),
        (("c",), 2),
    ],
)
def test_a_value_is_found_on_its_line(location: tuple[str | int, ...], line: int) -> None:
    (document,) = read_documents("# comment\na: 1\nb:\n  - c: 2\n  - c: 3\n    d: 4\n")

    assert isinstance(document, Document)
    assert document.line_of(location) == line


def test_a_key_that_overrides_a_merged_one_is_found_on_its_own_line() -> None:
    (document,) = read_documents("x: &x\n  a: 1\ny:\n  <<: *x\n  a: 2\n")

    assert isinstance(document, Document)
    assert document.line_of(("y", "a")) == 5


@given(text=st.text(alphabet=st.sampled_from("ab:{}[]-&*!?|>'\"#%@`,\n \t0.e\x00é\ufeff"), max_size=60))
@example(text="<<: 1")
@example(text="a: {<<: [1]}")
@example(text="!!int x")
@example(text="!!timestamp x")
@example(text="!!binary x")
def test_no_text_is_answered_with_a_traceback(text: str) -> None:
    for found in read_documents(text):
        assert isinstance(found, Document | Malformed)
