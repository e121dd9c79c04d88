"""Container images without a builder and without a registry: layers made here, written as an archive for containerd.

The images of `images/` are made by the scripts that their Containerfiles use too, on a Debian from mmdebstrap, and
take their settings (environment, user, entry point) from the Containerfiles. Layers are kept in `build/images`, and
made again when what they are made from has changed; so are the libraries of others that our images have, which take
most of the time and change with the locks alone. `make tools` makes them before the tests.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import pytest

from support.containerfile import image_config
from support.debian import debian
from support.go_tools import ROOT, go_tool
from support.node_config import SANDBOX_IMAGE
from support.requirements import missing, need_namespaces, need_root

LAYERS = ROOT / "build" / "images"
RECIPES = ROOT / "images"
RELEASE = "bookworm"
PYTHON = (3, 11)
"""What this release has: libraries for the images are installed by the Python that runs the tests."""
BUILD_SECONDS = 900
KEY_LENGTH = 16
SOURCES = ("images", "operator", "spark_jobs", "pyproject.toml", "locks")
WITHOUT_DOCUMENTATION = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
LICENCES = "/usr/share/doc/*/copyright"


@dataclass(frozen=True)
class Image:
    """Layers, one over the other, and the settings of a container that runs on them."""

    name: str
    """`headgate.test/NAME:TAG`; no registry of that name exists."""
    layers: tuple[Path, ...]
    settings: Mapping[str, Any]

    def containing(self, name: str, files: Mapping[str, Path]) -> Image:
        """Return the image `name`: this one and `files`, by their absolute paths in it."""
        made_from = hashlib.sha256(repr(sorted(files)).encode())
        for _, file in sorted(files.items()):
            made_from.update(file.read_bytes())
        title = name.rpartition("/")[2].replace(":", "-")
        layer = _layer(title, made_from.hexdigest(), lambda to: _write_files(to, files))
        return Image(name, (*self.layers, layer), self.settings)


def pause_image() -> Image:
    """Return the image of every pod's sandbox; as a container it does nothing, until it is told to end."""
    pause = go_tool("pause")
    bare = Image(SANDBOX_IMAGE, (), {"Entrypoint": ["/pause"]})
    return bare.containing(SANDBOX_IMAGE, {"/pause": pause})


def our_images() -> tuple[Image, Image]:
    """Return the operator's image and that of drivers and executors, as the Containerfiles in `images/` make them."""
    with ThreadPoolExecutor() as pool:
        operator, spark = pool.map(_ours, ("operator", "spark"))
    return operator, spark


def write_archive(images: Sequence[Image], to: IO[bytes]) -> None:
    """Write images for `ctr images import`; layers that they share are in it once."""
    described = []
    with tarfile.open(fileobj=to, mode="w|") as archive:
        for layer in dict.fromkeys(layer for image in images for layer in image.layers):
            archive.add(layer, f"{layer.stem}.tar")
        for image in images:
            config = _config(image)
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add(archive, name, config)
            layers = [f"{layer.stem}.tar" for layer in image.layers]
            described.append({"Config": name, "RepoTags": [image.name], "Layers": layers})
        _add(archive, "manifest.json", json.dumps(described).encode())


def main() -> None:
    """Make our images, and say how long it took.

    Where no node can run there is nothing to do: the tests that need one will be skipped, except in CI. Where the
    images cannot be made they will fail, and all others can be run.
    """
    started = time.monotonic()
    try:
        need_namespaces()
        our_images()
    except (pytest.skip.Exception, pytest.fail.Exception, AssertionError) as lacking:
        print(lacking, file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else 0)
    print(f"images       {time.monotonic() - started:6.1f} s", flush=True)


def _ours(kind: str) -> Image:
    need_root("unpack a Debian for an image")
    if sys.version_info[:2] != PYTHON:
        missing(f"the images have Python {PYTHON[0]}.{PYTHON[1]}; run the tests with that version")
    base = debian_of(kind)
    ours = _layer(f"{kind}-opt", _digest(_sources()), lambda to: _install(kind, to))
    return Image(f"headgate.test/{kind}:1", (base, ours), _settings(kind))


