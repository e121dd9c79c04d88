"""What a Containerfile says of its final image: read once, for the images of the node tests and for tests of it.

The node tests have no builder and no registry. They make the same file system with the scripts under `images/build`
and give it the configuration that stands in the Containerfile, so that it is said in one place.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IMAGES = Path(__file__).parents[2] / "images"


@dataclass(frozen=True)
class ImageConfig:
    """The configuration of an image, as OCI's image specification calls its members."""

    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]
    env: tuple[str, ...]
    user: str
    working_dir: str


def image_config(name: str) -> ImageConfig:
    """Return what the last stage of `images/NAME.Containerfile` configures."""
    stage = stages(name)[-1]
    said = dict(stage)
    return ImageConfig(
        entrypoint=tuple(json.loads(said["ENTRYPOINT"])),
        cmd=tuple(json.loads(said.get("CMD", "[]"))),
        env=tuple(pair for word, text in stage if word == "ENV" for pair in shlex.split(text)),
        user=said["USER"],
        working_dir=said["WORKDIR"],
    )


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each instruction of a Containerfile and its text, with continued lines joined."""
    code = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(None, map(str.strip, code.splitlines())):
        word, _, rest = line.partition(" ")
        yield word.upper(), " ".join(rest.split())


def stages(name: str) -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage of `images/NAME.Containerfile`, each with its `FROM` first."""
    found: list[list[tuple[str, str]]] = []
    for word, text in instructions((IMAGES / f"{name}.Containerfile").read_text(encoding="utf-8")):
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, text))
    return found
