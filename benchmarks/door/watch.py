"""The agent that times questions inside the JVM, and what it has noted."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyspark

from benchmarks.kafka.timed_run import Planning

SOURCE = Path("benchmarks/door/agent/Watch.java")
AGENT = "dev.headgate.bench.Watch"
PLANNING = frozenset({"admit", "plan"})
"""What is asked at each trigger; all else is asked once in the life of a query."""
FAILED = "failed"
READS = frozenset({"offset", "rows", "files", "bytes", "all"})
"""Answers with which Spark reads."""


@dataclass(frozen=True)
class Question:
    """One question to the planner."""

    at: float
    """When it ended, in seconds since 1970."""
    thread: str
    """Of the JVM, and so the query."""
    verb: str
    about: str
    """The handle of a stream, or the id of a run."""
    trigger: int | None
    seconds: float
    """From the call in the JVM to its return."""
    answer: str
    """The first word of it."""


def agent(folder: Path) -> Path:
    """Compile the agent; returns its jar. Raises CalledProcessError with what the compiler has said."""
    classes, jar = folder / "classes", folder / "watch.jar"
    shutil.rmtree(folder, ignore_errors=True)
    classes.mkdir(parents=True)
    asm = Path(pyspark.__file__).parent / "jars" / "*"
    (folder / "manifest").write_text(f"Premain-Class: {AGENT}\n")
    for command in (
        ["javac", "-cp", str(asm), "-d", str(classes), str(SOURCE)],
        ["jar", "--create", f"--file={jar}", f"--manifest={folder / 'manifest'}", "-C", str(classes), "."],
    ):
        subprocess.run(command, check=True, timeout=120)
    return jar.resolve()


def read(file: Path) -> list[Question]:
    """Return what was noted so far."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    return [parsed(line) for line in lines]


def parsed(line: str) -> Question:
    """Return a question as the agent has written it."""
    at, thread, verb, about, trigger, nanos, answer = line.split("\t")
    number = int(trigger) if trigger and verb in PLANNING else None
    return Question(int(at) / 1e3, thread, verb, about, number, int(nanos) / 1e9, answer)


def plannings(questions: Sequence[Question]) -> Iterator[Planning]:
    """Yield the triggers that led to a batch, of each query in their order: all questions of each together.

    The first of them tells of the batch before, and is the planning's first call. A question that failed is part of
    the planning too.
    """
    by_thread = sorted((q for q in questions if q.verb in PLANNING), key=lambda question: question.thread)
    for _, asked in groupby(by_thread, key=lambda question: (question.thread, question.trigger)):
        trigger = list(asked)
        if any(question.answer in READS for question in trigger):
            seconds = [question.seconds for question in trigger]
            yield Planning(trigger[-1].at, sum(seconds), seconds[0])
