"""Every commit that published something, from the event log: when, by which run, under which contract, and its cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from blogdata.evidence.event import PUBLICATION
from blogdata.evidence.events import EVENTS
from blogdata.lake import arrow
from blogdata.lake.lake import Lake
from blogdata.lake.store_faults import store_faults


@dataclass(frozen=True, kw_only=True)
class PublishedCommit:
    """A commit of a dataset, as the event log has it.

    Args:
        dataset: Name as `layer.table`.
        version: Version of the table.
        recorded_at: When it was recorded, a moment after the commit.
        run_id: The run that made it.
        job: Job of the run; empty if unknown.
        trigger: What started the run; empty if unknown.
        code_version: Version of the code.
        contract: Fingerprint of the contract it was audited against; None for commits recorded without it.
        partitions: Number of partitions it published.
        first: Key of the first of them.
        last: Key of the last of them.
        rows_in: Rows of the layer above that it accounts for.
        rows_out: Rows it published.
        seconds: Duration of the commit, from the start of its computation.
    """

    dataset: str
    version: int
    recorded_at: datetime
    run_id: str
    job: str
    trigger: str
    code_version: str
    contract: str | None
    partitions: int
    first: str
    last: str
    rows_in: int
    rows_out: int
    seconds: float


_QUERY = f"""
SELECT dataset, table_version, max(CAST(recorded_at AS BIGINT)) AS recorded_us, max(run_id) AS run_id,
       max(code_version) AS code_version, count(*) AS partitions, min(partition) AS first, max(partition) AS last,
       sum(rows_in) AS rows_in, sum(rows_out) AS rows_out, max(seconds) AS seconds, max(payload) AS payload
FROM t WHERE kind = {arrow.text(PUBLICATION)}
GROUP BY dataset, table_version ORDER BY recorded_us, dataset, table_version
"""


def published_commits(lake: Lake) -> Sequence[PublishedCommit]:
    """List the commits that the event log has, in the order in which they were recorded.

    The commits of a dataset are in the log once its publications have been read
    (:meth:`blogdata.evidence.events.EventLog.publications`), which adds missing ones.
    """
    log = lake.table(EVENTS)
    if log is None:
        return []
    with store_faults(EVENTS):
        rows = arrow.select(log, _QUERY)
    found = []
    for row in rows:
        payload = json.loads(row["payload"])
        found.append(
            PublishedCommit(
                dataset=row["dataset"],
                version=row["table_version"],
                recorded_at=datetime.fromtimestamp(row["recorded_us"] / 1_000_000, tz=timezone.utc),
                run_id=row["run_id"] or "",
                job=payload["run"].get("job") or "",
                trigger=payload["run"].get("trigger") or "",
                code_version=row["code_version"] or "",
                contract=payload.get("contract"),
                partitions=row["partitions"],
                first=row["first"] or "",
                last=row["last"] or "",
                rows_in=row["rows_in"],
                rows_out=row["rows_out"],
                seconds=row["seconds"] or 0.0,
            )
        )
    return found
