"""The runbook quotes what the driver's log says: whoever looks for a line there must find it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADING = "## What the driver's log says of a source\n"


def quoted() -> list[str]:
    runbook = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
    section = runbook.partition(HEADING)[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [sentence for row in rows for sentence in re.findall("`([^`]+)`", row)]


@pytest.fixture(scope="module")
def said() -> str:
    """Return the sources of the runtime, with sentences that go over several lines put together."""
    files = (ROOT / "spark_jobs/headgate_spark").rglob("*.py")
    return re.sub(r'"\n\s+"', "", "".join(file.read_text(encoding="utf-8") for file in files))


@pytest.mark.parametrize("sentence", quoted())
def test_what_the_runbook_quotes_is_what_the_log_says(said, sentence):
    assert sentence in said
