"""What a document may ask of a query that the query, as its job is written, cannot do.

Such a query would run, and stand still for ever, keep all of its state, or read what it is to be kept from, without a
word. So it fails at its first planning, with what is to be changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import islice

from headgate_contract import QueryControl
from headgate_contract.receiving import Taken
from headgate_spark import __version__
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.unheeded import Unheeded

ENDLESS = frozenset({"rate", "rate-micro-batch"})
"""Sources that make rows for as long as they are asked. Nothing has ever been read of them to its end."""

_LISTED = 5  # members that are not known


def refused_afters(
    control: QueryControl | None, sources: Mapping[str, Descriptor], watermarks_below_union: int
) -> dict[str, Unheeded]:
    """Return the sources whose `after` cannot be kept, each with why and the remedy.

    `sources` are those of the job by name; `watermarks_below_union` is how many watermarks of its plan stand below a
    union.
    """
    afters = _afters(control)
    if not afters:
        return {}
    formats = {name: described.format for name, described in sources.items()}
    endless = {
        name: Unheeded(
            f"source {name} comes after {history}, which never ends (its format is {formats[history]}); let it come "
            "after a source that ends, or drop `after`",
            protects=True,
        )
        for name, history in sorted(afters.items())
        if formats.get(history) in ENDLESS
    }
    if endless or watermarks_below_union < 2:
        return endless
    # A source that waits behind a history has not moved its own watermark yet. Below a union Spark takes the
    # smallest, so the held branch would keep all state of the history until the switch.
    return dict.fromkeys(
        sorted(afters),
        Unheeded(
            f"{', '.join(sorted(afters))} waits behind a history (`after`), but each branch of the union has a "
            "watermark of its own, so nothing would leave the state until the switch; call withWatermark once, after "
            "the union",
            protects=True,
        ),
    )


def unknown_histories(query: str, control: QueryControl | None, problem: str | None) -> str | None:
    """Return why nothing can be planned where what is kept of histories cannot be read; `None`: no source waits.

    `problem` says why, and what to do; `None`: it can be read.
    """
    waiting = ", ".join(sorted(_afters(control)))
    if problem is None or not waiting:
        return None
    return f"query {query}: source {waiting}: it is not known whether its history has been read, because {problem}"


def damaged(damage: str) -> str:
    """Return what to do about a file that is damaged; `damage` names it.

    Without it the one before it counts, and without any it is as if `after` had just been declared: what has been
    read is in Spark's own checkpoint.
    """
    return f"{damage}; put it back from a copy, or delete it: nothing is lost then, or read twice"


def unknown_ends(
    query: str, control: QueryControl | None, sources: Collection[str], *, is_read: bool
) -> str | None:
    """Return why a run that ends by itself cannot be aligned where its checkpoint does not say where `sources` are.

    Spark asks the second of them only when the first has its answer, which would wait for the second's event times:
    without end. `is_read`: the checkpoint could be read, and has a form that is not known. `None`: no two of them are
    in one group.
    """
    listed = {} if control is None else control.sources
    groups = Counter(s.alignment.group for name, s in listed.items() if name in sources and s.alignment)
    shared = [group for group, members in groups.items() if members > 1]
    if not shared:
        return None
    why, remedy = "its checkpoint could not be read", "see that the job may read there and run it again"
    if is_read:
        why = "the offset log of its checkpoint has a form that this version of Headgate does not know"
        remedy = "update Headgate"
    return (
        f"query {query}: {why}, so a run that ends by itself cannot be aligned (group {', '.join(sorted(shared))}); "
        f"{remedy}, run it with a processing-time trigger, or take its sources out of the group"
    )


def unread_control(why: str) -> str:
    """Say that nothing is planned while the document cannot be read that may limit it, and the remedy."""
    return (
        f"nothing is read: the control document may limit it, and cannot be acted by ({why}); put one there that can "
        "be, or delete it, and the job runs as it says itself"
    )


def unknown_members(taken: Taken) -> str | None:
    """Say which members of a document do nothing, and the remedy; `None`: all are known.

    Whoever writes a newer form means what it says. In one of ours it is mostly a slip.
    """
    found = list(islice(taken.unknown, _LISTED + 1))
    if not found:
        return None
    named, remedy = [str(member) for member in found], "correct their names"
    if taken.is_newer:  # and no name of ours is like one of theirs by a slip
        named = [member.path for member in found]
        remedy = "give the job the newer Headgate that wrote it, by jar or image, or take them out"
    if len(named) > _LISTED:
        named[_LISTED:] = ["and more"]
    return (
        "the control document has members that are not known to this driver's Headgate "
        f"({__version__}), and do nothing; {remedy}: {'; '.join(named)}"
    )


def unplanned(query: str, argument: str) -> str:
    """Say that a query cannot be governed at all, and the remedy; `argument` is the one that its `trigger` has.

    It runs all the same: nothing of it is lost, and its siblings are governed.
    """
    return (
        f"query {query} uses trigger({argument}=…), where Spark plans no batches, so nothing of it is governed; use "
        "trigger(processingTime=…), or remove it from the resource"
    )


def _afters(control: QueryControl | None) -> dict[str, str]:
    """Return the sources that wait, each with its history."""
    return {} if control is None else {name: s.after for name, s in control.sources.items() if s.after}
