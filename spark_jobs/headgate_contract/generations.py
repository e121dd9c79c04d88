"""The order of control documents: which of two generations is the later one, and which follows.

Generations are serial numbers as RFC 1982 has them: behind the largest one comes 1 again, and of two the later one is
that which is reached sooner by counting up. So there is always a next one, also where somebody has written the
largest number there is into a document.
"""

from __future__ import annotations

from headgate_contract.codec import LARGEST_WHOLE

_ROUND = LARGEST_WHOLE + 1


def is_later(one: int, other: int) -> bool:
    """Return whether `one` comes after `other`; both are 0 to 2^53 - 1."""
    return 0 < (one - other) % _ROUND < _ROUND // 2


def latest(*generations: int) -> int:
    """Return the last of these, going through them in order."""
    found = generations[0]
    for generation in generations[1:]:
        found = generation if is_later(generation, found) else found
    return found


def following(generation: int) -> int:
    return generation + 1 if generation < LARGEST_WHOLE else 1
