"""The Containerfiles: not root, nothing unpinned by accident, and every path that they copy is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.containerfile import IMAGES, image_config, instructions

ROOT = IMAGES.parent
KINDS = ["operator", "spark"]


def said(kind: str) -> list[tuple[str, str]]:
    return list(instructions((IMAGES / f"{kind}.Containerfile").read_text(encoding="utf-8")))


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_runs_as_spark_does_and_never_as_root(kind: str) -> None:
    assert image_config(kind).user == "185:0"


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_starts_from_the_base_that_a_release_gives_by_digest(kind: str) -> None:
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
