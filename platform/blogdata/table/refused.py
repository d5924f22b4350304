"""Refused batches: the rows that failed an audit, kept under a name for inspection until they expire.

The rows of the partitions at fault are computed once more, and stored as a table `refused.<name>` beside the layers,
named after the dataset and the first partition: a batch that is refused again replaces itself.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from blogdata.errors import foreign
from blogdata.errors.remedies import Query, Remedy
from blogdata.table import members
from blogdata.table.faults import AuditFailed
from blogdata.table.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from blogdata.table.target import Target

LAYER = "refused"
KEPT = timedelta(days=14)
"""How long a refused batch is kept for inspection."""


def name_of(dataset: str, partitions: Sequence[str]) -> str:
    """Return the name of a refused batch: letters, digits and underscores, to be typed in a query."""
    words = [dataset, min(partitions, default="")]
    return f"{LAYER}.{re.sub(r'[^a-z0-9]+', '_', '_'.join(words).lower()).strip('_')}"


def keep(rows: DataFrame, target: Target, failed: AuditFailed) -> None:
    """Store the rows of a refused write, and name them in its error; the error says so if that is not possible."""
    from pyspark.errors import PySparkException

    dataset, column = members.dataset_of(failed.dataset), target.contract.partition_column
    partitions = sorted(failed.partitions) if column else []
    name = name_of(dataset, partitions)
    try:
        kept = rows if column is None else rows.where(rows[column].isin(partitions))
        writer = kept.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        # Without statistics: they would put values of persons into the log.
        writer.option("delta.dataSkippingNumIndexedCols", "0").save(target.lake.path(name))
    except PySparkException as error:
        failed.remedy = Remedy(failed.remedy, f"; the refused rows could not be kept: {foreign.unquoted(error)}")
    else:
        failed.remedy = Remedy(failed.remedy, "; the refused rows: ", Query(sql=f"SELECT * FROM {name}"))


def kept(lake: Lake) -> dict[str, datetime]:
    """List the refused batches that are kept, each with the time when it was refused, UTC; not in an object store."""
    home, batches = lake.folder(LAYER), dict[str, datetime]()
    for name in sorted(f"{LAYER}.{folder.name}" for folder in home.iterdir()) if home and home.is_dir() else []:
        # A write that was killed before its commit has left no table.
        if (table := lake.table(name)) is not None:
            _, commit = next(lake.commits(table))
            batches[name] = datetime.fromtimestamp(int(commit["timestamp"]) / 1000, tz=timezone.utc)
    return batches


def expire(lake: Lake, *, now: datetime) -> list[str]:
    """Remove the refused batches whose time is over, and return their names."""
    past = [name for name, refused_at in kept(lake).items() if refused_at + KEPT <= now]
    for name in past:
        folder = lake.folder(name)
        assert folder is not None
        shutil.rmtree(folder)
    return past
