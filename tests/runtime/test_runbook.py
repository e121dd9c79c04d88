"""What the runbook quotes of logs is what they say, and whatever a log warns of is on a page."""

import re

import pytest

from support.log_sentences import FILES, JAVA, ROOT, UnknownSentenceError, of_python, text_of, warned

HEADINGS = ("## What the driver's log says of a source\n", "## What else the logs say\n")


def quoted() -> list[str]:
    runbook = text_of(ROOT / "docs/runbook.md")
    sections = [runbook.partition(heading)[2].partition("\n## ")[0] for heading in HEADINGS]
    lines = [line for section in sections for line in section.splitlines()]
    rows = [line.split("|")[1] for line in lines if line.startswith("| `")]
    return [sentence for row in rows for sentence in re.findall("`([^`]+)`", row)]


@pytest.fixture(scope="module")
def said() -> str:
    """Return the sources, with sentences that go over several lines put together."""
    return re.sub(r'"\n\s+"', "", "".join(map(text_of, (*FILES, *JAVA))))


@pytest.mark.parametrize("sentence", quoted())
def test_what_the_runbook_quotes_is_what_the_log_says(said, sentence):
    assert sentence in said


def test_what_a_log_warns_of_is_in_the_runbook():
    """One test: to find the sentences takes seconds, which would be those of every worker that collects."""
    quotes = quoted()
    sentences = warned()
    unquoted = [parts for parts in sentences if not any(quote in part for quote in quotes for part in parts)]
    assert sentences
    assert unquoted == []


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ('log.error("it is over")', ("it is over",)),
        ('log.warning(f"{name} is gone for good")', (" is gone for good",)),
        ('log.warning("%s is gone for good" % name)', ("", " is gone for good")),
        ('(log.exception if first else log.debug)("it is over")', ("it is over",)),
        ('SAID = "it is over"\nlog.warning(SAID)', ("it is over",)),
        ('def f():\n    a, said = 1, f"{x} is gone for good"\n    log.warning(said)', (" is gone for good",)),
        (
            'class C:\n    def f(self):\n        self.said = "it is over"\n        log.warning(self.said)',
            ("it is over",),
        ),
    ],
)
def test_a_sentence_is_found_however_it_is_made_up(tmp_path, code, parts):
    file = tmp_path / "code.py"
    file.write_text(code, encoding="utf-8")
    assert list(of_python(file)) == [parts]


@pytest.mark.parametrize(
    "code", ["log.warning(said)", 'log.warning(f"{what}: {why}")', "log.error(problem.text)"]
)
def test_what_has_no_words_that_a_page_could_quote_is_refused(tmp_path, code):
    file = tmp_path / "code.py"
    file.write_text(code, encoding="utf-8")
    with pytest.raises(UnknownSentenceError, match="of which no words can be looked for"):
        list(of_python(file))
