"""Stands in for the launcher and a Spark job: takes its command line, serves metrics, obeys signals.

Run as a script by the tests of the local adapters. What it does is told by the "job" that it is given, a JSON
file: `{"exitCode": 1}` ends at once, `{"metrics": "...", "ignoresStop": true}` and so on. It reads the control
document like the real one, and reports the generation that it read.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from http_server import Handler, HttpServer  # this folder is where a script finds what it imports

STARTED = time.time()


def main() -> int:
    options = parsed(sys.argv[1:])
    job = json.loads(Path(options.job).read_text(encoding="utf-8"))
    print("arguments", json.dumps(options.arguments), flush=True)
    print("conf", json.dumps(options.conf), flush=True)
    if "output" in job:
        print(job["output"], file=sys.stderr, flush=True)
    if exits_at_once(job, Path(options.job)):
        return int(job["exitCode"])
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None if job.get("ignoresStop") else stopped.set())
    if job.get("leavesChild"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print("child", child.pid, flush=True)
    scrapes: list[float] = []
    server = serving(options, Path(options.job), scrapes)
    stopped.wait(job.get("announcesAfter", 0))
    announce(Path(options.announce), server.server_port, options.application)
    stopped.wait(job.get("runsSeconds", 600))
    while len(scrapes) < job.get("runsScrapes", 0) and not stopped.is_set():
        time.sleep(0.02)
    while "stopsAfter" in job and not Path(job["stopsAfter"]).exists():
        time.sleep(0.02)
    server.shutdown()
    print("stopped at a batch boundary" if stopped.is_set() else "ended by itself", flush=True)
    return int(job.get("stopCode", 0))


def parsed(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--application")
    parser.add_argument("--control", type=Path)
    parser.add_argument("--announce")
    parser.add_argument("--metrics-address", default="127.0.0.1")
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("job")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(argv)


def exits_at_once(job: dict[str, Any], file: Path) -> bool:
    """`exitCode` alone: always; with `failures`: as long as fewer attempts than that have been made."""
    if "exitCode" not in job:
        return False
    attempts = file.with_suffix(".attempts")
    made = int(attempts.read_text()) if attempts.exists() else 0
    attempts.write_text(str(made + 1))
    return made < job.get("failures", 1_000_000)


def serving(options: argparse.Namespace, job_file: Path, scrapes: list[float]) -> HttpServer:
    """Serve the page of the job; `scrapes` is given the time of each answer."""

    class Scraped(Handler):
        def do_GET(self) -> None:
            job = json.loads(job_file.read_text(encoding="utf-8"))
            if job.get("hangs"):
                time.sleep(job["hangs"])
            self.say(page(job, options).encode())
            scrapes.append(time.time())

    server = HttpServer((options.metrics_address, 0), Scraped)
    server.start()
    return server


def page(job: dict[str, Any], options: argparse.Namespace) -> str:
    """The metrics of the job file, and the generation of the control document that is there now."""
    query = job.get("name", "delays")
    label = f'application="{options.application}",query="{query}"'
    lines = [
        f"headgate_query_started_timestamp_seconds{{{label}}} {STARTED}",
        f"headgate_query_active{{{label}}} 1",
        *(f"headgate_query_{key}{{{label}}} {value}" for key, value in job.get("query", {}).items()),
    ]
    for source, setting, origin in job.get("settings", []):
        about = f'{label},source="{source}",setting="{setting}",origin="{origin}"'
        lines.append(f"headgate_setting_info{{{about}}} 1")
    for name, cause in job.get("failed", {}).items():
        of_it = f'application="{options.application}",query="{name}"'
        lines += [
            f"headgate_query_active{{{of_it}}} 0",
            f'headgate_query_failed{{{of_it},cause="{cause}"}} 1',
        ]
    for source, values in job.get("sources", {}).items():
        both = f'{label},source="{source}"'
        lines += [f"headgate_source_{key}{{{both}}} {value}" for key, value in values.items()]
    if options.control.exists():
        generation = json.loads(options.control.read_text(encoding="utf-8"))["generation"]
        lines.append(f'headgate_control_generation{{application="{options.application}"}} {generation}')
    return "\n".join(lines) + "\n"


def announce(path: Path, port: int, application: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"pid": os.getpid(), "metricsPort": port, "application": application}))
    new.replace(path)


if __name__ == "__main__":
    sys.exit(main())
