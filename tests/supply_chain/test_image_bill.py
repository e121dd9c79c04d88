"""The bill of materials that is in an image: each library and each jar below the folder that is ours."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.containerfile import IMAGES

PROGRAM = IMAGES.parent / "spark_jobs" / "shim" / "image_sbom.py"


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    """A folder as pip and `rootfs.sh` leave it, with two libraries, a jar of Spark's and our own."""
    for name, version, licence in (
        ("headgate", "0.1.0", "License-Expression: Apache-2.0"),
        ("py4j", "0.10.9.9", "License: BSD License"),
    ):
        information = tmp_path / f"{name}-{version}.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{licence}\n"
        )
    for folder, name, told in (
        (
            "pyspark",
            "guava-33.4.8-jre",
            {"META-INF/maven/com.google.guava/guava/pom.properties": "com.google.guava"},
        ),
        ("pyspark", "derby-10.16.1.1", {}),
        ("headgate_spark", "headgate-shim", {}),
    ):
        jar = tmp_path / folder / "jars" / f"{name}.jar"
        jar.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(jar, "w") as archive:
            for entry, group in told.items():
                archive.writestr(entry, f"#\nartifactId=guava\ngroupId={group}\n")
    return tmp_path


def bill(libraries: Path) -> bytes:
    subprocess.run([sys.executable, PROGRAM, libraries, "spark"], check=True, timeout=60)
    return (libraries / "headgate-spark.cdx.json").read_bytes()


def test_a_bill_has_each_library_and_each_jar_with_its_digest(libraries: Path) -> None:
    found = json.loads(bill(libraries))
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert found["metadata"]["component"]["name"] == "headgate-spark"
    by_name = {each["name"]: each for each in found["components"]}
    assert {name: each.get("purl") for name, each in by_name.items()} == {
        "headgate": "pkg:pypi/headgate@0.1.0",
        "py4j": "pkg:pypi/py4j@0.10.9.9",
        "guava": "pkg:maven/com.google.guava/guava@33.4.8-jre",
        "derby": None,
        "headgate-shim": None,
    }
    assert by_name["py4j"]["licenses"] == [{"license": {"name": "BSD License"}}]
    assert by_name["headgate"]["licenses"] == [{"expression": "Apache-2.0"}]
    derby = (libraries / "pyspark" / "jars" / "derby-10.16.1.1.jar").read_bytes()
    assert by_name["derby"]["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(derby).hexdigest()}]
    assert by_name["derby"]["version"] == "10.16.1.1"
    assert "version" not in by_name["headgate-shim"]
    refs = [each["bom-ref"] for each in found["components"]]
    assert found["dependencies"][0]["dependsOn"] == refs
    assert len(set(refs)) == len(refs)


def test_a_second_look_at_the_same_gives_the_same_bytes(libraries: Path) -> None:
    assert bill(libraries) == bill(libraries)


def test_each_image_gets_one() -> None:
    script = (IMAGES / "build" / "rootfs.sh").read_text(encoding="utf-8")
    assert '"$python" "$source/spark_jobs/shim/image_sbom.py" "$libraries" "$kind"\n' in script
