"""`headgate replay`: recorded observations in, verdicts out, and every slip in a recording named."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.api.load import load_application
from headgate.cli.recording import RecordingError
from headgate.cli.replay import verdicts
from headgate.decision.policy import SourcePolicy
from headgate.reconcile.policy import query_policies

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "replay"
FLIGHTS = ROOT / "examples" / "flights.yaml"
FLIGHTS_POLICIES = query_policies(load_application(FLIGHTS))

DOCUMENTED_LINE = (
    '{"t": 12.5, "query": "delays", "attempt": 1, "sources": {"flights": {"watermarkLag": 301.0, '
    '"pendingRecords": 1000000, "phase": false, "idle": false, "query": null}}, '
    '"throughput": 50000.0, "arrivalRate": 20000.0}'
)
DOCUMENTED_VERDICT = (
    '{"t": 12.5, "query": "delays", "backlog": true, "reason": "WatermarkLag", "intervalSeconds": 120.0, '
    '"etaSeconds": 33.3, "voters": {"flights": {"WatermarkLag": true, "PendingRecords": false, "Phase": false}}}'
)


def replay(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        "from headgate.cli.main import main; main()",
        "replay",
        *map(str, arguments),
    ]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=240, check=False)


def judge(*lines: str | bytes | dict[str, Any]) -> list[dict[str, Any]]:
    """Replay lines over the documented example."""
    return list(verdicts([_raw(line) for line in lines], "obs.jsonl", FLIGHTS_POLICIES))


def _raw(line: str | bytes | dict[str, Any]) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def line(**members: Any) -> dict[str, Any]:
    return {"t": 1.0, "query": "delays", "attempt": 1, **members}


def flights(**members: Any) -> dict[str, Any]:
    return line(sources={"flights": members})


def test_the_documented_line_gives_the_documented_verdict_to_the_letter() -> None:
    done = replay("--app", FLIGHTS, "--observations", "-", stdin=DOCUMENTED_LINE + "\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, DOCUMENTED_VERDICT + "\n", "")


@pytest.mark.parametrize("case", sorted(DATA.iterdir()), ids=lambda case: case.name)
def test_recordings_give_the_verdicts_beside_them(case: Path) -> None:
    policies = query_policies(load_application(case / "app.yaml"))
    with (case / "observations.jsonl").open("rb") as recording:
        printed = [json.dumps(verdict) for verdict in verdicts(recording, "observations.jsonl", policies)]

    assert printed == (case / "expected.jsonl").read_text().splitlines()


def test_what_came_before_a_bad_line_has_been_printed(tmp_path: Path) -> None:
    recording = tmp_path / "obs.jsonl"
    recording.write_text(f"{DOCUMENTED_LINE}\n\n" + DOCUMENTED_LINE.replace("1000000", "-1") + "\n")

    done = replay("--app", FLIGHTS, "--observations", recording)

    assert (done.returncode, done.stdout) == (2, DOCUMENTED_VERDICT + "\n")
    assert "line 3: sources.flights.pendingRecords: must be at least 0, not -1" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_recording_is_named(tmp_path: Path) -> None:
    done = replay("--app", FLIGHTS, "--observations", tmp_path / "none.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "none.jsonl: No such file or directory" in done.stderr


@pytest.mark.parametrize("recorded", ["", "\n  \n"], ids=["empty", "blank"])
def test_a_recording_without_an_observation_is_named(tmp_path: Path, recorded: str) -> None:
    recording = tmp_path / "obs.jsonl"
    recording.write_text(recorded)
    done = replay("--app", FLIGHTS, "--observations", recording)
    assert (done.returncode, done.stdout) == (2, "")
    assert "obs.jsonl: there is no observation in it; record one JSON object a line" in done.stderr


def test_a_missing_resource_is_named(tmp_path: Path) -> None:
    done = replay("--app", tmp_path / "none.yaml", "--observations", "-")
    assert done.returncode == 2
    assert "none.yaml: No such file or directory" in done.stderr


def test_a_refused_resource_ends_with_its_findings(tmp_path: Path) -> None:
    app = tmp_path / "app.yaml"
    app.write_text(FLIGHTS.read_text().replace("intervalDuringBacklog: 2m", "intervalDuringBacklog: 2"))

    done = replay("--app", app, "--observations", "-", stdin=DOCUMENTED_LINE)

    assert (done.returncode, done.stdout) == (2, "")
    assert "spec.queries[delays].checkpoint.intervalDuringBacklog" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--app", "--observations"])
def test_both_files_are_asked_for(option: str) -> None:
    done = replay(option, FLIGHTS)
    assert done.returncode == 2


SLIPS: tuple[tuple[str, str | bytes | dict[str, Any], str], ...] = (
    ("no JSON", "{t: 1}", "is not JSON: Expecting property name"),
    ("cut off", '{"t": 1, "query":', "is not JSON: Expecting value"),
    ("cut off, with the end of its line", '{"t": 1\r\n', "is not JSON: Expecting ',' delimiter at column 8"),
    ("two objects", "{} {}", "is not JSON: Extra data"),
    ("no text", b"\xff\xfe", "is not UTF-8 text"),
    ("not a number", '{"t": NaN, "query": "delays"}', "t: must be a finite number, not NaN"),
    ("infinity", '{"t": 1, "query": "delays", "throughput": Infinity}', "throughput: must be a finite number, not "),
    ("a member twice", '{"t": 1, "t": 2, "query": "delays"}', "t stands twice in one object"),
    ("nested without end", "[" * 100_000, "is nested too deeply"),
    ("more digits than can be read", '{"t": ' + "9" * 5000 + "}", "holds a number of more digits than can be read"),
    ("a list", "[]", "must be an object, not []"),
    ("a number", "1", "must be an object, not 1"),
    ("t missing", {"query": "delays"}, "t: is missing"),
    ("t null", line(t=None), "t: is missing"),
    ("t in quotes", line(t="1"), 't: must be a number, not "1"'),
    ("t true", line(t=True), "t: must be a number, not true"),
    ("t too large", '{"t": 1e999, "query": "delays"}', "t: must be a finite number, not "),
    ("t too large and whole", '{"t": ' + "9" * 400 + ', "query": "delays"}', "t: must be a finite number, not "),
    ("query missing", {"t": 1}, "query: is missing"),
    ("query of another alphabet", line(query="später"), 'query: "später" is not known; the queries of '),
    ("query a number", line(query=1), "query: must be a string, not 1"),
    ("query unknown", line(query="delay"), 'query: "delay" is not known; the queries of the resource are delays; '),
    ("attempt a fraction", line(attempt=1.5), "attempt: must be a whole number, not 1.5"),
    ("attempt true", line(attempt=True), "attempt: must be a whole number, not true"),
    ("attempt negative", line(attempt=-1), "attempt: must be at least 0, not -1"),
    ("unknown field", line(throughPut=1), 'throughPut: "throughPut" is not known; fields are t, query, attempt, '),
    ("throughput negative", line(throughput=-1), "throughput: must be at least 0, not -1"),
    ("arrival rate negative", line(arrivalRate=-0.5), "arrivalRate: must be at least 0, not -0.5"),
    ("arrival rate in quotes", line(arrivalRate="fast"), 'arrivalRate: must be a number, not "fast"'),
    ("sources a list", line(sources=[]), "sources: must be an object, not []"),
    ("a source a number", line(sources={"flights": 1}), "sources.flights: must be an object, not 1"),
    ("unknown source", line(sources={"flihgts": {}}), 'sources.flihgts: "flihgts" is not known; the sources of '),
    ("unknown field of a source", flights(watermarklag=1), "sources.flights.watermarklag: "),
    ("lag in quotes", flights(watermarkLag="301"), 'sources.flights.watermarkLag: must be a number, not "301"'),
    ("lag false", flights(watermarkLag=False), "sources.flights.watermarkLag: must be a number, not false"),
    ("pending negative", flights(pendingRecords=-1), "sources.flights.pendingRecords: must be at least 0, not -1"),
    ("pending a list", flights(pendingRecords=[1]), "sources.flights.pendingRecords: must be a number, not [1]"),
    ("phase a number", flights(phase=1), "sources.flights.phase: must be true or false, not 1"),
    ("idle in quotes", flights(idle="no"), 'sources.flights.idle: must be true or false, not "no"'),
    ("query sample true", flights(query=True), "sources.flights.query: must be a number, not true"),
)  # fmt: skip


@pytest.mark.parametrize(("slip", "message"), [row[1:] for row in SLIPS], ids=[row[0] for row in SLIPS])
def test_a_slip_is_named_with_its_line_and_field(slip: str | bytes | dict[str, Any], message: str) -> None:
    with pytest.raises(RecordingError) as refused:
        judge(DOCUMENTED_LINE, " ", slip)
    assert str(refused.value).startswith(f"obs.jsonl: line 3: {message}")


MEANT = (
    (line(query="delay"), "did you mean delays?"),
    (line(throughPut=1), "did you mean throughput?"),
    (line(sources={"flihgts": {}}), "are flights, weather; did you mean flights?"),
    (flights(watermarklag=1), "did you mean watermarkLag?"),
)


@pytest.mark.parametrize(("slip", "meant"), MEANT, ids=["query", "field", "source", "field of a source"])
def test_a_misspelt_name_is_answered_with_the_likely_one(slip: dict[str, Any], meant: str) -> None:
    with pytest.raises(RecordingError) as refused:
        judge(slip)
    assert str(refused.value).endswith(meant)


def test_time_must_not_go_backwards_within_a_query() -> None:
    with pytest.raises(RecordingError, match=r"line 2: t: 1\.5 is before 2 on line 1; sort the lines"):
        judge(line(t=2), line(t=1.5))


def test_two_lines_may_have_one_time() -> None:
    assert len(judge(line(t=2), line(t=2))) == 2


def test_queries_keep_their_own_time_and_memory() -> None:
    policies = query_policies(load_application(DATA / "two-queries" / "app.yaml"))
    recording = [_raw(line(query="orders", t=9)), _raw(line(query="payments", t=1))]
    assert [verdict["t"] for verdict in verdicts(recording, "-", policies)] == [9.0, 1.0]


def test_a_resource_without_queries_says_so() -> None:
    with pytest.raises(RecordingError, match='"delays" is not known; the queries of the resource are none'):
        list(verdicts([_raw(line())], "-", {}))


UNKNOWN_FORMS = (
    {},
    {"sources": {}},
    {"sources": None},
    {"sources": {"flights": None}},
    {"sources": {"flights": {}}},
)


@pytest.mark.parametrize("members", UNKNOWN_FORMS, ids=str)
def test_null_and_missing_are_unknown(members: dict[str, Any]) -> None:
    (verdict,) = judge(line(**members))
    assert (verdict["backlog"], verdict["etaSeconds"]) == (False, None)
    assert set(verdict["voters"]["flights"].values()) == {None}


def test_a_source_with_thresholds_is_reported_though_the_line_leaves_it_out() -> None:
    (verdict,) = judge(line(sources={"weather": {"phase": True}}))
    assert verdict["voters"] == {
        "flights": {"WatermarkLag": None, "PendingRecords": None, "Phase": None},
        "weather": {"Phase": True},
    }


def test_a_source_without_thresholds_counts_in_the_lines_that_mention_it() -> None:
    both = line(sources={"flights": {"pendingRecords": 10}, "weather": {"pendingRecords": 0}})
    one = line(sources={"flights": {"pendingRecords": 10}}, throughput=2, arrivalRate=1)

    before, with_it, after = judge(one, both, one)

    assert (list(before["voters"]), before["etaSeconds"]) == (["flights"], 10.0)
    assert list(with_it["voters"]) == ["flights", "weather"]
    assert after == before


def test_where_a_line_tells_of_no_source_nothing_is_known_to_be_caught_up() -> None:
    policies = query_policies(load_application(DATA / "two-queries" / "app.yaml"))
    bare = {
        name: replace(policy, sources=tuple(SourcePolicy(name=s.name) for s in policy.sources))
        for name, policy in policies.items()
    }
    lines = [_raw(line(query="orders")), _raw(line(query="orders", throughput=10, arrivalRate=1))]
    assert [verdict["etaSeconds"] for verdict in verdicts(lines, "-", bare)] == [None, None]


def test_a_phase_is_held_though_the_next_line_leaves_its_source_out() -> None:
    begun = {"sources": {"flights": {"watermarkLag": 1}, "weather": {"phase": True}}}
    silent = {"t": 2, "sources": {"flights": {"watermarkLag": 1}}}
    over = {"t": 3, "sources": {"weather": {"phase": False}}}

    _, held, ended, after = judge(line(**begun), line(**silent), line(**over), line(**silent | {"t": 4}))

    assert (held["backlog"], held["reason"], held["voters"]["weather"]) == (True, "Unknown", {"Phase": None})
    assert (ended["backlog"], list(after["voters"])) == (False, ["flights"])


def test_another_attempt_holds_no_phase_of_the_one_before() -> None:
    begun = line(sources={"flights": {"watermarkLag": 1}, "weather": {"phase": True}})

    _, fresh = judge(begun, line(t=2, attempt=2, sources={"flights": {"watermarkLag": 1}}))

    assert (fresh["backlog"], list(fresh["voters"])) == (False, ["flights"])


def test_a_line_without_attempt_is_of_the_attempt_before_it() -> None:
    lagging = {"sources": {"flights": {"watermarkLag": 301}}}
    unknown = {"t": 2, "query": "delays"}

    same, other = (
        judge(line(attempt=2, **lagging), unknown)[1],
        judge(line(attempt=2, **lagging), line(t=2))[1],
    )

    assert (same["backlog"], same["reason"]) == (True, "Unknown")
    assert (other["backlog"], other["reason"]) == (False, None)


def test_sources_may_be_said_to_be_finished_paused_or_held() -> None:
    for member, vote in (("finished", False), ("paused", None), ("heldByAlignment", None)):
        (verdict,) = judge(flights(watermarkLag=999, **{member: True}))
        assert verdict["voters"]["flights"]["WatermarkLag"] is vote


def test_a_byte_order_mark_is_no_slip() -> None:
    assert judge(b"\xef\xbb\xbf" + DOCUMENTED_LINE.encode())[0]["backlog"]


def test_lines_may_end_as_windows_ends_them() -> None:
    assert judge(DOCUMENTED_LINE + "\r\n")[0]["backlog"]
