"""The workflows for GitHub: what its own checks would refuse, actions by their commits, and no right without need."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.go_tools import go_tool

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = ROOT / ".github" / "workflows" / "release.yml"
NIGHTLY = ROOT / ".github" / "workflows" / "nightly.yml"
BY_COMMIT = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")
READS = {"contents": "read"}

every_workflow = pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)


def read(workflow: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(workflow.read_text(encoding="utf-8")))


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in read(workflow)["jobs"].values() for step in job["steps"]]


def commands(workflow: Path) -> str:
    return "\n".join(step["run"] for step in steps(workflow) if "run" in step)


@pytest.mark.programs
@every_workflow
def test_a_workflow_is_one_that_github_takes(workflow: Path) -> None:
    checked = subprocess.run(
        [go_tool("actionlint"), "-no-color", "-shellcheck=", "-pyflakes=", workflow],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@every_workflow
def test_an_action_is_named_by_its_commit_with_the_version_beside_it(workflow: Path) -> None:
    lines = [line for line in workflow.read_text(encoding="utf-8").splitlines() if "uses:" in line]

    assert lines
    assert [line for line in lines if not re.fullmatch(r" +- uses: \S+@[0-9a-f]{40} # v[\d.]+", line)] == []
    assert all(BY_COMMIT.fullmatch(step["uses"]) for step in steps(workflow) if "uses" in step)


@every_workflow
def test_a_workflow_may_only_read_and_only_a_release_gives_a_job_more(workflow: Path) -> None:
    """And no checkout leaves a token where what is built could read it."""
    parsed = read(workflow)
    more = {name for name, job in parsed["jobs"].items() if job.get("permissions", READS) != READS}

    assert parsed["permissions"] == READS
    assert more == ({"artefacts", "images"} if workflow == RELEASE else set())
    checkouts = [step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False] * len(parsed["jobs"])


@every_workflow
def test_what_others_have_named_is_in_no_command(workflow: Path) -> None:
    """A branch may be called `$(…)`: a command has it from its environment."""
    assert "${{" not in commands(workflow)


def test_each_commit_is_tried_by_the_command_that_tries_it_here() -> None:
    assert ".ci/run" in commands(ROOT / ".github" / "workflows" / "ci.yml")


def test_what_is_not_tried_for_each_commit_is_tried_each_night() -> None:
    targets = re.findall(r"^(test-[a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    job = read(NIGHTLY)["jobs"]["test"]

    assert job["strategy"]["matrix"]["target"] == sorted({*targets} - {"test-quick"})  # a part of `test`
    assert 'make "$TARGET"' in commands(NIGHTLY)


def test_both_images_are_built_for_each_commit_and_for_a_release() -> None:
    kinds = sorted(path.name.split(".")[0] for path in (ROOT / "images").glob("*.Containerfile"))
    for name in ("ci", "release"):
        images = read(ROOT / ".github" / "workflows" / f"{name}.yml")["jobs"]["images"]
        built = "\n".join(step.get("run", "") for step in images["steps"])
        assert images["strategy"]["matrix"]["image"] == kinds
        assert re.search(r'--file "images/\$IMAGE\.Containerfile"', built)


def test_a_release_pushes_its_images_to_where_the_chart_takes_them_from() -> None:
    chart = read(ROOT / "charts" / "headgate" / "values.yaml")["image"]["repository"]
    registry, _, name = chart.rpartition("/")
    said = commands(RELEASE)
    (told,) = re.findall(r"\$\((sed .*)\)", said)
    found = subprocess.run(["sh", "-c", told], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    checked = re.findall(r"cosign verify (\S+):", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))

    assert (found.strip(), name) == (registry, "operator")
    assert 'name="$REGISTRY/$IMAGE"' in said
    assert "ghcr.io" not in said
    assert checked == [chart]


def test_whatever_a_release_hands_out_is_signed_without_a_key_and_its_origin_is_attested() -> None:
    jobs = read(RELEASE)["jobs"]
    said = {
        name: "\n".join(str(step.get("run") or step.get("uses")) for step in job["steps"])
        for name, job in jobs.items()
    }

    assert "sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS" in said["artefacts"]
    assert 'sign --yes "$NAME@$DIGEST"' in said["images"], "a tag may be moved after it was signed"
    for name, job in jobs.items():
        assert "actions/attest-build-provenance@" in said[name]
        assert job["permissions"]["id-token"] == job["permissions"]["attestations"] == "write"
    assert "--key" not in said["artefacts"] + said["images"]


def test_how_a_signature_is_checked_names_the_workflow_that_signs() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")

    assert f"{RELEASE.relative_to(ROOT)}@refs/tags/" in page
    assert page.count("--certificate-oidc-issuer https://token.actions.githubusercontent.com") == 2
