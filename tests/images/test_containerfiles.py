"""The Containerfiles: not root, nothing unpinned by accident, every path that they copy is there; and an image holds
what that of the node tests does, which is made without them."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest

from support.containerfile import IMAGES, image_config, instructions, stages

ROOT = IMAGES.parent
KINDS = ["operator", "spark"]
CONFIGURATION = {"ARG", "CMD", "ENTRYPOINT", "ENV", "EXPOSE", "LABEL", "USER", "WORKDIR"}
"""Words that put nothing into an image."""


def said(kind: str) -> list[tuple[str, str]]:
    return list(instructions((IMAGES / f"{kind}.Containerfile").read_text(encoding="utf-8")))


def is_in_context(path: str) -> bool:
    """Whether a builder gets the file: of the patterns that match it or a folder of it, the last one decides."""
    kept = True
    places = [path, *map(str, PurePosixPath(path).parents)][:-1]
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if any(fnmatch(place, line.removeprefix("!")) for place in places):
            kept = line.startswith("!")
    return kept


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_runs_as_spark_does_and_never_as_root(kind: str) -> None:
    assert image_config(kind).user == "185:0"


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_starts_from_the_one_base_that_a_build_may_replace(kind: str) -> None:
    assert {text.split()[0] for word, text in said(kind) if word == "FROM"} == {"${BASE}"}
    assert [text for word, text in said(kind) if text.startswith("BASE=")] == [
        "BASE=docker.io/library/debian:bookworm-slim"
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_copied_and_run_from_the_tree_is_there(kind: str) -> None:
    copied = [
        text.split()[0] for word, text in said(kind) if word == "COPY" and not text.startswith("--from")
    ]
    mounted = [text.partition("source=")[2].split(",")[0] for word, text in said(kind) if "source=" in text]
    run = [word for _, text in said(kind) for word in text.split() if word.startswith("images/")]

    assert [path for path in (*copied, *mounted, *run) if not (ROOT / path).exists()] == []
    assert (IMAGES / "build" / f"{kind}.packages").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_is_filled_by_nothing_but_what_fills_that_of_the_node_tests(kind: str) -> None:
    """Those have the packages that are listed, the user, and what `rootfs.sh` writes: see `support.node_images`."""
    build, final = stages(kind)
    filled = [(word, text) for word, text in final[1:] if word not in CONFIGURATION]
    assert filled == [
        ("RUN", f"--mount=type=bind,source=images/build,target=/build /build/packages.sh {kind}"),
        ("COPY", "--from=build /rootfs/ /"),
    ]
    assert re.fullmatch(rf"(\w+=\S+ )+images/build/rootfs\.sh /rootfs {kind}", build[-1][1])


def test_the_packages_of_an_image_are_those_that_are_listed_and_its_user_the_one_that_is_added() -> None:
    script = (IMAGES / "build" / "packages.sh").read_text(encoding="utf-8")

    assert re.findall(r"^.*apt-get install.*$", script, re.MULTILINE) == [
        'xargs -a "$here/$1.packages" apt-get install --yes --no-install-recommends'
    ]
    assert script.endswith('\n"$here/user.sh" /\n')


def test_of_the_documents_of_debians_packages_the_licences_stay(tmp_path: Path) -> None:
    documents = tmp_path / "usr" / "share" / "doc"
    for name in (
        "libc6/copyright",
        "libc6/changelog.gz",
        "libc6/examples/one.c",
        "tini/README",
        "tini/copyright",
    ):
        (documents / name).parent.mkdir(parents=True, exist_ok=True)
        (documents / name).write_text("x", encoding="utf-8")
    (documents / "libc-bin").symlink_to("libc6")
    (documents / "libc6" / "NEWS").symlink_to("changelog.gz")
    manual = tmp_path / "usr" / "share" / "man" / "man1" / "tini.1"
    manual.parent.mkdir(parents=True)
    manual.touch()

    subprocess.run([IMAGES / "build" / "documents.sh", tmp_path], check=True)

    left = {str(path.relative_to(documents)) for path in documents.rglob("*")}
    assert left == {"libc6", "libc6/copyright", "libc-bin", "tini", "tini/copyright"}
    assert not manual.exists()
    script = (IMAGES / "build" / "packages.sh").read_text(encoding="utf-8")
    assert "/usr/share/doc" not in script
    assert '"$here/documents.sh" /' in script


def test_the_image_has_the_spark_that_the_tests_run_with() -> None:
    pinned = (ROOT / "locks" / "spark.txt").read_text(encoding="utf-8")
    (version,) = (
        text.removeprefix("SPARK_VERSION=")
        for word, text in said("spark")
        if word == "ARG" and "SPARK" in text
    )

    assert f"\npyspark=={version} \\\n" in pinned


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".venv/bin/python",
        "build/images/spark.tar",
        "operator/headgate/__pycache__/clock.cpython-311.pyc",
        "spark_jobs/headgate_spark/jars/headgate-shim.jar",
        "tests/conftest.py",
    ],
)
def test_a_builder_gets_nothing_that_it_does_not_need(path: str) -> None:
    assert not is_in_context(path)


@pytest.mark.programs
def test_a_builder_gets_all_that_the_package_is_made_from(tmp_path: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(is_in_context, listed.stdout.splitlines()):
        copy = tmp_path / "context" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    made = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
            *("--wheel-dir", tmp_path, tmp_path / "context"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("headgate-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"headgate/cli/main.py", "headgate_spark/jars/headgate-shim.jar"} <= names
    for name in ("locks/operator.txt", "locks/lockfile.py", "images/build/rootfs.sh", "images/entrypoint.sh"):
        assert (tmp_path / "context" / name).exists()


def test_both_images_find_the_package_where_it_is_put() -> None:
    script = (IMAGES / "build" / "rootfs.sh").read_text(encoding="utf-8")

    assert "libraries=$root/opt/headgate" in script
    for kind in KINDS:
        env = dict(pair.split("=", 1) for pair in image_config(kind).env)
        assert env["PYTHONPATH"] == "/opt/headgate"
        assert env["PATH"].split(":")[0] == "/opt/headgate/bin"


def test_the_spark_image_starts_with_the_entry_point_that_is_installed() -> None:
    assert image_config("spark").entrypoint == ("/opt/entrypoint.sh",)
    assert Path(IMAGES / "entrypoint.sh").stat().st_mode & 0o111
