"""landing.hourly_access_logs: which runs split the landed logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.sources import split_access_logs
from blogdata.landing.log_splitter import LOGS, unsplit_logs
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.runs.refresh_request import Request

LINE = b'192.0.2.1 - - [05/Jan/2026:10:05:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n'


@pytest.mark.parametrize(
    ("asked", "splits"),
    [
        ({}, True),
        # `run --for` selects a dataset with everything upstream.
        ({"datasets": ["bronze.visits", "silver.visits"]}, True),
        ({"datasets": ["bronze.users"]}, False),
        ({"datasets": ["bronze.visits"], "only_again": True}, False),
    ],
)
def test_a_run_splits_the_logs_unless_it_computes_nothing_of_them(
    tmp_path: Path, asked: dict[str, Any], splits: bool
) -> None:
    landing = tmp_path / "landing"
    (landing / LOGS).mkdir(parents=True)
    (landing / LOGS / "access.log").write_bytes(LINE)

    @dg.graph
    def alone() -> None:
        split_access_logs()

    lake = LakeResource(root=str(tmp_path / "lake"), landing=str(landing))
    deployment = DeploymentResource(home=str(tmp_path))
    resources = {"lake": lake, "deployment": deployment, "request": Request(**asked)}
    assert alone.execute_in_process(resources=resources).success
    parts = [part.read_bytes() for part in landing.glob("visits/*/*/*.log")]
    assert (parts, unsplit_logs(landing)) == (([LINE], []) if splits else ([], [landing / LOGS / "access.log"]))
