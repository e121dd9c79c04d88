"""What is in an artefact, as CycloneDX 1.6 in JSON: for scanners, and for whoever has to say what a cluster runs."""

import hashlib
import json
import re
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from vendored import Vendored

Component = dict[str, Any]
OF_HEADGATE = {"license": {"id": "Apache-2.0"}}


def of_jar(carried: Sequence[Vendored]) -> list[Component]:
    """The packages in the jar, at exactly these versions."""
    return [_carried(each) for each in carried]


def of_wheel(shim: bytes, required: Sequence[Requirement], pins: Mapping[str, str]) -> list[Component]:
    """The jar in the wheel, and what the wheel requires.

    Pip chooses the versions of the latter, in the range that stands with each; named is the one that is tested.
    """
    name = "headgate_spark/jars/headgate-shim.jar"
    inside: Component = {"type": "file", "bom-ref": name, "name": name}
    inside |= {"hashes": [_sha256(shim)], "licenses": [OF_HEADGATE]}
    return [inside, *(_required(each, pins) for each in required)]


def of_folder(libraries: Path) -> list[Component]:
    """What pip has put into a folder, and the jars in there, each with its digest."""
    found = sorted(distributions(path=[str(libraries)]), key=lambda each: canonicalize_name(each.name))
    jars = sorted(libraries.glob("*/jars/**/*.jar"))
    return [*map(_installed, found), *(_jar(jar, jar.relative_to(libraries).as_posix()) for jar in jars)]


def document(artefact: Path, purl: str, version: str, components: Sequence[Component]) -> bytes:
    """The bill of materials of an artefact; it has no time of its own, so that it is the same after another build."""
    content = artefact.read_bytes()
    name = purl.rpartition("/")[2].partition("@")[0]
    subject: Component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    subject |= {"hashes": [_sha256(content)], "licenses": [OF_HEADGATE]}
    return _bill(subject, f"{purl} {hashlib.sha256(content).hexdigest()}", components)


def document_of_image(name: str, version: str, components: Sequence[Component]) -> bytes:
    """The bill of materials of what is ours in an image, which is in the image itself and so has no digest of it."""
    subject: Component = {"type": "container", "bom-ref": name, "name": name, "version": version}
    subject |= {"licenses": [OF_HEADGATE]}
    listed = hashlib.sha256(json.dumps(components).encode()).hexdigest()
    return _bill(subject, f"{name} {version} {listed}", components)


def _bill(subject: Component, told_apart_by: str, components: Sequence[Component]) -> bytes:
    serial = uuid.uuid5(uuid.NAMESPACE_URL, told_apart_by)
    refs = [component["bom-ref"] for component in components]
    found = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
        "dependencies": [{"ref": subject["bom-ref"], "dependsOn": refs}, *({"ref": ref} for ref in refs)],
    }
    return (json.dumps(found, indent=2) + "\n").encode()


def _carried(package: Vendored) -> Component:
    known = {"expression": package.licence} if package.has_spdx else {"license": {"name": package.licence}}
    return _from_pypi(package.name, package.version) | {"licenses": [known]}


def _installed(package: Distribution) -> Component:
    metadata = package.metadata
    if "License-Expression" in metadata:
        known: Component = {"expression": metadata["License-Expression"]}
    else:
        classified = [each for each in metadata.get_all("Classifier") or [] if each.startswith("License ::")]
        told = metadata["License"] or ", ".join(each.rpartition(" :: ")[2] for each in classified)
        known = {"license": {"name": told.splitlines()[0] if told else "unknown"}}
    return _from_pypi(package.name, package.version) | {"licenses": [known]}


def _jar(path: Path, ref: str) -> Component:
    """A jar by its file's name, and by its coordinates where Maven has written them into it."""
    parts = re.fullmatch(r"(.+?)-(\d.*)", path.stem)
    name = parts[1] if parts else path.stem
    found: Component = {
        "type": "library",
        "bom-ref": ref,
        "name": name,
        "hashes": [_sha256(path.read_bytes())],
    }
    if parts is None:
        return found
    found["version"] = parts[2]
    with zipfile.ZipFile(path) as jar:
        told = [each for each in jar.namelist() if each.endswith(f"/{name}/pom.properties")]
        lines = jar.read(told[0]).decode("utf-8", "replace").splitlines() if len(told) == 1 else []
    known = dict(line.split("=", 1) for line in lines if "=" in line)
    if "groupId" in known:
        found |= {"group": known["groupId"], "purl": f"pkg:maven/{known['groupId']}/{name}@{parts[2]}"}
    return found


def _required(requirement: Requirement, pins: Mapping[str, str]) -> Component:
    scope = "required" if requirement.marker is None else "optional"
    found = _from_pypi(requirement.name, pins[canonicalize_name(requirement.name)]) | {"scope": scope}
    return found | {"properties": [{"name": "headgate:requirement", "value": str(requirement)}]}


def _from_pypi(name: str, version: str) -> Component:
    purl = f"pkg:pypi/{canonicalize_name(name)}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _sha256(content: bytes) -> dict[str, str]:
    return {"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}
