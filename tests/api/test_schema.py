"""What an API server fills in by a schema that is newer than ours, taken away again."""

from __future__ import annotations

from headgate.api.schema import Schema, without_filled_in

TEXT: Schema = {"type": "string"}
LATER: Schema = {"type": "string", "default": "1Gi"}


def an_object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields}


def a_map(of: Schema) -> Schema:
    return {"type": "object", "additionalProperties": of}


def test_what_is_filled_in_below_any_name_is_taken_away_where_nobody_has_set_it() -> None:
    ours, theirs = a_map(an_object(size=TEXT)), a_map(an_object(size=TEXT, later=LATER))
    given = {"a": {"size": "1", "later": "1Gi"}, "b": {"later": "2Gi"}}

    assert without_filled_in(given, ours, theirs) == {"a": {"size": "1"}, "b": {"later": "2Gi"}}


def test_a_name_that_ours_takes_as_any_other_stays_where_the_newer_one_has_it_with_a_default() -> None:
    given = {"later": "1Gi"}

    assert without_filled_in(given, a_map(TEXT), an_object(later=LATER)) == given
    assert without_filled_in(given, an_object(size=TEXT), an_object(later=LATER)) == {}
