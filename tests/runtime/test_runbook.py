"""What the runbook quotes of logs is what they say, and whatever a log warns of is on a page."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADINGS = ("## What the driver's log says of a source\n", "## What else the logs say\n")
FILES = [
    file
    for package in ("spark_jobs/headgate_spark", "operator/headgate")
    for file in sorted((ROOT / package).rglob("*.py"))
]
JAVA = sorted((ROOT / "spark_jobs/shim/src").rglob("*.java"))


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def quoted() -> list[str]:
    runbook = text_of(ROOT / "docs/runbook.md")
    sections = [runbook.partition(heading)[2].partition("\n## ")[0] for heading in HEADINGS]
    lines = [line for section in sections for line in section.splitlines()]
    rows = [line.split("|")[1] for line in lines if line.startswith("| `")]
    return [sentence for row in rows for sentence in re.findall("`([^`]+)`", row)]


def warned() -> list[str]:
    """Return what is logged as a warning or an error, where it is not made up of parts."""
    calls = (
        call
        for file in FILES
        for call in ast.walk(ast.parse(text_of(file)))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("log.warning", "log.error") and call.args
    )
    of_python = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
    of_java = re.findall(r'LOG\.(?:warn|error)\(\s*"([^"]{3,})"', "".join(map(text_of, JAVA)))
    return sorted(of_python | set(of_java))


@pytest.fixture(scope="module")
def said() -> str:
    """Return the sources, with sentences that go over several lines put together."""
    return re.sub(r'"\n\s+"', "", "".join(map(text_of, (*FILES, *JAVA))))


@pytest.mark.parametrize("sentence", quoted())
def test_what_the_runbook_quotes_is_what_the_log_says(said, sentence):
    assert sentence in said


@pytest.mark.parametrize("sentence", warned())
def test_what_a_log_warns_of_is_in_the_runbook(sentence):
    assert any(quote in sentence for quote in quoted())
