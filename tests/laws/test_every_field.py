"""Each field of the resource, set to what it may be and to what it may not, and back (as Acto tries operators).

An edit leads to where a fresh application with the same spec comes to, whatever was declared before; one that nobody
can act on leaves alone what runs, and says why. Here it is one value of each field, in `make chaos` all of them.
"""

from __future__ import annotations

from zlib import crc32

import pytest

from support.every_field import Field, fields, unreached
from support.examples import examples
from support.transitions import LawError, Rested, check, fresh, walk, whole, with_value

FIELDS = fields()
TRIED = FIELDS[:: max(1, 100 // examples(100) // 2)]
"""All of them in `make test`, and one of five in `make test-quick`."""


def one_of(of: Field) -> str:
    kinds = sorted(of.values())
    return kinds[crc32(str(of).encode()) % len(kinds)]


def test_every_field_of_the_definition_is_walked() -> None:
    assert unreached() == []
    assert len(FIELDS) > 200


@pytest.mark.parametrize("of", TRIED, ids=str)
def test_an_edit_leads_to_where_a_fresh_application_comes_to(of: Field) -> None:
    assert walk(of, [one_of(of)]) == 2


GRACE = next(of for of in FIELDS if str(of) == "spec.stop.gracePeriod")


def test_without_a_grace_period_a_driver_is_replaced_at_once() -> None:
    """The step asked to be looked at again at the very moment at which it found nothing to do, without an end."""
    walk(GRACE, ["least"], is_behind=True)


SIZES = [of for of in FIELDS if "checkpoint" in of.path or "instances" in of.path]


@pytest.mark.parametrize("of", SIZES, ids=str)
def test_the_same_in_a_backlog(of: Field) -> None:
    walk(of, [one_of(of)], is_behind=True)


def test_an_application_that_is_elsewhere_is_told_from_one_that_has_arrived() -> None:
    """The law itself: each of its parts can fail."""
    resource = whole()
    changed = with_value(resource, ("spec", "executor", "cores"), 4)
    refused = with_value(resource, ("spec", "executor", "cores"), 0)
    there, elsewhere = fresh(resource), fresh(changed)
    check(resource, there, there, there)
    for found, ideal, wanted in ((there, elsewhere, changed), (elsewhere, there, resource)):
        with pytest.raises(LawError, match="is not that of a fresh application"):
            check(wanted, there, found, ideal)
    with pytest.raises(LawError, match="rules forbid"):
        check(refused, there, there, there)
    with pytest.raises(LawError, match="not told of"):
        check(resource, there, there, fresh(refused))
    with pytest.raises(LawError, match="ends or starts"):
        check(refused, there, ended(fresh(refused)), fresh(refused))


def ended(rested: Rested) -> Rested:
    return Rested(status=rested.status, pods=(), documents=(), uids=())
