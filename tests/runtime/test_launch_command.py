"""`headgate-run` before Spark: options that cannot be, scripts that do not compile, ends that Python would give."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import headgate
from headgate_spark.launch.command import main

pytestmark = pytest.mark.processes

RESULT = subprocess.CompletedProcess[str]
SECONDS = 240
AS_ANYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"] if os.geteuid() == 0 else []
"""Without root's right to read every file, where we have it."""


def launched(folder: Path, script: str | bytes, *options: str, redirection: str = "") -> RESULT:
    """Run a script of this content to its end."""
    (folder / "job.py").write_bytes(script if isinstance(script, bytes) else script.encode())
    return run(
        folder, "-m", "headgate_spark", "--metrics-port", "0", *options, "job.py", redirection=redirection
    )


def run(folder: Path, *arguments: str, redirection: str = "", under: Sequence[str] = ()) -> RESULT:
    line = f'exec "$0" "$@" {redirection}'
    return subprocess.run(
        [*under, "/bin/sh", "-c", line, sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--metrics-port", "65536"), "'65536' is not a port: a number from 0 to 65535"),
        (("--metrics-port", "-1"), "'-1' is not a port"),
        (("--metrics-port", "http"), "'http' is not a port"),
        (("--metrics-address", "no.such.invalid"), "metrics cannot be served at no.such.invalid, port 0: "),
        (("--metrics-address", "192.0.2.1"), "metrics cannot be served at 192.0.2.1, port 0: Cannot assign"),
        (("--announce", "."), "--announce .: is a folder or a device; give"),
        (
            ("--announce", "no/such/folder"),
            "--announce no/such/folder: No such file or directory; give the path",
        ),
        (("--announce", "/dev/null"), "--announce /dev/null: is a folder or a device; give"),
        (("--control", "."), "--control .: is a folder or a device; give"),
        (("--control", "s3a://b/c"), "--control: s3a://b/c is no file of this machine: give the path of one"),
        (("--control", "file:///dev/null"), "--control /dev/null: is a folder or a device; give"),
        (("--properties-file", "none.conf"), "--properties-file none.conf: no such file"),
        (("--conf", "=x"), "'=x' is not KEY=VALUE"),
    ],
)
def test_an_option_that_cannot_be_is_a_usage_error(
    tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    ended = launched(tmp_path, "print('never')", *options)
    assert ended.returncode == 2
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_an_archive_is_no_script(tmp_path: Path) -> None:
    archive = io.BytesIO(b"#!/usr/bin/env python3\n")  # as zipapp, pex and shiv begin theirs
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("__main__.py", "")
    ended = launched(tmp_path, archive.getvalue())
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "job.py: is an archive and not a script; name the script to run" in ended.stderr


def test_properties_in_a_file_and_in_the_environment_are_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_SPARK_PROPERTIES", "spark.x=1")
    (tmp_path / "job.conf").write_text("spark.x=2\n")
    ended = launched(tmp_path, "print('never')", "--properties-file", "job.conf")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "HEADGATE_SPARK_PROPERTIES is in the environment too; leave one of them out" in ended.stderr


def test_the_version_is_that_of_the_other_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"{headgate.__version__}\n")


def test_ports_that_are_all_taken_are_a_usage_error_too(tmp_path: Path) -> None:
    program = "import socket\ns = socket.create_server(('127.0.0.1', 65535))\n"
    nested = "import os, sys\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
    (tmp_path / "job.py").write_text("")
    taken = program + "s.set_inheritable(True)\n" + nested
    options = ("--metrics-port", "65535", "--metrics-address", "127.0.0.1")
    ended = run(tmp_path, "-c", taken, "-m", "headgate_spark", *options, "job.py")
    assert ended.returncode == 2
    assert "metrics cannot be served at 127.0.0.1, port 65535" in ended.stderr
    assert "Traceback" not in ended.stderr


