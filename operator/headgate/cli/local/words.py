"""What messages say on one machine: a person has pressed Ctrl-C, types the command again, and has one process."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headgate.decision.words import Words

ON_ONE_MACHINE: Final = Words(
    try_again="run headgate local again to try again", comes_back="", memory_setting="driver.memory"
)
STOPPED_HERE: Final = replace(
    ON_ONE_MACHINE,
    stopping="stopping at the end of the running batch",
    stopped="stopped; headgate local goes on from here",
)
"""Once a stop was asked for here."""
