"""What a driver said last: the one line of its log that a person should read, wherever the log is.

A pod hands on the end of its log when it fails, and so does a file on this machine; both are read alike, so that an
application says the same of itself in a cluster and here.
"""

import re
from collections.abc import Iterator, Sequence

from headgate_contract.exit_codes import ERROR
from headgate_contract.foreign import scrubbed

LONGEST_NOTE = 500

_FAILURE = re.compile(r"(Error|Exception)\b")


def last_words(text: str) -> str | None:
    """Return what the launcher says of the end, else the last line that names an error, else the last line.

    What looks like a secret is left out. `None`: there is none.
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    told = "; ".join(dict.fromkeys(_of_the_launcher(lines)))
    errors = [line for line in lines if _FAILURE.search(line)]
    said = told or next((line.strip() for line in (errors or lines)[-1:]), None)
    return None if said is None else scrubbed(said)[:LONGEST_NOTE]


def _of_the_launcher(lines: Sequence[str]) -> Iterator[str]:
    """Yield each sentence of the launcher's, with the indented lines that go on with it."""
    sentence: list[str] = []
    for line in lines:
        if sentence and line.startswith("  "):
            sentence.append(line.strip())
            continue
        if sentence:
            yield " ".join(sentence)
        sentence = [line.removeprefix(ERROR)] if line.startswith(ERROR) else []
    if sentence:
        yield " ".join(sentence)