BROKEN = {
    "does not compile": "x = 1\nif x\n    print(x)\n",
    "imports what does not compile": "import broken\n",
    "has an encoding that there is not": "# coding: nonsense\n",
    "is not text": b"\xff\xfe",
    "holds a null byte": b"x = '\0'\n",
    "raises": "def f():\n    raise ValueError('of the job')\n\nf()\n",
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
def test_a_script_that_is_broken_shows_its_own_lines_alone(tmp_path: Path, script: str | bytes) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    ended = launched(tmp_path, script)
    assert ended.returncode == 1
    assert "Error" in ended.stderr
    shown = re.findall(r'File "([^"]+)"', ended.stderr)
    assert {Path(file).parent for file in shown} <= {tmp_path}


ENDS = {
    "sys.exit()": 0,
    "sys.exit(7)": 7,
    "sys.exit('why')": 1,
    "raise KeyboardInterrupt": 130,
    "os._exit(9)": 9,
    "threading.Thread(target=lambda: sys.exit(3)).start()": 0,
    "assert __file__ == os.path.abspath('job.py') and sys.argv == ['job.py']": 0,
}


@pytest.mark.parametrize(("line", "code"), ENDS.items(), ids=ENDS)
def test_a_script_ends_with_the_code_that_python_would_give(tmp_path: Path, line: str, code: int) -> None:
    program = f"import os, sys, threading\n{line}\n"
    assert launched(tmp_path, program).returncode == code
    assert run(tmp_path, "job.py").returncode in {code, 128 - code}, "as Python itself"


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (("job.py", "--", "x", "--help"), ["--", "x", "--help"]),
        (("--", "job.py", "--conf", "a"), ["--conf", "a"]),
        (("--conf", "a=b", "job.py", "--metrics-port", "1", "--", ""), ["--metrics-port", "1", "--", ""]),
        (("job.py",), []),
    ],
)
def test_a_script_gets_its_arguments_as_they_are(
    tmp_path: Path, words: tuple[str, ...], arguments: list[str]
) -> None:
    (tmp_path / "job.py").write_text("import json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    ended = run(tmp_path, "-m", "headgate_spark", "--metrics-port", "0", *words)
    assert json.loads(ended.stdout) == arguments


def test_a_script_may_change_its_working_directory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "control.json").write_text('{"schemaVersion": "1.0", "generation": 1}')
    script = """
import json, os, time, urllib.request
os.chdir("elsewhere")
port = json.load(open("../driver.json"))["metricsPort"]
with open("../next.json", "w") as file:
    file.write('{"schemaVersion": "1.0", "generation": 2}')
os.replace("../next.json", "../control.json")
deadline = time.monotonic() + 120
while time.monotonic() < deadline:
    page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    if 'headgate_control_generation{application="job"} 2.0' in page:
        break
    time.sleep(0.05)
"""
    ended = launched(tmp_path, script, "--control", "control.json", "--announce", "driver.json")
    assert "control document in force generation=2" in ended.stderr
    assert "reason=Missing" not in ended.stderr
    assert json.loads((tmp_path / "driver.json").read_text())["note"]
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_standard_stream_may_be_closed(tmp_path: Path) -> None:
    ended = launched(tmp_path, "print('of the job')", redirection="<&-")
    assert (ended.returncode, ended.stdout) == (0, "of the job\n")


def test_a_property_of_the_driver_as_a_whole_stands_for_the_option(tmp_path: Path) -> None:
    said = {"control": "later.json", "application": "of-the-property", "metrics.port": "0"}
    conf = [word for name, value in said.items() for word in ("--conf", f"spark.headgate.{name}={value}")]
    (tmp_path / "job.py").write_text("")
    ended = run(tmp_path, "-m", "headgate_spark", *conf, "--announce", "announce.json", "job.py")
    announced = json.loads((tmp_path / "announce.json").read_text())
    assert f"{tmp_path}/later.json is not there; until it is, the job runs as it says itself" in ended.stderr
    assert announced["application"] == "of-the-property"
    ended = run(tmp_path, "-m", "headgate_spark", "--conf", "spark.headgate.metrics.port=http", "job.py")
    assert (ended.returncode, "spark.headgate.metrics.port is 'http', which is no port" in ended.stderr) == (
        2,
        True,
    )


