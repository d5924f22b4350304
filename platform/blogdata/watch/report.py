"""The report of a deployment: its figures, as one value that both the page and the JSON are made of."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from blogdata.files import write_whole
from blogdata.operate.config import Settings
from blogdata.watch import blog_part as blog
from blogdata.watch import report_page
from blogdata.watch.data_part import DataPart, data_part
from blogdata.watch.findings import observed
from blogdata.watch.report_page import Audience
from quality.contracts import EVERY

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


def compute(settings: Settings, *, now: datetime | None = None, days: int = DAYS) -> Report:
    """Compute the report, without Spark; the blog's own hosts are those of the settings, or found in the page views."""
    deployment = observed(settings, now)
    lake = deployment.look.events.lake
    with ThreadPoolExecutor(max_workers=1) as beside:
        # Reading the page views is the work of native code, which lets other threads go on.
        audience = beside.submit(blog.audience, lake, days=days, own_hosts=settings.site_hosts)
        data = data_part(deployment, EVERY)
        return Report(made_at=deployment.now, blog=audience.result(), data=data)


def write(report: Report, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, report.html().encode("utf-8"))
