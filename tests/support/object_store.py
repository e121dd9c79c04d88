"""An S3 server of this machine, S3A beside Spark, and doors between the two.

The server is gofakes3, in memory, on loopback. A `Door` hands requests on to it; what makes one of it says what it
does beside that.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from support import maven
from support.go_tools import PROGRAMS, build
from support.http_server import LOOPBACK, Handler

BUCKET = "bucket"
LOCKS = Path(__file__).parents[1] / "object_store"
START_SECONDS, ANSWER_SECONDS = 30.0, 60.0
S3A = {
    "endpoint.region": "us-east-1",
    "path.style.access": "true",
    "connection.ssl.enabled": "false",
    "access.key": "tests",
    "secret.key": "tests",
    "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
}
"""Its settings, but for the endpoint."""
ABORTABLE = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
"""How Spark's own module for clouds writes a checkpoint: without renames, which are a copy there."""
OF_ONE_HOP = {"connection", "expect", "keep-alive", "transfer-encoding"}


def jars() -> Sequence[Path]:
    """Return those of S3A."""
    return maven.jars("s3a", LOCKS)


def conf(port: int, *, abortable: bool = False) -> dict[str, str]:
    """Return the Spark properties of a driver that finds the server at a port, by `s3a://bucket/`.

    `abortable`: it writes its checkpoints by `ABORTABLE`.
    """
    s3a = S3A | {"endpoint": f"http://{LOOPBACK}:{port}"}
    path = [*jars(), *(maven.jars("hadoop-cloud", LOCKS) if abortable else ())]
    manager = {"spark.sql.streaming.checkpointFileManagerClass": ABORTABLE} if abortable else {}
    return {
        "spark.driver.extraClassPath": ":".join(map(str, path)),
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()},
        **manager,
    }


@contextmanager
def server(directory: Path) -> Iterator[int]:
    """Run a server with a bucket called `bucket`; returns its port."""
    build("gofakes3")
    with socket.create_server((LOOPBACK, 0)) as free:
        port = int(free.getsockname()[1])
    command = [str(PROGRAMS / "gofakes3"), "-backend", "memory", "-host", f"{LOOPBACK}:{port}"]
    command += ["-initialbucket", BUCKET]
    with (directory / "gofakes3.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while socket.socket().connect_ex((LOOPBACK, port)):
            assert process.poll() is None, (directory / "gofakes3.log").read_text()
            assert time.monotonic() < deadline, "gofakes3 does not listen"
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(10)


@dataclass(frozen=True)
class Answer:
    """What the server says."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Door(Handler):
    """Hands each request on to the server at the port `to`, and its answer back."""

    protocol_version = "HTTP/1.1"
    to: int

    def hand_on(self, body: bytes) -> Answer:
        """Ask the server."""
        headers = {key: text for key, text in self.headers.items() if key.lower() not in OF_ONE_HOP}
        with closing(HTTPConnection(LOOPBACK, self.to, timeout=ANSWER_SECONDS)) as server:
            server.request(self.command, self.path, body, headers)
            answer = server.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())

    def do_GET(self) -> None:
        """Answer as the server does."""
        answer = self.hand_on(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        self.send_response_only(answer.status)
        length = str(len(answer.content))
        for key, text in answer.headers.items():
            if key.lower() == "content-length":
                length = text if self.command == "HEAD" else length
            elif key.lower() not in OF_ONE_HOP:
                self.send_header(key, text)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(answer.content)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET
