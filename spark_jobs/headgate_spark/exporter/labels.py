"""Values of labels, none of which may hide a page: a job chooses names as it likes."""

from __future__ import annotations

import zlib
from itertools import accumulate

LONGEST_LABEL = 600
"""Bytes of a label's value on the page, where a quote, a backslash and the end of a line take two. A source is called
after all topics that it reads, clients of Spark Connect name their queries and a job names its application, but the
operator takes no page with a line of more than 4 KiB: four such labels fit."""


def fitting(label: str) -> str:
    """Return a label's value; of one that is too long the beginning, and what tells it from others that begin so."""
    if len(label) <= LONGEST_LABEL // 4:  # no letter takes more than four
        return label
    sizes = accumulate(len(letter.encode()) + (letter in '"\\\n') for letter in label[: LONGEST_LABEL + 1])
    fit = [size for size in sizes if size <= LONGEST_LABEL]
    if len(fit) == len(label):
        return label
    kept = sum(size <= LONGEST_LABEL - 12 for size in fit)
    return f"{label[:kept]}… {zlib.crc32(label.encode()):08x}"
