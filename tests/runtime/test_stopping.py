"""A stop ends every script: one whose threads go on after it, and one that will not hear of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.waiting import DEADLINE_SECONDS, wait_until

HEAD = """import concurrent.futures.thread, threading, time
from pathlib import Path
ready = Path("ready")
"""

THREADS = {
    "its main thread at work": """
        threading.Thread(target=time.sleep, args=(3600,)).start()
        ready.touch()
        time.sleep(3600)
    """,
    "its main thread at its end": """
        def outlive():
            threading.main_thread().join()
            ready.touch()
            time.sleep(3600)

        threading.Thread(target=outlive).start()
    """,
    "a pool that Python waits for": """
        def outlive():
            while not concurrent.futures.thread._shutdown:
                time.sleep(0.01)
            ready.touch()
            time.sleep(3600)

        concurrent.futures.ThreadPoolExecutor().submit(outlive)
    """,
}
"""Scripts with a thread that goes on for an hour, and what else they have."""

DEAF = """
    while True:
        try:
            ready.touch()
            time.sleep(3600)
        except BaseException:
            Path("asked").touch()
"""


@contextmanager
def launched(folder: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    """Run a script under `headgate-run`, and wait until it says that it is ready."""
    (folder / "job.py").write_text(HEAD + textwrap.dedent(script))
    command = [sys.executable, "-m", "headgate_spark", "--metrics-port", "0", "job.py"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        wait_until((folder / "ready").exists, "the script")
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("script", THREADS.values(), ids=THREADS)
def test_a_stop_ends_a_script_whose_threads_would_go_on(tmp_path: Path, script: str) -> None:
    with launched(tmp_path, script) as process:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, output
    assert "stopping at the next batch boundary" in output
    assert "Traceback" not in output
    assert "ignored" not in output


def test_a_second_signal_ends_a_script_that_will_not_be_ended(tmp_path: Path) -> None:
    with launched(tmp_path, DEAF) as process:
        process.send_signal(signal.SIGTERM)
        wait_until((tmp_path / "asked").exists, "the script to be told")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM
