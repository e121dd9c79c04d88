"""What a name that nobody knows was perhaps to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the nearest of some names; `None` where none is near."""
    return next(iter(difflib.get_close_matches(str(name), list(known), n=1, cutoff=cutoff)), None)


def did_you_mean(name: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the end of a sentence that asks for the nearest of some names; empty where none is near."""
    close = nearest(name, known, cutoff)
    return "" if close is None else f"; did you mean {close}?"
