"""Runs the command line in the tests' own process."""

from __future__ import annotations

import sys

import pytest

from blogdata.cli.main import main


class Said:
    """Runs a command; returns its exit code, stdout and stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._patch.setattr(sys, "argv", ["blogdata", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        output = self._capsys.readouterr()
        return int(ended.value.code or 0), output.out, output.err
