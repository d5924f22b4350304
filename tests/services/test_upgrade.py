"""A deployment made when the platform's packages had other names is opened unchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRun
from dagster._check import CheckError

from blogdata.services import dagster_home
from blogdata.services.config import Settings


def test_a_home_that_names_storage_classes_of_before_keeps_its_runs(settings: Settings, tmp_path: Path) -> None:
    made = replace(settings, home=tmp_path)
    with dagster_home.open_instance(made) as instance:
        instance.add_run(DagsterRun(job_name="refresh", run_id="of-before"))
    file = tmp_path / "dagster" / "dagster.yaml"
    now = file.read_text(encoding="utf-8")
    before = now.replace("module: blogdata.services.", "module: services.")
    assert before != now
    file.write_text(before, encoding="utf-8")
    with pytest.raises(CheckError, match=r"module services\.dagster_storage"):
        DagsterInstance.from_config(str(file.parent))
    with dagster_home.open_instance(made) as instance:
        assert [run.run_id for run in instance.get_runs()] == ["of-before"]
    assert file.read_text(encoding="utf-8") == now