def debian_of(kind: str) -> Path:
    """Return the layer that one of our images stands on: a Debian with a Python, and a JRE for Spark."""
    packages = RECIPES / "build" / f"{kind}.packages"
    user = RECIPES / "build" / "user.sh"
    return _layer(kind, _digest([packages, user]), lambda to: _bootstrap(packages, user, to))


def _bootstrap(packages: Path, user: Path, to: Path) -> None:
    excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in WITHOUT_DOCUMENTATION]
    excluded.append(f"--dpkgopt=path-include={LICENCES}")
    _run(
        debian().program("mmdebstrap"),
        *("--quiet", "--variant=essential", "--format=tar", "--skip=output/dev", "--dpkgopt=force-unsafe-io"),
        f"--include={','.join(packages.read_text().split())}",
        *excluded,
        '--aptopt=Apt::Install-Recommends "false"',
        '--essential-hook=mkdir -p "$1/usr/share/man/man1"',  # or the JRE's installation fails
        f'--customize-hook={user} "$1"',
        *(RELEASE, to),
        environment=debian().environment,
    )


def _install(kind: str, to: Path) -> None:
    with tempfile.TemporaryDirectory(dir=LAYERS) as root:
        _run("cp", "--archive", "--link", f"{_libraries(kind)}/.", root, environment=os.environ)
        _write_root(root, kind, "ours")
        with tarfile.open(to, "w") as layer:
            for entry in sorted(Path(root).iterdir()):
                layer.add(entry, entry.name, filter=_as_root)


def _libraries(kind: str) -> Path:
    """Return the folder of the libraries of an image; make it unless it is there, instead of older ones."""
    recipe = [RECIPES / "build" / "rootfs.sh", ROOT / "locks" / "build.txt", ROOT / "locks" / f"{kind}.txt"]
    folder = LAYERS / f"{kind}-libraries-{_digest(recipe)[:KEY_LENGTH]}"
    if not folder.exists():
        for older in LAYERS.glob(f"{kind}-libraries-*"):
            shutil.rmtree(older)
        unfinished = folder.with_suffix(".new")
        _write_root(unfinished, kind, "libraries")
        unfinished.rename(folder)
    return folder


def _write_root(root: str | Path, kind: str, part: str) -> None:
    environment = {**os.environ, "PYTHON": sys.executable}
    _run(RECIPES / "build" / "rootfs.sh", root, kind, part, environment=environment)


def _write_files(to: Path, files: Mapping[str, Path]) -> None:
    with tarfile.open(to, "w") as layer:
        for path, file in sorted(files.items()):
            layer.add(file.resolve(), path.lstrip("/"), filter=_as_root)


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry


def _layer(name: str, made_from: str, make: Callable[[Path], None]) -> Path:
    """Return the layer made from what has this digest; make it unless it is there, instead of older ones."""
    layer = LAYERS / f"{name}-{made_from[:KEY_LENGTH]}.tar"
    if not layer.exists():
        LAYERS.mkdir(parents=True, exist_ok=True)
        unfinished = layer.with_suffix(".new")
        make(unfinished)
        for older in LAYERS.glob(f"{name}-{'[0-9a-f]' * KEY_LENGTH}.tar"):
            older.unlink()
        unfinished.replace(layer)
    return layer


def _config(image: Image) -> bytes:
    layers = [f"sha256:{_diff_id(layer)}" for layer in image.layers]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": dict(image.settings),
        "rootfs": {"type": "layers", "diff_ids": layers},
    }
    return json.dumps(config).encode()


def _settings(kind: str) -> dict[str, Any]:
    """Return what the Containerfile says of containers, in the words of OCI's image specification."""
    said = image_config(kind)
    return {
        "Entrypoint": said.entrypoint,
        "Cmd": said.cmd,
        "Env": said.env,
        "User": said.user,
        "WorkingDir": said.working_dir,
    }


def _sources() -> list[Path]:
    """Return the files that rootfs.sh reads."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *SOURCES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in sorted(set(listed.stdout.splitlines())) if (ROOT / name).is_file()]


@cache
def _diff_id(layer: Path) -> str:
    """Return what a layer is known by; hundreds of megabytes, which several images and nodes have in common."""
    return _digest([layer])


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _run(*command: str | Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    assert done.returncode == 0, f"{command[0]} failed:\n{done.stderr}"


if __name__ == "__main__":
    main()
