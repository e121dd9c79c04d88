"""What is to be thought of each reason for which a source is held: the table, reason by reason."""

import pytest

from headgate_contract.held import HeldBy, holds_back

QUESTIONS = (
    "closes_the_gate",
    "needs_an_answer",
    "passes_by_itself",
    "lasts",
    "is_deliberate",
    "keeps_from_reading",
    "is_normal_pace",
)
TABLE = {
    HeldBy.INTERVAL: {"closes_the_gate", "is_normal_pace"},
    HeldBy.MIN_PAUSE: {"closes_the_gate", "is_normal_pace"},
    HeldBy.STOP: {"is_deliberate", "keeps_from_reading"},
    HeldBy.CONTROL: {"keeps_from_reading"},
    HeldBy.PAUSED: {"is_deliberate", "keeps_from_reading", "lasts"},
    HeldBy.AFTER: {"is_deliberate", "keeps_from_reading", "lasts"},
    HeldBy.RATE_LIMIT: {"passes_by_itself"},
    HeldBy.ALIGNMENT: {"passes_by_itself", "keeps_from_reading"},
    HeldBy.EVENT_TIME: {"needs_an_answer", "passes_by_itself", "keeps_from_reading"},
    HeldBy.FIRST_LOOK: {"is_normal_pace"},
    HeldBy.NOTHING_PENDING: {"lasts", "is_normal_pace"},
    HeldBy.GRANT: {"is_normal_pace"},
    HeldBy.SNAPSHOT: {"needs_an_answer", "passes_by_itself"},
    HeldBy.UNKNOWN: {"needs_an_answer", "passes_by_itself"},
}


@pytest.mark.parametrize("reason", HeldBy)
def test_each_reason_has_its_answers(reason):
    assert {question for question in QUESTIONS if getattr(reason, question)} == TABLE[reason]


def test_what_is_reported_holds_back_unless_it_is_the_normal_pace_and_so_does_what_is_not_known():
    assert not holds_back("Interval")
    assert holds_back("RateLimit")
    assert holds_back("OfANewerDriver")
