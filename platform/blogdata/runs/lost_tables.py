"""Creates tables again, empty, that the lake lost: they have no publications any more, so all of their rows are stale.

Versions must not come twice, since readers compare those they have read: a table passes over those that were recorded.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from blogdata.contract.contract import Contract
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.landing.full_loader import ACCEPT_SIZE
from blogdata.ledger.events import EventLog
from blogdata.planning.graph import Task
from blogdata.planning.staleness import Staleness
from blogdata.table import members, tables
from blogdata.table.faults import contended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_inputs(events: EventLog, task: Task, planner: Staleness) -> None:
    """Refuse to create a lost table again if partitions with rows could not be computed again."""
    for name in task.datasets:
        if events.gone(name) < 0:
            continue
        lines = events.lost_lines(name)
        had = {key for key, entry in lines.items() if entry.rows_out and entry.expired is None}
        if lacking := sorted(had - planner.computable(task)):
            text = "bring one of both back from a backup; or go on without these rows: "
            raise PlatformError(
                what=f"the table is gone, and so is what {len(lacking)} of its partitions were computed from",
                where=f"{name}, {lacking[0]}",
                next_step=Remedy(text, Run(accept=ACCEPT_SIZE)),
            )


def begin_anew(spark: SparkSession, events: EventLog, contracts: Sequence[Contract]) -> None:
    """Create the tables of a task again if all are gone; refuse if one is there that does not fit the others."""
    lake, gone = events.lake, [contract.dataset for contract in contracts if events.gone(contract.dataset) >= 0]
    if not gone:
        return
    present = {of.dataset: table for of in contracts if (table := lake.table(of.dataset)) is not None}
    # An empty one is of a process that died before it had made the main table.
    filled = [name for name, table in present.items() if name == contracts[0].dataset or table.file_uris()]
    if filled or lake.folder(gone[0]) is None:
        text = f"bring it back from a backup; or move away the folders of {', '.join(filled or gone)}, and run: "
        raise PlatformError(
            what=f"{', '.join(gone)} is gone, or older than what was published of it",
            where=lake.root,
            next_step=Remedy(text, Run()),
        )
    for contract in (*contracts[1:], contracts[0]):
        name, recorded, folder = contract.dataset, events.recorded(contract.dataset), lake.folder(contract.dataset)
        if recorded < 0 or folder is None or name in present:
            continue
        # Spark remembers the logs that it has seen, by their paths.
        model = f"{name}/.model/{time.time_ns()}"
        if contract.replaced_kept is None:
            tables.enforce(spark, lake, replace(contract, dataset=model))
        else:
            members.commit(lake, model, members.NONE_YET, [], {})
        events.begin_anew(name, recorded)
        take_log(folder, Path(lake.path(model)), recorded + 1)


def take_log(folder: Path, model: Path, version: int) -> None:
    """Move the log of an empty table to a folder that has none, after it has passed over all versions up to one."""
    for passed in range(DeltaTable(model).version() + 1, version + 1):
        entry = {"commitInfo": {"timestamp": int(time.time() * 1000), "operation": "CREATE TABLE"}}
        (model / "_delta_log" / f"{passed:020}.json").write_text(json.dumps(entry) + "\n", "utf-8")
    DeltaTable(model).create_checkpoint()
    try:
        (model / "_delta_log").rename(folder / "_delta_log")
    except OSError as error:
        raise contended(folder.name, "create its table again") from error
    shutil.rmtree(model, ignore_errors=True)
