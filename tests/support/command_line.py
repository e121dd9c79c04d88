"""`headgate` as a shell sees it: arguments in, exit code and output back, in this process."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from headgate.cli.main import main


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


class Headgate:
    """The command line, run in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str | Path, stdin: bytes = b"", called: str = "headgate") -> Ended:
        self._monkeypatch.setattr(sys, "argv", [called, *map(str, arguments)])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)
