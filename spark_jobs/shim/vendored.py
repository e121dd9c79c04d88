"""The few packages that a release's jar carries beside Headgate's own Python, so that its user needs no pip.

`vendored.txt` pins them by version and by digest. Pip fetches them once, into a folder of the environment that
builds; what is in there is held against each package's `RECORD` whenever it is packed.
"""

import base64
import hashlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import Distribution, PackagePath, distributions
from pathlib import Path, PurePosixPath

from build import SHIM, BuildError
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

PINS = SHIM / "vendored.txt"
INSTALL = (
    "install --quiet --disable-pip-version-check --no-compile --no-deps --only-binary=:all: --require-hashes"
)
FETCH_SECONDS = 300
OLDEST_PYTHON = "3.9"


@dataclass(frozen=True)
class Vendored:
    """One package, as it goes into the jar."""

    name: str
    version: str
    licence: str
    """As its metadata has it."""
    has_spdx: bool
    """Whether that is an expression of SPDX, and not just a name."""
    modules: dict[str, bytes]
    """By their paths below the folder that Python imports from."""
    licences: dict[str, bytes]
    """The texts that go with every copy, by file name."""


def vendored() -> list[Vendored]:
    """What is pinned, by name; fetched if it is not here yet."""
    found = {each.name: each for each in distributions(path=[str(_fetched())])}
    lines = [line for line in PINS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    pins = [line.split()[0].split("==") for line in lines]
    for name, version in pins:
        if name not in found or found[name].version != version:
            raise BuildError(f"{PINS} pins {name}=={version}, and pip has not fetched that.")
        _check_needs(found[name])
    return [_packed(found[name]) for name, _ in sorted(pins)]


def _fetched() -> Path:
    """The folder with the packages: one for each set of pins, so that a change of them fetches anew."""
    folder = Path(sys.prefix) / "vendored" / hashlib.sha256(PINS.read_bytes()).hexdigest()[:16]
    if folder.exists():
        return folder
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        command = [sys.executable, "-m", "pip", *INSTALL.split()]
        command += ["--target", f"{scratch}/new", "--requirement", str(PINS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
        if done.returncode:
            raise BuildError(f"What {PINS} pins cannot be fetched:\n{done.stderr.strip()}")
        try:
            (Path(scratch) / "new").rename(folder)
        except OSError:  # another build was quicker
            if not folder.exists():
                raise
    return folder


def _check_needs(package: Distribution) -> None:
    """See that it runs on the oldest Python, and there with nothing else: the jar has nothing else."""
    [pythons] = package.metadata.get_all("Requires-Python") or [""]
    if OLDEST_PYTHON not in SpecifierSet(pythons):
        raise BuildError(
            f"{package.name} {package.version} needs Python {pythons}: pin one that runs on {OLDEST_PYTHON}."
        )
    on_oldest = {"python_version": OLDEST_PYTHON, "extra": ""}
    for needed in map(Requirement, package.requires or []):
        if needed.marker is None or needed.marker.evaluate(on_oldest):
            raise BuildError(f"{package.name} {package.version} needs {needed}: pin one that needs nothing.")


def _packed(package: Distribution) -> Vendored:
    files = package.files or []
    metadata = package.metadata
    texts = metadata.get_all("License-File") or []
    licences = {
        PurePosixPath(text).name: _read(package, file)
        for text in texts
        for file in files
        if file.parts[0].endswith(".dist-info") and file.as_posix().endswith(f"/{text}")
    }
    if not texts or len(licences) != len(texts):
        raise BuildError(
            f"{package.name} comes without the text of its licence, and so cannot be in the jar."
        )
    has_spdx = "License-Expression" in metadata
    return Vendored(
        name=package.name,
        version=package.version,
        licence=metadata["License-Expression" if has_spdx else "License"],
        has_spdx=has_spdx,
        modules={file.as_posix(): _read(package, file) for file in sorted(files) if _is_wanted(file)},
        licences=licences,
    )


def _is_wanted(file: PackagePath) -> bool:
    """Whether it is a module: no test, nothing compiled, and nothing that lies outside the package."""
    return file.suffix == ".py" and not {"..", "tests"} & set(file.parts)


def _read(package: Distribution, file: PackagePath) -> bytes:
    content = Path(str(file.locate())).read_bytes()
    if file.hash is None or file.hash.mode != "sha256":
        raise BuildError(f"{package.name} has no SHA-256 for {file} in its RECORD.")
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    if digest != file.hash.value:
        raise BuildError(
            f"{file.locate()} is not what {package.name}'s RECORD says: remove that folder and build again."
        )
    return content
