"""Refused batches: the rows that failed an audit, kept under a name for inspection until they expire.

The files of the partitions at fault become a table `refused.<name>` beside the layers, named after the dataset and the
first partition: a batch that is refused again replaces itself.
"""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from deltalake import DeltaTable, Schema

from blogdata.errors.remedies import Query, Remedy
from blogdata.table import members
from blogdata.table.actions import DataFile
from blogdata.table.committer import Mark, OpenCommit
from blogdata.table.faults import AuditFailed
from blogdata.table.lake import Lake

LAYER = "refused"
KEPT = timedelta(days=14)
"""How long a refused batch is kept for inspection."""


def name_of(dataset: str, partitions: Sequence[str]) -> str:
    """Return the name of a refused batch: letters, digits and underscores, to be typed in a query."""
    words = [dataset, min(partitions, default="")]
    return f"{LAYER}.{re.sub(r'[^a-z0-9]+', '_', '_'.join(words).lower()).strip('_')}"


def keep(
    files: Sequence[DataFile], table: DeltaTable, lake: Lake, failed: AuditFailed, declared: Sequence[str]
) -> None:
    """Move the files of a refused write to a table of their own, and name it in the error."""
    columns = table.metadata().partition_columns
    name = name_of(members.dataset_of(failed.dataset), sorted(failed.partitions) if columns else [])
    chosen = [file for file in files if not failed.partitions.isdisjoint(file.partition_values.values())]
    # Rows of a partition that was not declared lie in the file of one that was.
    if not columns or failed.partitions - {*declared}:
        chosen = [*files]
    schema = json.loads(table.schema().to_json())
    # Null where none may be, or another value than the generated one, may be why they are refused.
    schema["fields"] = [{**field, "nullable": True, "metadata": {}} for field in schema["fields"]]
    stored, own, new = lake.files(lake.root), *(dataset.replace(".", "/", 1) for dataset in (failed.dataset, name))
    # A removal that was cut off has left half of a table.
    stored.delete_dir_contents(new, missing_dir_ok=True)
    DeltaTable.create(
        lake.path(name),
        Schema.from_json(json.dumps(schema)),
        partition_by=columns or None,
        storage_options=dict(lake.storage_options),
    )
    for file in chosen:
        stored.move(f"{own}/{file.path}", f"{new}/{file.path}")
    for folder in {"/".join(file.path.split("/")[:2]) for file in files}:
        stored.delete_dir(f"{own}/{folder}")
    # Without statistics: they would put values of persons into the log.
    moved = [replace(file, statistics={"numRecords": file.rows}) for file in chosen]
    OpenCommit(lake, name, Mark(writer=f"{LAYER}/{uuid.uuid4()}", batch=0)).append(moved, {})
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
