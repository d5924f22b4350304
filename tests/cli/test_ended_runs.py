"""What `blogdata ui` prints about a sensor's run, and the report it writes afterwards; without Spark."""

import re
from pathlib import Path

import dagster as dg
import pytest

import published
from assets.report import FILE
from blogdata.cli import ended_runs
from blogdata.cli.ended_runs import COMMAND, EndedRuns
from blogdata.lake.lake import Lake
from blogdata.services import config, dagster_home


@dg.op
def publishes(context: dg.OpExecutionContext) -> None:
    context.log.debug("a detail")
    context.log.warning("a warning")


@dg.op
def fails() -> None:
    raise ValueError


@dg.job
def refresh() -> None:
    publishes()


@dg.job
def freeze() -> None:
    fails()


def test_a_line_for_each_run_and_the_report_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ended_runs, "_LOOK_SECONDS", 0.0)
    settings = config.load({"BLOGDATA_HOME": str(tmp_path), "BLOGDATA_LAKE": str(tmp_path / "lake")})
    with dagster_home.open_instance(settings) as instance:
        seen = EndedRuns(settings, instance)
        published.bronze(Lake(root=str(settings.lake)), {"2026-01-05T10": {"2026-01-05T10": 3}})
        refresh.execute_in_process(
            instance=instance, tags={"dagster/sensor_name": "arrivals", "blogdata/about": "10 h"}
        )
        refresh.execute_in_process(instance=instance, tags={COMMAND: "blogdata run"})
        freeze.execute_in_process(instance=instance, raise_on_error=False)
        printed = capfd.readouterr().err
        assert "a warning" in printed
        assert not re.search(r"DEBUG|INFO|\x1b", printed), printed
        seen.look()
        done, failed = capfd.readouterr().out.splitlines()
        assert re.fullmatch(r"\S+Z refresh by arrivals \(10 h\): done in \d+ s, run [0-9a-f]{8}", done)
        assert re.fullmatch(r"\S+Z freeze by hand: FAILED in \d+ s, run [0-9a-f]{8}", failed)
        written = (settings.home / FILE).stat().st_mtime_ns
        seen.look()
        assert (capfd.readouterr().out, (settings.home / FILE).stat().st_mtime_ns) == ("", written)
