"""The page of the commands says what the commands say."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.commands import render_commands

from support.command_line import Headgate

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
AGAINST_A_CLUSTER = ("status", "top", "suspend", "resume", "pause", "unpause", "checkpoint", "explain")


def test_the_committed_page_is_what_the_commands_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_commands(), "run make generate"


@pytest.mark.parametrize("command", AGAINST_A_CLUSTER)
def test_every_command_against_a_cluster_documents_its_exit_codes(command: str, headgate: Headgate) -> None:
    (section,) = (
        each for each in render_commands().split("\n## ") if each.startswith(f"`headgate {command}`")
    )

    for words in ("Exit code 0: ", " 1: ", "2: a bad option"):
        assert words in " ".join(section.split())
    assert "[of a cluster](#options-of-a-cluster)" in section
    assert "--kubeconfig" in headgate(command, "--help").out


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("status", "[OPTIONS] [NAME]"),
        ("doctor", "[OPTIONS] [NAME]"),
        ("support-bundle", "[OPTIONS] [NAME]"),
        ("explain", "[OPTIONS] [FILE]"),
        ("checkpoint", "[OPTIONS] {NAME} [QUERY]"),
    ],
)
def test_what_may_be_left_out_is_in_one_pair_of_brackets(
    command: str, usage: str, headgate: Headgate
) -> None:
    assert usage in headgate(command, "--help").out
