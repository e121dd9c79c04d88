"""docs/install.md as a script: its commands are followed literally, so that what it says stays true.

Every block that is fenced as `sh` is run, command by command, in the order of the page; `console` is what such a
command prints. Two things differ from what a reader does: images are not built by podman but made as for all nodes of
the tests, and the one of the example holds fewer readings.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from support.go_tools import ROOT, go_tool
from support.node import NodeCluster
from support.node_images import Image
from support.waiting import wait_until

PAGE = ROOT / "docs" / "install.md"
EXAMPLE = ROOT / "examples" / "cluster"
READINGS = 600_000
"""Of the example's six million: a backlog of twelve seconds instead of two minutes."""
COMMAND_SECONDS = 240.0
FOLLOWED = re.compile(r"--watch\b|\blogs -f\b")
"""Commands that go on until somebody ends them."""


@dataclass(frozen=True)
class Block:
    """A fenced block, and the heading that it stands below."""

    heading: str
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block, without comments."""
        lines = [re.sub(r"(^|\s+)#.*", "", line) for line in self.text.replace("\\\n", " ").splitlines()]
        return [line for line in lines if line.strip()]


class Guide:
    """A page and its blocks."""

    def __init__(self, text: str):
        self.blocks = tuple(_blocks(text))

    @classmethod
    def read(cls, page: Path = PAGE) -> Guide:
        """Read a page."""
        return cls(page.read_text(encoding="utf-8"))

    def commands(self, heading: str = "") -> list[str]:
        """Return the commands below a heading, or all of them."""
        return [command for block in self._below(heading, "sh") for command in block.commands]

    def shown(self, heading: str) -> str:
        """Return what the page shows as printed below a heading."""
        (block,) = self._below(heading, "console")
        return block.text

    def configuration(self, heading: str) -> dict[str, Any]:
        """Return the YAML below a heading."""
        (block,) = self._below(heading, "yaml")
        content: dict[str, Any] = yaml.safe_load(block.text)
        return content

    def variables(self) -> dict[str, str]:
        """Return what the page sets for its commands."""
        pairs = (command.strip().partition("=") for command in self.commands() if _is_assignment(command))
        return {name: value for name, _, value in pairs}

    def images(self, operator: Image, spark: Image, folder: Path) -> list[Image]:
        """Return the images that the page builds and pushes, under the names that it gives to them."""
        made = {
            "images/operator.Containerfile": operator,
            "images/spark.Containerfile": spark,
            "examples/cluster/Containerfile": _readings(spark, folder),
        }
        words = [shlex.split(_filled(command, self.variables())) for command in self.commands()]
        built = {_option(w, "-t"): made[_option(w, "-f")] for w in words if w[:2] == ["podman", "build"]}
        pushed = [word[-1] for word in words if word[:2] == ["podman", "push"]]
        return [replace(built[name], name=name) for name in pushed]

    def _below(self, heading: str, language: str) -> list[Block]:
        return [b for b in self.blocks if heading in b.heading and b.language == language]


class Terminal:
    """A shell in a checkout, connected to a cluster."""

    def __init__(self, cluster: NodeCluster, folder: Path, variables: Mapping[str, str]):
        self._cluster = cluster
        self._folder = folder
        for entry in ("charts", "crds", "examples", "images"):
            (folder / entry).symlink_to(ROOT / entry)
        programs = folder / "bin"
        programs.mkdir()
        for name in ("kubectl", "helm"):
            (programs / name).symlink_to(go_tool(name))
        path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, **variables, "PATH": path, "KUBECONFIG": str(cluster.kubeconfig)}

    def follow(self, commands: Sequence[str], *, until: str = "") -> dict[str, str]:
        """Type commands one after the other; returns what each printed.

        One that goes on until somebody ends it is ended once it has printed what `until` matches.
        """
        printed = {}
        for command in commands:
            if command.startswith("podman ") or _is_assignment(command):
                continue  # the nodes have the images, and the environment has the variable
            is_followed = FOLLOWED.search(command) is not None
            printed[command] = self._watch(command, until) if is_followed else self._run(command)
        return printed

    def _run(self, command: str) -> str:
        with self._cluster.network():
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=self._folder,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _watch(self, command: str, until: str) -> str:
        printed = self._folder / "printed"
        with self._cluster.network(), printed.open("wb") as output:
            shell = ["bash", "-euo", "pipefail", "-c", f"exec {command}"]
            process = subprocess.Popen(shell, cwd=self._folder, env=self._environment, stdout=output)
        try:
            wait_until(
                lambda: re.search(until, printed.read_text(), re.DOTALL),
                f"{until} in {command}",
                COMMAND_SECONDS,
            )
        except AssertionError as error:
            raise AssertionError(f"{error}; it printed:\n{printed.read_text()}") from None
        finally:
            process.terminate()
            process.wait()
        return printed.read_text()


def _blocks(text: str) -> list[Block]:
    headings = r"^#+ (?P<heading>[^\n]*)$"
    fences = r"^```(?P<language>\w+)\n(?P<text>.*?)^```$"
    found = re.finditer(f"{headings}|{fences}", text, re.MULTILINE | re.DOTALL)
    blocks, heading = [], ""
    for match in found:
        if match["language"] is None:
            heading = match["heading"]
        else:
            blocks.append(Block(heading, match["language"], match["text"]))
    return blocks


def _readings(spark: Image, folder: Path) -> Image:
    recorded = folder / "readings"
    command: list[str | Path] = [sys.executable, EXAMPLE / "record.py", recorded, str(READINGS)]
    subprocess.run(command, check=True)
    files = {
        "/opt/app/readings.py": EXAMPLE / "readings.py",
        "/opt/app/readings/readings.parquet": recorded / "readings.parquet",
    }
    return spark.containing("headgate.test/readings:1", files)


def _is_assignment(command: str) -> bool:
    return re.fullmatch(r"[A-Z_]+=\S+", command.strip()) is not None


def _filled(command: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$([A-Z_]+)", lambda match: variables[match[1]], command)


def _option(words: Sequence[str], name: str) -> str:
    return words[words.index(name) + 1]
