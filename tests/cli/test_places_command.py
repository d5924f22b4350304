"""`blogdata places` counts answers, and can serve a simulated location service."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import published
from blogdata.cli.main import app
from blogdata.lake.lake import Lake
from blogdata.services import config
from blogdata.services.locations import LocationService, journal_of, question_of

ALWAYS = datetime(1970, 1, 1, tzinfo=timezone.utc)


def test_answers_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path))
    settings = config.load()
    assert "there is no silver.places" in str(CliRunner().invoke(app, ["places"]).exception)
    rows = [
        ("8.8.8.8", ALWAYS, "found", "service"),
        ("10.0.0.1", ALWAYS, "reserved", "here"),
        ("9.9.9.9", ALWAYS, "waiting", None),
    ]
    names = ("ip", "valid_from", "outcome", "told_by")
    types = (pa.string(), pa.timestamp("us", tz="UTC"), pa.string(), pa.string())
    columns = zip(names, types, zip(*rows, strict=True), strict=True)
    content = pa.table({name: pa.array(values, type_) for name, type_, values in columns})
    published.publish(Lake(root=str(settings.lake)), "silver.places", None, {"": 3}, content=content)
    with journal_of(settings).held():
        journal_of(settings).append({question_of(row[0], row[1]): {"outcome": "unknown"} for row in rows})
    found = json.loads(CliRunner().invoke(app, ["places", "--json"]).output)
    assert {(one["outcome"], one["told_by"]): one["answers"] for one in found["answers"]} == {
        (outcome, told_by): 1 for _, _, outcome, told_by in rows
    }
    assert found["paid_and_not_published"] == 1, "the answer of the waiting address"
    assert "1 answers are paid for" in CliRunner().invoke(app, ["places"]).output


def test_a_service_can_be_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path))
    command = [sys.executable, "-m", "blogdata", "places", "--simulate", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        url = process.stdout.readline().split('"')[1]
        answers = LocationService(url=url).locate(["8.8.8.8", "10.0.0.1"])
        assert answers["10.0.0.1"].outcome == "reserved"
        assert answers["8.8.8.8"].outcome in ("found", "unknown")
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
