"""The locks: everything by version and digest, all of them of one mind, and nothing comes in beside them."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from locks.lockfile import HERE, OF_SETUP, LockError, Pin, parse, read, with_spark, written
from locks.make import faults, needed, project
from support.containerfile import IMAGES

ROOT = HERE.parent
LOCKS = {name: read(name) for name in OF_SETUP}
SUPPORTED = re.findall(
    r'"(4[\d.]+)"',
    re.search(r"^VERSIONS = .*", (ROOT / "tests" / "spark_versions" / "run.py").read_text(), re.MULTILINE)[0],
)


@pytest.mark.parametrize("lock", sorted(path.stem for path in HERE.glob("*.txt")))
def test_each_library_of_a_lock_has_a_digest(lock: str) -> None:
    pins = parse((HERE / f"{lock}.txt").read_text(encoding="utf-8"))
    assert pins
    assert all(pin.hashes for pin in pins)
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for pin in pins for digest in pin.hashes)


def test_a_lock_is_read_as_it_is_written() -> None:
    pins = read("operator", "spark")
    assert {pin.name: pin for pin in parse(written(pins))} == pins


def test_the_locks_are_those_of_the_project() -> None:
    assert list(faults(project(), LOCKS, needed())) == []


def test_what_a_lock_lacks_is_told_with_who_needs_it() -> None:
    operator = {name: pin for name, pin in LOCKS["operator"].items() if name not in ("kopf", "aiohttp")}
    found = set(faults(project(), {**LOCKS, "operator": operator}, needed()))
    assert "locks/operator.txt lacks kopf" in found
    assert any(fault.startswith("locks/operator.txt lacks aiohttp, which ") for fault in found)


def test_a_version_that_the_project_does_not_take_is_told() -> None:
    spark = {**LOCKS["spark"], "pyspark": replace(LOCKS["spark"]["pyspark"], version="3.5.1")}
    assert "locks/spark.txt has pyspark 3.5.1, and not pyspark<4.4,>=4.0" in faults(
        project(), {**LOCKS, "spark": spark}, {}
    )


def test_a_library_without_a_digest_is_told() -> None:
    bare = {"a": Pin("a", "1.0", "", ())}
    assert "a has no digest" in faults(project(), {**LOCKS, "test": {**LOCKS["test"], **bare}}, {})


@pytest.mark.parametrize("line", ["kopf>=1.45", "kopf==1.45.2 --hash=md5:1", "-e ."])
def test_a_line_that_pins_nothing_is_refused(line: str) -> None:
    with pytest.raises(LockError, match="not a pinned library"):
        parse(f"{line}\n")


def test_two_locks_that_do_not_agree_are_refused(tmp_path: Path) -> None:
    for lock, version in (("operator", "1"), ("spark", "2")):
        (tmp_path / f"{lock}.txt").write_text(f"a=={version} \\\n    --hash=sha256:{version * 64}\n")
    with pytest.raises(LockError, match=re.escape("spark.txt has a 2, another 1")):
        read("operator", "spark", folder=tmp_path)


@pytest.mark.parametrize("version", SUPPORTED)
def test_an_image_may_have_each_spark_that_is_supported(version: str) -> None:
    pins = with_spark(version, read("spark"))
    assert pins["pyspark"].version == version
    assert pins["pyspark"].hashes
    assert pins.keys() == LOCKS["spark"].keys()


def test_another_spark_is_refused_with_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "locks.lockfile", "--spark", "3.5.1", "spark"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "add pyspark==3.5.1 to locks/pyspark.txt and run `make lock`" in done.stderr
    assert done.stdout == ""


def installations(text: str) -> list[str]:
    """The calls of pip that install, each on one line."""
    joined = re.sub(r"\\\n\s*", " ", text.replace("PIP_INSTALL = $(BIN)/python -m pip install", ""))
    return re.findall(r"(?:pip install|-m pip install|\(PIP_INSTALL\)) [^&\n]*", joined)


@pytest.mark.parametrize(
    "file",
    [
        ROOT / "Makefile",
        IMAGES / "operator.Containerfile",
        IMAGES / "spark.Containerfile",
        IMAGES / "build" / "rootfs.sh",
    ],
    ids=lambda file: file.name,
)
def test_pip_takes_what_is_locked_or_our_own_package_without_asking_an_index(file: Path) -> None:
    calls = installations(file.read_text(encoding="utf-8"))
    assert len(calls) >= 2
    for call in calls:
        assert "--require-hashes" in call or "--no-deps" in call, call
        assert "--no-build-isolation" in call or "build.txt" in call or ".whl" in call, call


def test_pip_takes_no_file_with_another_digest(tmp_path: Path) -> None:
    """What `--require-hashes` is for, with a wheel of this machine in place of an index."""
    (tmp_path / "a-1.0.dist-info").mkdir()
    wheel = tmp_path / "a-1.0-py3-none-any.whl"
    subprocess.run(
        [sys.executable, "-c", "import zipfile, sys; zipfile.ZipFile(sys.argv[1], 'w').close()", wheel],
        check=True,
    )
    lock = tmp_path / "lock.txt"
    lock.write_text(written({"a": Pin("a", "1.0", "", (f"sha256:{'0' * 64}",))}))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--no-index", "--find-links", tmp_path),
            *("--require-hashes", "-r", lock, "-d", tmp_path / "out"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


def test_what_a_library_needs_elsewhere_is_no_fault_here() -> None:
    needs = {"a": [Requirement("b>=2")], "elsewhere": [Requirement("c")]}
    pins = {"a": Pin("a", "1", "", ("x",)), "b": Pin("b", "1", "", ("x",))}
    found = list(faults(project(), {**LOCKS, "test": {**LOCKS["test"], **pins}}, needs))
    assert found == ["locks/test.txt has b 1, and not b>=2, which a needs"]
