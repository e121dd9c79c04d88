"""The contracts of operator, driver and resource that have gone out, kept as files for the tests of upgrades.

    PYTHONPATH=tests python -m support.contract_versions

keeps what the tree says now, under the version of its control document, the definition of the resource, and what an
operator leaves in a cluster. It is run at a release, and where something is broken before 1.0 that the changelog then
names.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from headgate.key import key_of
from headgate_contract.document import MAJOR_VERSION, MINOR_VERSION
from support.crd_compatibility import without_words
from support.every_field import whole
from support.fake_cluster import FakeCluster
from support.operating import Operation
from support.transitions import Edited

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests/data/contract"
CRD = KEPT / "crd.json"
LEFT = KEPT / "left.json"
"""What an operator leaves of an application with every field, in a backlog: the application and its driver's pod."""
PACKAGE, PAGE, DOCUMENT = "contract.zip", "metrics.txt", "document.json"

_EXAMPLE = re.compile(r"^## A full example$.*?^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_METRICS = """
import json
from headgate_contract.metrics import ALL
print(json.dumps([(m.name, m.kind.value, m.labels) for m in ALL]))
"""
_VALUES = {"query": "delays", "source": "flights", "application": "flights"}


def versions() -> list[Path]:
    """Return the folders of all that is kept, the oldest first."""
    return sorted(KEPT.glob("*.*/"), key=lambda folder: [int(part) for part in folder.name.split(".")])


def ask(package: Path, code: str, said: str = "") -> Any:
    """Return what `code` prints as JSON with the contract of `package` (a folder or a zip), and no other, at hand."""
    told = subprocess.run(
        [sys.executable, "-P", "-S", "-c", code],
        env={"PYTHONPATH": str(package)},
        input=said,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    return json.loads(told.stdout)


def metrics_of(package: Path) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return name, kind and labels of all metrics that a contract has."""
    return [(name, kind, tuple(labels)) for name, kind, labels in ask(package, _METRICS)]


def structure() -> Any:
    """Return the schema of the resource as its definition has it now, without words."""
    definition = yaml.safe_load((ROOT / "crds/headgate.dev_sparkapplications.yaml").read_text())
    [version] = definition["spec"]["versions"]
    return without_words(version["schema"]["openAPIV3Schema"])


def keep(version: str, sources: Path, page: str) -> None:
    """Keep the contract in `sources` and the full example of its documentation, `page`."""
    folder = KEPT / version
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / PACKAGE, "w", zipfile.ZIP_DEFLATED) as package:
        for path in sorted((sources / "headgate_contract").rglob("*.py")):
            entry = zipfile.ZipInfo(
                str(path.relative_to(sources))
            )  # of 1980: the same sources give the same bytes
            package.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    found = _EXAMPLE.search(page)
    assert found is not None, "docs/control-document.md has no full example"
    (folder / DOCUMENT).write_text(found[1])
    (folder / PAGE).write_text("".join(_page(metrics_of(folder / PACKAGE))))


def leave() -> str:
    """Return what today's operator leaves, as `LEFT` has it."""
    edited = Edited(is_behind=True)
    edited.declare(whole())
    cluster = edited.cluster
    objects = {plural: found for (plural, *_), found in cluster.objects.items() if plural != "events"}
    return json.dumps({"now": cluster.now, "objects": objects}, indent=1) + "\n"


def left(by: Path = LEFT) -> Edited:
    """Return the application that an operator has left, with one of today's that has just started."""
    kept = json.loads(by.read_text())
    objects = {(plural, *key_of(found)): found for plural, found in kept["objects"].items()}
    running = {kept["objects"]["pods"]["metadata"]["uid"]}
    versions = [int(found["metadata"]["resourceVersion"]) for found in objects.values()]
    cluster = FakeCluster(kept["now"], objects, running=running, _version=max(versions))
    return Edited(is_behind=True, operator=Operation(cluster))


def _page(metrics: list[tuple[str, str, tuple[str, ...]]]) -> Iterator[str]:
    for name, kind, labels in metrics:
        told = ",".join(f'{label}="{_VALUES.get(label, "1")}"' for label in ("application", *labels))
        yield f"# TYPE {name} {kind}\n"
        if kind == "histogram":
            yield f'{name}_bucket{{{told},le="+Inf"}} 1\n{name}_sum{{{told}}} 1\n{name}_count{{{told}}} 1\n'
        else:
            yield f"{name}{{{told}}} 1\n"


if __name__ == "__main__":
    keep(
        f"{MAJOR_VERSION}.{MINOR_VERSION}",
        ROOT / "spark_jobs",
        (ROOT / "docs/control-document.md").read_text(),
    )
    CRD.write_text(json.dumps(structure(), separators=(",", ":"), sort_keys=True) + "\n")
    LEFT.write_text(leave())
