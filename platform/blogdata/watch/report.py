"""The report of a deployment: its figures, as one value that both the page and the JSON are made of."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from assets.stream_inputs import streamed_inputs
from blogdata.files import write_whole
from blogdata.landing.readiness_marker import LandingZone
from blogdata.ledger.events import EventLog
from blogdata.planning.snapshot import Observed, Snapshot
from blogdata.table.lake import Lake
from blogdata.watch import blog_part as blog
from blogdata.watch import report_page
from blogdata.watch.data_part import DataPart, data_part
from blogdata.watch.report_page import Audience
from quality.contracts import EVERY, GRAPH

DAYS = 400
"""Days of history that a report has: the newest ones, thirteen months of them."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The figures of a deployment when they were computed; `blog` is None if no page view is published."""

    made_at: datetime
    blog: Audience | None
    data: DataPart

    def as_json(self) -> Any:
        return json.loads(json.dumps(asdict(self), default=datetime.isoformat))

    @property
    def has_anything(self) -> bool:
        return any(dataset.partitions for dataset in self.data.datasets)

    def html(self) -> str:
        return report_page.render(self.as_json(), title="The blog and its data")


def compute(
    lake: Lake,
    zone: LandingZone,
    checkpoints: Path,
    *,
    now: datetime,
    days: int = DAYS,
    own_hosts: Collection[str] = (),
) -> Report:
    """Compute the report, without Spark; without own hosts they are derived from the page views."""
    look = Snapshot(zone, EventLog(lake))
    deployment = Observed(graph=GRAPH, look=look, now=now, streams=streamed_inputs(checkpoints))
    with ThreadPoolExecutor(max_workers=1) as beside:
        # Reading the page views is the work of native code, which lets other threads go on.
        audience = beside.submit(blog.audience, lake, days=days, own_hosts=own_hosts)
        data = data_part(deployment, EVERY)
        return Report(made_at=now, blog=audience.result(), data=data)


def write(report: Report, file: Path) -> None:
    """Write the page; a reader sees the earlier one or this one, never a part. Its time is that of its figures."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, report.html().encode("utf-8"))
    os.utime(file, (report.made_at.timestamp(), report.made_at.timestamp()))
