"""What a question to the planner costs: from the JVM to its process and back.

One query reads four topics, each a source of its own, while records arrive in all of them, and each batch is planned
with questions about each source. All of them count, whatever their answer was: what the planner is told of the batch
before, whether to look, and how far to read. The agent times each inside the JVM, from the call to its return, so
putting it into a frame and reading the answer are part of it. A question that failed counts with the time until the
next one. A bare round trip between two processes that compute nothing is measured meanwhile, for `details`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from benchmarks.door import watch
from benchmarks.door.bare import in_details, round_trips
from benchmarks.door.scenario import JOBS, Bench, Scenario
from benchmarks.door.starting import by_door, questions_of
from benchmarks.door.watch import FAILED, PLANNING, Question
from benchmarks.kafka.scenario import properties
from benchmarks.kafka.scenarios.planning import arriving
from benchmarks.local.drivers import START_SECONDS
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import percentile
from headgate_contract import ControlDocument, QueryControl

SOURCES = 4
WARM_UP = 500
"""Questions that are not counted: until then the JVM interprets them."""
QUESTIONS = 2000
SECONDS = 900.0


def measure(bench: Bench) -> dict[str, Measured]:
    """Run the query until it has asked often enough."""
    place = bench.place("question")
    document = ControlDocument(generation=1, queries={"union": QueryControl(interval_seconds=0.1)})
    with bench.passing_topics("question", SOURCES, 1) as topics:
        arguments = [f"--bootstrap={bench.broker.bootstrap}", f"--checkpoint={place.checkpoint}"]
        arguments += [f"--topics={','.join(topics)}"]
        script, conf = str((JOBS / "union.py").resolve()), properties(place.directory / "events")
        with (
            arriving(bench, topics, 1),
            by_door(place, script, arguments, conf, document, agent=bench.agent()) as child,
            round_trips() as bare,
        ):
            asked = child.wait_for(
                f"{WARM_UP + QUESTIONS} questions",
                lambda: enough(watch.read(questions_of(place))),
                START_SECONDS + SECONDS,
                every=2.0,
            )
    found = of_questions(asked[WARM_UP:], bare)
    for name, measured in found.items():
        bench.tell(f"{name}: {measured.runs[0] * 1000:.3f} ms")
    return found


def enough(questions: Sequence[Question]) -> Sequence[Question] | None:
    """Return those of plannings, once they are as many as are wanted."""
    asked = [question for question in questions if question.verb in PLANNING]
    return asked if len(asked) >= WARM_UP + QUESTIONS else None


def of_questions(questions: Sequence[Question], bare: Sequence[float]) -> dict[str, Measured]:
    """Return both figures, with each verb by itself in `details`, and what a bare round trip took meanwhile."""
    seconds = [question.seconds for question in questions]
    verbs = Counter(question.verb for question in questions)
    details = in_details(bare) | {
        "questions": len(questions),
        "failed": sum(question.answer == FAILED for question in questions),
        "longest_seconds": max(seconds),
        "by_verb": {
            verb: {
                "questions": count,
                "p50_seconds": percentile([q.seconds for q in questions if q.verb == verb], 50),
                "p99_seconds": percentile([q.seconds for q in questions if q.verb == verb], 99),
            }
            for verb, count in verbs.items()
        },
    }
    return {f"question_p{p}_seconds": Measured([percentile(seconds, p)], details) for p in (50, 99)}


SCENARIO = Scenario(
    "question",
    (
        Figure("question_p50_seconds", "s", Goal("<=", 0.0005)),
        Figure("question_p99_seconds", "s", Goal("<=", 0.005)),
    ),
    measure,
    repeats=3,
)
