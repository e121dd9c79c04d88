"""Which cluster the operator is of, and what it says where there is none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headgate.errors import UsageError
from headgate.factory.cluster import connect


@pytest.mark.parametrize(
    ("kubeconfig", "said"),
    [
        (None, "no cluster to connect to: there is no ~/.kube/config, and this is not a pod; set KUBECONFIG"),
        ("", "no cluster to connect to: there is no ~/.kube/config, and this is not a pod; set KUBECONFIG"),
        (
            "none:nope",
            "no cluster to connect to: KUBECONFIG is none:nope, and there is no such file; set KUBECONFIG",
        ),
    ],
)
def test_where_there_is_no_kubeconfig_that_is_said(
    kubeconfig: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    if kubeconfig is not None:
        monkeypatch.setenv("KUBECONFIG", kubeconfig)

    with pytest.raises(UsageError) as refused:
        asyncio.run(connect())

    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("contexts:\n\t- {}", "malformed YAML in line 2: found character"),
        ("[1]", "has not the form of a kubeconfig"),
        ("\0", "unacceptable character"),
    ],
)
def test_a_kubeconfig_that_is_none_is_told_in_a_sentence(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))

    with pytest.raises(UsageError, match=said):
        asyncio.run(connect())
