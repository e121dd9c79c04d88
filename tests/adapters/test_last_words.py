"""What is told of a driver that has failed, from the end of its log: in a pod and on this machine."""

from __future__ import annotations

import pytest

from headgate.adapters.last_words import LONGEST_NOTE, last_words

TRACEBACK = (
    'Traceback (most recent call last):\n  File "job.py", line 3\nStreamingQueryException: [STREAM_FAILED] x'
)
CAUSE = "query reader: source orders: topic orders does not exist at broker:9092; create it"
ROWS = (
    ("nothing", "\n \n", None),
    ("the last line", "one\n\n  two  \n", "two"),
    ("the last error", "ValueError: no topic\n26/03/01 INFO bye\n", "ValueError: no topic"),
    ("the launcher, before any exception",
     f"{TRACEBACK}\nheadgate-run: error: {CAUSE}\n26/03/01 WARN SomeException while stopping\n", CAUSE),
    ("each sentence of the launcher's once",
     f"headgate-run: error: {CAUSE}\nheadgate-run: error: another\nheadgate-run: error: {CAUSE}\n",
     f"{CAUSE}; another"),
    ("a sentence of the launcher's to its end",
     "headgate-run: error: the job uses Kafka; add\n  --conf spark.jars.packages=x\nor, elsewhere, files\n",
     "the job uses Kafka; add --conf spark.jars.packages=x"),
    ("no secret of it", "ValueError: no jdbc:x://db/y?password=canary&user=u\n",
     "ValueError: no jdbc:x://db/y?password=(hidden)&user=u"),
    ("no secret of the launcher's either", "headgate-run: error: no https://canary@sentry.io/1\n",
     "no https://(hidden)@sentry.io/1"),
    ("as much as a status can show", "x" * 9000, "x" * LONGEST_NOTE),
)  # fmt: skip


@pytest.mark.parametrize(("text", "told"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_last_words_of_a_driver_are(text: str, told: str | None) -> None:
    assert last_words(text) == told
