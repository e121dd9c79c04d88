"""What is in an artefact, as CycloneDX 1.6 in JSON: for scanners, and for whoever has to say what a cluster runs."""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
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


def document(artefact: Path, purl: str, version: str, components: Sequence[Component]) -> bytes:
    """The bill of materials of an artefact; it has no time of its own, so that it is the same after another build."""
    content = artefact.read_bytes()
    name = purl.rpartition("/")[2].partition("@")[0]
    subject: Component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    subject |= {"hashes": [_sha256(content)], "licenses": [OF_HEADGATE]}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{purl} {hashlib.sha256(content).hexdigest()}")
    refs = [component["bom-ref"] for component in components]
    found = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
        "dependencies": [{"ref": purl, "dependsOn": refs}, *({"ref": ref} for ref in refs)],
    }
    return (json.dumps(found, indent=2) + "\n").encode()


def _carried(package: Vendored) -> Component:
    known = {"expression": package.licence} if package.has_spdx else {"license": {"name": package.licence}}
    return _from_pypi(package.name, package.version) | {"licenses": [known]}


def _required(requirement: Requirement, pins: Mapping[str, str]) -> Component:
    scope = "required" if requirement.marker is None else "optional"
    found = _from_pypi(requirement.name, pins[canonicalize_name(requirement.name)]) | {"scope": scope}
    return found | {"properties": [{"name": "headgate:requirement", "value": str(requirement)}]}


def _from_pypi(name: str, version: str) -> Component:
    purl = f"pkg:pypi/{canonicalize_name(name)}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _sha256(content: bytes) -> dict[str, str]:
    return {"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}
