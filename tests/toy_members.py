"""A dataset whose weeks are separate tables, made without Spark."""

from datetime import datetime, timezone

import pyarrow as pa
from deltalake import write_deltalake

from blogdata.table import members
from blogdata.table.lake import Lake
from blogdata.table.members import Member

DATASET = "gold.weeks"
NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)


def member(lake: Lake, name: str, *, rows: int = 1, since: int = 0, until: datetime | None = None) -> Member:
    """Make the table of a week; return its row of the pointer."""
    location = f"{name}-a"
    write_deltalake(
        lake.path(members.table_of(DATASET, location)),
        pa.table({"week": [name] * rows, "click": list(range(rows))}),
        partition_by=["week"],
    )
    return Member(
        name=name,
        location=location,
        version=0,
        rows_of={name: rows},
        partition_column="week",
        columns={"week": "STRING", "click": "BIGINT"},
        frozen=False,
        run_id="run",
        since_version=since,
        visible_from=NOON,
        visible_until=until,
    )
