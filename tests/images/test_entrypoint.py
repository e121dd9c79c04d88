"""What Spark on Kubernetes calls in its image, with stand-ins for Java and tini that print what they are given."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.containerfile import IMAGES

STAND_IN = '#!/bin/bash\nprintf "%s\\n" "$(basename "$0")" "$@"\n'
EXECUTOR = {
    "SPARK_JAVA_OPT_0": "-Dfirst=1",
    "SPARK_JAVA_OPT_2": "-Dthird=has a blank",
    "SPARK_JAVA_OPT_1": "-Dsecond=$HOME `id`",
    "SPARK_JAVA_OPT_10": "-Dlast=1",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
    "SPARK_EXECUTOR_POD_NAME": "flights-1-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}
"""What Spark writes into the pod of an executor."""


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def enter(tmp_path: Path):
    """Run the entry point, with stand-ins below `tmp_path`, and return what it would have started, word by word."""
    executable(tmp_path / "java" / "bin" / "java", STAND_IN)
    executable(tmp_path / "spark" / "bin" / "spark-submit", STAND_IN)
    script = (IMAGES / "entrypoint.sh").read_text(encoding="utf-8")
    executable(
        tmp_path / "entrypoint.sh", script.replace("(/usr/bin/tini -s --)", "(env -u NSS_WRAPPER_GROUP)")
    )
    bash = shutil.which("bash") or "bash"

    def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        homes = {
            "JAVA_HOME": f"{tmp_path}/java",
            "SPARK_HOME": f"{tmp_path}/spark",
            "PATH": os.environ["PATH"],
        }
        command = [bash, tmp_path / "entrypoint.sh", *words]
        return subprocess.run(command, env=homes | env, capture_output=True, text=True, check=False)

    return run


def test_an_executor_gets_its_options_in_order_and_unread_by_a_shell(enter) -> None:
    words = enter("executor", **EXECUTOR).stdout.splitlines()

    assert words[:7] == [
        "java",
        "-Dfirst=1",
        "-Dsecond=$HOME `id`",
        "-Dthird=has a blank",
        "-Dlast=1",
        "-Xms1024m",
        "-Xmx1024m",
    ]
    backend = words.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend")
    options = dict(zip(words[backend + 1 :: 2], words[backend + 2 :: 2], strict=True))
    assert options == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"],
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.8",
        "--resourceProfileId": "0",
        "--podName": "flights-1-exec-3",
    }


def test_jars_and_the_configuration_of_spark_are_on_the_class_path(enter, tmp_path: Path) -> None:
    words = enter(
        "executor", **EXECUTOR, SPARK_CONF_DIR="/opt/spark/conf", SPARK_CLASSPATH="/mine.jar"
    ).stdout

    class_path = words.splitlines()[words.splitlines().index("-cp") + 1]
    assert class_path == f"/opt/spark/conf:{tmp_path}/spark/jars/*:/mine.jar"


def test_an_executor_without_a_variable_of_spark_says_which_one(enter) -> None:
    ended = enter("executor", **{name: text for name, text in EXECUTOR.items() if name != "SPARK_DRIVER_URL"})

    assert ended.returncode != 0
    assert "SPARK_DRIVER_URL" in ended.stderr


def test_a_driver_without_headgate_is_a_plain_client(enter) -> None:
    words = enter("driver", "--class", "Main", "local:///a b.jar", SPARK_DRIVER_BIND_ADDRESS="10.0.0.7")

    assert words.stdout.splitlines() == [
        "spark-submit",
        "--deploy-mode",
        "client",
        "--conf",
        "spark.driver.bindAddress=10.0.0.7",
        "--conf",
        "spark.executorEnv.SPARK_DRIVER_POD_IP=10.0.0.7",
        "--class",
        "Main",
        "local:///a b.jar",
    ]


def test_any_other_word_is_a_command_with_its_arguments(enter) -> None:
    assert enter("printf", "<%s>", "a b", "$HOME").stdout == "<a b><$HOME>"


def test_nothing_to_run_is_a_mistake_with_a_remedy(enter) -> None:
    ended = enter()

    assert ended.returncode == 2
    assert ended.stderr == (
        "entrypoint.sh: nothing to run; say executor, driver or a command such as headgate-run\n"
    )


SECONDS = 60.0
UNTIL_ASKED = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPWR})
print("runs", flush=True)
signal.sigwait({signal.SIGPWR})
"""


@contextmanager
def process(folder: Path, name: str, words: str) -> Iterator[subprocess.Popen[str]]:
    """A process that ends when it is told that the power fails, listed below `folder` under that name."""
    with subprocess.Popen([sys.executable, "-c", UNTIL_ASKED], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "runs\n"
            listed = folder / str(running.pid)
            listed.mkdir(parents=True)
            (listed / "comm").write_text(f"{name}\n")
            (listed / "cmdline").write_text(words.replace(" ", "\0"))
            yield running
        finally:
            running.kill()


def test_an_executor_that_is_to_be_stopped_is_asked_and_waited_for_and_nothing_else_is(
    tmp_path: Path,
) -> None:
    script, listing = IMAGES / "decom.sh", tmp_path / "proc"
    assert '"${1:-/proc}"/[0-9]*' in script.read_text(), "or it would ask what runs on this machine"
    backend = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend --executor-id 3"
    with (
        process(listing, "tini", f"/usr/bin/tini -s -- java {backend}") as tini,
        process(listing, "java", f"java -Xmx1g {backend}") as executor,
        process(listing, "java", "java -jar agent.jar") as other,
        subprocess.Popen(["bash", script, listing]) as asking,
    ):
        assert executor.wait(SECONDS) == 0
        assert asking.wait(SECONDS) == 0
        assert (tini.poll(), other.poll()) == (None, None)


def test_where_no_executor_runs_any_more_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()

    assert subprocess.run(["bash", IMAGES / "decom.sh", tmp_path], check=False).returncode == 0
