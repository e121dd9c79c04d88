"""`headgate validate`, `explain` and `crd`: what they print and how they exit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from headgate.api.crd import FILE_NAME, render_crd
from support.command_line import Headgate

ROOT = Path(__file__).parents[2]
FLIGHTS = ROOT / "examples" / "flights.yaml"
BROKEN = ROOT / "tests" / "data" / "resources" / "broken.yaml"


def test_a_shell_completes_a_command(headgate: Headgate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_HEADGATE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "headgate val")
    monkeypatch.setenv("COMP_CWORD", "1")

    assert headgate().out.split() == ["validate"]


def test_a_terminal_of_no_columns_is_of_unknown_width(
    headgate: Headgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "0")

    assert "Usage: headgate" in headgate("--help").out


def test_the_example_on_kafka_is_of_the_job_that_it_names() -> None:
    spec = yaml.safe_load((ROOT / "examples" / "kafka.yaml").read_text())["spec"]
    job = (ROOT / "examples" / "jobs" / Path(spec["main"]["file"]).name).read_text()
    (query,) = spec["queries"]
    (source,) = query["sources"]

    assert f'queryName("{query["name"]}")' in job
    assert f'"subscribe", "{source["name"]}"' in job
    brokers, out = spec["main"]["arguments"]
    assert "brokers, out = sys.argv[1:]" in job, (brokers, out)


def test_a_good_file_ends_with_0(headgate: Headgate) -> None:
    ended = headgate("validate", FLIGHTS)

    assert (ended.code, ended.out) == (0, f"{FLIGHTS}: good\n")


def test_a_refused_file_ends_with_1_and_names_everything(headgate: Headgate) -> None:
    ended = headgate("validate", FLIGHTS, BROKEN)

    expected = [
        line.replace("broken.yaml", str(BROKEN), 1)
        for line in BROKEN.with_suffix(".txt").read_text().splitlines()
    ]
    assert ended.code == 1
    assert f"{FLIGHTS}: good\n" in ended.out
    assert set(expected) <= set(ended.out.splitlines())
    assert ended.out.endswith(f"{BROKEN}: refused (15 errors)\n")


def test_warnings_do_not_refuse(headgate: Headgate) -> None:
    text = FLIGHTS.read_text().replace("gracePeriod: 2m", "gracePeriod: 1s")

    ended = headgate("validate", "-", stdin=text.encode())

    assert ended.code == 0
    assert "warning: spec.queries[delays].checkpoint: stop.gracePeriod is 1s" in ended.out
    assert ended.out.endswith("-: good (1 warning)\n")


def test_a_file_that_is_not_there_ends_with_2_after_the_others(headgate: Headgate) -> None:
    ended = headgate("validate", "none.yaml", BROKEN)

    assert ended.code == 2
    assert "error: none.yaml: No such file or directory; give the path of a resource file\n" in ended.err
    assert f"{BROKEN}: refused" in ended.out


def test_a_directory_ends_with_2(headgate: Headgate) -> None:
    ended = headgate("validate", ROOT / "examples")

    assert ended.code == 2
    assert "Is a directory" in ended.err


def test_no_file_ends_with_2(headgate: Headgate) -> None:
    assert headgate("validate").code == 2


def test_a_check_that_checked_nothing_is_no_success(headgate: Headgate) -> None:
    ended = headgate("validate", "-", stdin=b"{apiVersion: v1, kind: ConfigMap}")

    assert ended.code == 2
    assert "-:1: note: v1 ConfigMap skipped" in ended.out
    assert "error: no SparkApplication of headgate.dev/v1alpha1 in -; give a file that holds one" in ended.err


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"a: [",
        b"\x00",
        b"- - -",
        b"a: &a [*a]",
        b"!!python/none x",
        b"{apiVersion: headgate.dev/v1alpha1, kind: SparkApplication, spec: {sparkConf: {64: !!binary gA==}}}",
    ],
)
def test_no_input_ends_in_a_traceback(raw: bytes, headgate: Headgate) -> None:
    for command in ("validate", "explain"):
        ended = headgate(command, "-", stdin=raw)

        assert ended.code in (1, 2)
        assert ended.out or ended.err


def test_explain_says_setting_by_setting_what_will_happen(headgate: Headgate) -> None:
    ended = headgate("explain", FLIGHTS)

    assert ended.code == 0
    assert "\nquery delays\n  live       commits every 5s while it is live\n" in ended.out
    assert "  executors  8 executors while one is\n" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 100


def test_explain_says_of_a_refused_file_why(headgate: Headgate) -> None:
    ended = headgate("explain", BROKEN)

    assert ended.code == 1
    assert "spec.exekutor: unknown field; did you mean executor?" in ended.out


def edited(tmp_path: Path, *replaced: tuple[str, str], name: str = "new.yaml") -> Path:
    """The example with other words in it."""
    text = FLIGHTS.read_text()
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_difference_is_told_change_by_change_with_update_mode_and_effect(
    headgate: Headgate, tmp_path: Path
) -> None:
    new = edited(tmp_path, ("interval: 5s", "interval: 10s"), ("flights:1.4.2", "flights:1.4.3"))

    ended = headgate("explain", "--diff", FLIGHTS, new)

    assert ended.code == 0
    assert ended.out.splitlines() == [
        "application flights: 1 restart, 1 live",
        "  restart    spec.image: registry.example.com/flights:1.4.2 -> registry.example.com/flights:1.4.3 (the "
        "driver is stopped at the end of its batch and started anew)",
        "  live       spec.queries[delays].checkpoint.interval: 5s -> 10s (in force when the next batch is planned)",
    ]


def test_a_difference_is_written_as_json(headgate: Headgate, tmp_path: Path) -> None:
    new = edited(tmp_path, ("duringBacklog: Unlimited", "duringBacklog: {recordsPerSecond: 9}"))

    (told,) = json.loads(headgate("explain", "--diff", FLIGHTS, new, "--json").out)

    assert (told["application"], told["fate"]) == ("flights", "changed")
    assert told["changes"] == [
        {
            "path": "spec.queries[delays].sources[flights].rateLimit.duringBacklog",
            "before": "Unlimited",
            "after": {"recordsPerSecond": 9},
            "updateMode": "Live",
            "effect": "in force when the next batch is planned",
        }
    ]


def test_a_terminal_gets_a_table(headgate: Headgate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = edited(tmp_path, ("interval: 5s", "interval: 10s"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    ended = headgate("explain", "--diff", FLIGHTS, new)

    assert "update mode" in ended.out
    assert "───" in ended.out
    assert "spec.queries[delays]" in ended.out


@pytest.mark.parametrize("terminal", [True, False])
def test_a_resource_of_somebody_else_does_nothing_to_the_terminal_of_who_compares_it(
    headgate: Headgate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    new = edited(
        tmp_path,
        ("interval: 5s", "interval: 10s"),
        ('["--out",', '["\\e[2J\\e[H",'),
        ("image: registry.example.com/flights:1.4.2", 'image: "\\e[2J\\e[H"'),
    )
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)

    for arguments in (("explain", "--diff", FLIGHTS, new), ("explain", new), ("validate", new)):
        ended = headgate(*arguments)
        assert ended.code == 0, ended
        assert "\x1b[2J" not in ended.out + ended.err


def test_nor_does_one_that_is_refused(headgate: Headgate, tmp_path: Path) -> None:
    ended = headgate("validate", edited(tmp_path, ("driver: {", '"dri\\x9b2Jver": {')))

    assert ended.code == 1
    assert "unknown field" in ended.out
    assert "\x9b" not in ended.out + ended.err
    ended = headgate("validate", edited(tmp_path, ("driver: {", '"dri\\nx.yaml: good\\nver": {')))
    assert "x.yaml: good" not in ended.out.splitlines()


def test_the_same_resource_twice_changes_nothing(headgate: Headgate) -> None:
    assert headgate("explain", "--diff", FLIGHTS, FLIGHTS).out == "application flights: nothing changes\n"


def test_resources_of_files_with_several_are_compared_by_name(headgate: Headgate, tmp_path: Path) -> None:
    one, two = FLIGHTS.read_text(), FLIGHTS.read_text().replace("name: flights\nspec", "name: weather\nspec")
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(f"{one}\n---\n{two}")
    new.write_text(two.replace("gracePeriod: 2m", "gracePeriod: 3m"))

    assert headgate("explain", "--diff", old, new).out.split("\n\n") == [
        "application weather: 1 live\n  live       spec.stop.gracePeriod: 2m -> 3m (holds for the next stop)",
        "application flights: removed\n",
    ]
    assert headgate("explain", "--diff", new, old).out.startswith("application flights: added\n")


def test_a_difference_from_a_refused_resource_is_none(headgate: Headgate) -> None:
    ended = headgate("explain", "--diff", FLIGHTS, BROKEN)

    assert ended.code == 1
    assert ended.out.endswith(f"{BROKEN}: refused (15 errors)\n")


@pytest.mark.parametrize(
    "arguments",
    [[], [FLIGHTS, "--diff", FLIGHTS, FLIGHTS], [FLIGHTS, "--json"], ["--diff", FLIGHTS, "none.yaml"]],
)
def test_explain_needs_one_resource_or_two_to_compare(
    headgate: Headgate, arguments: list[str | Path]
) -> None:
    ended = headgate("explain", *arguments)

    assert ended.code == 2
    assert ended.err.startswith("error: ")


def test_crd_prints_the_definition(headgate: Headgate) -> None:
    assert headgate("crd").out == render_crd()


def test_crd_writes_the_file_that_it_then_finds_up_to_date(headgate: Headgate, tmp_path: Path) -> None:
    out = tmp_path / "crds"

    assert headgate("crd", "--out", out).code == 0
    assert (out / FILE_NAME).read_text() == render_crd()
    assert headgate("crd", "--check", out).code == 0


def test_crd_shows_how_a_committed_file_differs(headgate: Headgate, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(render_crd().replace("- hgapp", "- old"))

    ended = headgate("crd", "--check", tmp_path)

    assert ended.code == 1
    assert "-    - old\n+    - hgapp\n" in ended.out
    assert "differs from what is generated; run headgate crd --out" in ended.err
    next(tmp_path.glob("*.yaml")).write_bytes(b"\xff")
    assert headgate("crd", "--check", tmp_path).code == 1


def test_crd_refuses_to_write_and_compare_at_once(headgate: Headgate, tmp_path: Path) -> None:
    assert headgate("crd", "--check", tmp_path, "--out", tmp_path).code == 2


def test_the_reference_page_is_written_and_compared_likewise(headgate: Headgate, tmp_path: Path) -> None:
    assert headgate("crd", "--reference", "--out", tmp_path).code == 0
    assert headgate("crd", "--reference", "--check", tmp_path).code == 0


def test_help_loads_neither_models_nor_clients() -> None:
    program = (
        "import sys\nsys.argv = ['headgate', '--help']\nfrom headgate.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'pydantic', 'yaml', 'pyspark', 'kubernetes', 'kopf', 'prometheus_api_client'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert "validate" in ended.stdout


def test_the_version_is_printed(headgate: Headgate) -> None:
    assert headgate("--version").out.strip() == "0.1.0"