def test_no_script_at_all_is_a_usage_error(tmp_path: Path) -> None:
    ended = run(tmp_path, "-m", "headgate_spark", "--metrics-port", "0")
    assert ended.returncode == 2
    assert "name the PySpark script to run" in ended.stderr


def test_a_note_of_the_end_is_left_where_there_was_nothing_to_govern(tmp_path: Path) -> None:
    ended = launched(tmp_path, "raise SystemExit(4)", "--announce", "announce.json")
    assert ended.returncode == 4
    announced = json.loads((tmp_path / "announce.json").read_text())
    assert announced["note"] == "it had started no streaming query"
    assert "the script started no streaming query; there was nothing to govern" in ended.stderr


def test_a_stop_before_any_query_is_no_reason_to_miss_one(tmp_path: Path) -> None:
    stops_itself = "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(600)\n"
    ended = launched(tmp_path, stops_itself, "--announce", "announce.json")
    assert ended.returncode == 0
    assert "no streaming query" not in ended.stderr
    assert "note" not in json.loads((tmp_path / "announce.json").read_text())


def test_a_thread_of_the_script_may_outlive_its_last_line(tmp_path: Path) -> None:
    program = (
        "import threading\n"
        "threading.Thread(target=lambda: (threading.main_thread().join(), print('late'))).start()\n"
        "print('end')\n"
    )
    ended = launched(tmp_path, program, redirection="2>&1")
    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    assert lines.index("late") > lines.index("end")
    assert "no streaming query" in lines[-1], "said when nothing can start one any more"


def test_a_full_disk_behind_the_log_does_not_keep_a_stop_from_coming(tmp_path: Path) -> None:
    stops_itself = "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(600)\n"
    assert launched(tmp_path, stops_itself, redirection="2> /dev/full").returncode == 0


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ("PATH=/bin/none", "JAVA_HOME is not set, and no java is on the PATH"),
        ("JAVA_HOME=/none", "JAVA_HOME is /none, and there is no bin/java in it"),
    ],
)
def test_a_machine_without_java_is_told_what_to_install(tmp_path: Path, environment: str, says: str) -> None:
    (tmp_path / "job.py").write_text(
        "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()\n"
    )
    command = [
        "env",
        "-u",
        "JAVA_HOME",
        environment,
        sys.executable,
        "-m",
        "headgate_spark",
        "--metrics-port",
        "0",
    ]
    ended = subprocess.run(
        [*command, "job.py"], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 78
    assert f"headgate-run: error: Spark needs Java: {says}; install a JDK 17 or newer" in ended.stderr
    assert "Traceback" not in ended.stderr


WITHOUT_A_FOLDER = """
import tempfile
from headgate_spark.launch.command import main

tempfile.tempdir = "/no/such/folder"
main()
"""


def test_where_no_temporary_file_can_be_written_that_is_told_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("print('never')")
    ended = run(tmp_path, "-c", WITHOUT_A_FOLDER, "--metrics-port", "0", "job.py")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        "headgate-run: error: a temporary file cannot be written: No such file or directory; make room, or let TMPDIR"
        in ended.stderr
    )
    assert "Traceback" not in ended.stderr


def test_a_script_that_may_not_be_read_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "job.py").touch(mode=0o200)
    ended = run(tmp_path, "-m", "headgate_spark", "job.py", under=AS_ANYBODY)
    assert ended.returncode == 2
    assert "may not be read" in ended.stderr


def test_a_control_document_in_a_folder_that_may_not_be_searched_is_told_and_not_taken_for_a_missing_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "job.py").write_text("")
    (tmp_path / "locked").mkdir(mode=0o600)
    options = ("--metrics-port", "0", "--control", "locked/control.json")
    ended = run(tmp_path, "-m", "headgate_spark", *options, "job.py", under=AS_ANYBODY)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert re.search(
        r"nothing is read: .*locked/control\.json cannot be read: Permission denied", ended.stderr
    )
