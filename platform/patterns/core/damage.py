"""Finds what a failing disk has done to a table, and brings the table back to what the rest of it tells.

Delta trusts its files: a checkpoint that is cut off stops every reader although the commits beside it tell the same,
and a commit that is cut off stops every reader although all versions before it are whole. A data file that is gone is
noticed by the first query that needs it. Nothing here guesses: what cannot be told from the rest of the table is taken
back in the event log, so that the next run computes it again from the layer above.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from patterns.core.commit import WHOLE_TABLE
from patterns.core.contract import Contract
from patterns.core.errors import ConfigurationError
from patterns.core.events import EventLog
from patterns.core.lake import Lake
from patterns.core.store_faults import LogDamaged

ASIDE = ".damaged"
"""Ending of the files that were put aside; nothing is deleted."""
_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint(\..+)?\.parquet$")


class Kind(str, Enum):
    """What is damaged."""

    CHECKPOINT = "checkpoint"
    COMMIT = "commit"
    DATA = "data file"


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One damaged file of a table.

    Args:
        kind: What it is.
        file: Where it lies, or lay.
        problem: What is wrong with it.
        version: Table version of a commit or checkpoint, the newest one for a data file.
        partition: Partition of a data file; "" for a table that is written whole; None for the log.
    """

    kind: Kind
    file: Path
    problem: str
    version: int
    partition: str | None = None


def inspect(lake: Lake, dataset: str, partition_column: str | None) -> Sequence[Damage]:
    """Look at every file of a table's log, and at the data files of its newest version.

    Args:
        lake: The tables' root; a local one.
        dataset: Name as `layer.table`.
        partition_column: Column its table is partitioned by.

    Returns:
        What is damaged: of the log first, and of the data only when the log is whole.

    Raises:
        ConfigurationError: The lake is in an object store, which checks its objects itself.
    """
    folder = _folder(lake, dataset)
    if not (folder / "_delta_log").is_dir():
        return ()
    return [*_of_the_log(folder / "_delta_log")] or _of_the_data(lake, dataset, partition_column)


def mend(lake: Lake, events: EventLog, contract: Contract, damages: Sequence[Damage]) -> Sequence[str]:
    """Bring a table back to what its other files tell; whatever they do not tell is to be computed again.

    Args:
        lake: The tables' root; a local one.
        events: The event log.
        contract: Of the table.
        damages: What :func:`inspect` found.

    Returns:
        What was done, a sentence each.

    Raises:
        LogDamaged: The rest of the table does not tell what the damaged file said.
    """
    done = []
    for damage in damages:
        log = _folder(lake, contract.dataset) / "_delta_log"
        if damage.kind is Kind.CHECKPOINT:
            _without_checkpoint(contract.dataset, log, damage)
            done.append(f"{damage.file.name} was put aside: the commits tell the same")
        elif damage.kind is Kind.COMMIT:
            _without_commit(contract.dataset, log, damage)
            taken_back = events.take_back(contract.dataset, since=damage.version)
            done.append(
                f"version {damage.version} now is what version {damage.version - 1} was; to be computed again: "
                + (", ".join(taken_back) or "whatever the next run finds missing")
            )
        else:
            assert damage.partition is not None
            for dataset in {contract.dataset, contract.appears_with or contract.dataset}:
                events.take_back(dataset, partitions=[damage.partition])
            done.append(f"partition '{damage.partition or 'all'}' is to be computed again")
    return done


def _folder(lake: Lake, dataset: str) -> Path:
    path = lake.path(dataset).removeprefix("file://")
    if "://" in path:
        raise ConfigurationError(
            what="files in an object store are not looked at one by one",
            where=lake.root,
            next_step="the store keeps checksums of its objects; restore an earlier version of the object there",
        )
    return Path(path)


def _of_the_log(log: Path) -> list[Damage]:
    found = []
    for file in sorted(log.iterdir()):
        checkpoint, commit = _CHECKPOINT.match(file.name), _COMMIT.match(file.name)
        if checkpoint and (problem := _not_parquet(file)):
            found.append(Damage(kind=Kind.CHECKPOINT, file=file, problem=problem, version=int(checkpoint[1])))
        elif commit and (problem := _not_a_commit(file)):
            found.append(Damage(kind=Kind.COMMIT, file=file, problem=problem, version=int(commit[1])))
    return found


def _not_parquet(file: Path) -> str | None:
    try:
        pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        return str(error).splitlines()[0]
    return None


def _not_a_commit(file: Path) -> str | None:
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines:
        return "it is empty"
    for number, line in enumerate(lines, 1):
        try:
            json.loads(line)
        except json.JSONDecodeError as error:
            return f"line {number} is not JSON: {error}"
    return None


def _of_the_data(lake: Lake, dataset: str, partition_column: str | None) -> list[Damage]:
    version = lake.version(dataset)
    assert version is not None
    found = []
    for part in lake.parts(dataset):
        folder = Path(unquote(urlparse(part.table.table_uri).path))
        for action in pa.table(part.table.get_add_actions(flatten=True)).to_pylist():
            file = folder / action["path"]
            there = file.stat().st_size if file.exists() else None
            if there != action["size_bytes"]:
                key = WHOLE_TABLE if partition_column is None else str(action[f"partition.{partition_column}"])
                problem = "it is gone" if there is None else f"it has {there} of {action['size_bytes']} bytes"
                found.append(Damage(kind=Kind.DATA, file=file, problem=problem, version=version, partition=key))
    return found


def _without_checkpoint(dataset: str, log: Path, damage: Damage) -> None:
    older = [int(match[1]) for file in log.iterdir() if (match := _CHECKPOINT.match(file.name))]
    begins = max((version for version in older if version < damage.version), default=-1)
    _must_have_commits(dataset, log, begins + 1, damage.version)
    _put_aside(damage.file)
    # It names the newest checkpoint; without it readers look for one themselves.
    (log / "_last_checkpoint").unlink(missing_ok=True)


def _without_commit(dataset: str, log: Path, damage: Damage) -> None:
    newest = max(int(match[1]) for file in log.iterdir() if (match := _COMMIT.match(file.name)))
    if damage.version != newest or damage.version == 0:
        raise _beyond_mending(dataset, damage.file, "later versions are built upon it")
    _put_aside(damage.file)
    (log / f"{damage.version:020}.crc").unlink(missing_ok=True)
    # The version stays, so that no later publication is taken for the one that was lost.
    told = {"commitInfo": {"timestamp": int(time.time() * 1000), "operation": "REPAIR", "operationParameters": {}}}
    damage.file.write_text(json.dumps(told) + "\n", encoding="utf-8")


def _must_have_commits(dataset: str, log: Path, first: int, last: int) -> None:
    for version in range(first, last + 1):
        file = log / f"{version:020}.json"
        if not file.exists():
            raise _beyond_mending(dataset, file, "the commits before the checkpoint are not there any more")


def _put_aside(file: Path) -> None:
    file.rename(file.with_name(file.name + ASIDE))
    # Hadoop's own checksum of the file as it was.
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _beyond_mending(dataset: str, file: Path, why: str) -> LogDamaged:
    return LogDamaged(
        what=f"the table cannot be told from the rest of its log: {why}",
        where=f"{dataset}, {file}",
        next_step="bring the file back from a backup; or move the whole lake away and run: blogdata run, which "
        "computes everything from the landing zone (of the table alone, ops.events would still say it is published)",
    )
