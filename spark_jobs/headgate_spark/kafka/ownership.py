"""Whose the positions of a consumer group are.

Kafka keeps a text with each committed offset. Ours says who has written it, so that positions of somebody else are
known as such also while that consumer is stopped and the broker would let them be overwritten: it would skip or
repeat records at its next start.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

PREFIX = "headgate "
SHOWN = 3
"""Partitions that a message names."""


def mark_of(publisher: str) -> str:
    """Return the text of the offsets that `publisher` writes: an application, with its namespace if it has one."""
    return PREFIX + publisher


def problem_of(
    group: str, marks: Mapping[tuple[str, int], str], partitions: Collection[tuple[str, int]], mark: str
) -> str | None:
    """Return why `partitions` may not be written to a group with these marks, with the remedy; `None`: they may.

    Other partitions may be any Headgate's: sources share a group.
    """
    remedy = (
        "set publishGroup to a name of its own; or, if nobody needs these positions, delete them "
        f"(kafka-consumer-groups.sh --delete --group {group})"
    )
    strange = sorted(partition for partition, found in marks.items() if not found.startswith(PREFIX))
    if strange:
        told = ", ".join(f"{topic}/{number}" for topic, number in strange[:SHOWN])
        more = f" and {len(strange) - SHOWN} more" if len(strange) > SHOWN else ""
        return (
            f"group {group} has positions that Headgate has not written ({told}{more}): those of a consumer that may "
            f"only be stopped just now; {remedy}"
        )
    others = sorted({marks[partition] for partition in partitions if marks.get(partition, mark) != mark})
    if others:
        names = ", ".join(other.removeprefix(PREFIX) for other in others)
        return f"group {group} has positions of the same partitions that {names} publishes; {remedy}"
    return None
