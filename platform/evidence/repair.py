"""Finds the files of a table that a failing disk has damaged, and repairs the table from its other files.

Delta trusts its files: a checkpoint that is cut off stops every reader although the commits beside it have the same
content, and a commit that is cut off stops every reader although all versions before it are whole. A data file that is
gone is noticed by the first query that needs it. Nothing is guessed: what the other files do not contain is invalidated
in the event log, so that the next run computes it again from the layer above.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from errors import ConfigurationError, PlatformError
from errors.remedies import Remedy, Repair, Run
from evidence.events import EventLog
from lake import members, store_faults
from lake.commit import WHOLE_TABLE
from lake.lake import Lake, marks_rows
from lake.members import Member, Members
from lake.store_faults import LogDamaged
from publish.contract import Contract

DAMAGED_SUFFIX = ".damaged"
"""Suffix of damaged files that were put aside; they are not deleted."""
GONE = "it is gone"
_REPAIR = '"operation": "REPAIR"'
"""Part of a commit that replaces a lost one."""
_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint(\..+)?\.parquet$")


class ConcurrentRepair(PlatformError):
    """Another run published a dataset during its repair."""

    transient = True


class Kind(str, Enum):
    """Kind of a damaged file."""

    CHECKPOINT = "checkpoint"
    COMMIT = "commit"
    POINTER = "pointer"
    DATA = "data file"


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One damaged file of a table.

    Args:
        kind: Kind of the file.
        file: Its path, even if it is gone.
        problem: What is wrong with it.
        version: Table version of the commit or checkpoint; for a pointer's file the one that added it; for a data file
            the newest one.
        partition: Partition that is lost with it; "" for a table that is written whole. None if the log or pointer is
            repaired instead.
    """

    kind: Kind
    file: Path
    problem: str
    version: int
    partition: str | None = None


def inspect(lake: Lake, dataset: str, partition_column: str | None) -> Sequence[Damage]:
    """Check every file of a table's log and the files that its newest version needs, members included.

    Args:
        lake: The tables' root; a local one.
        dataset: Name as `layer.table`.
        partition_column: Column its table is partitioned by.

    Returns:
        The damaged files: those of the log; if it is whole, of the pointer; if that is whole, of the rows.

    Raises:
        ConfigurationError: The lake is in an object store, which checks its objects itself.
    """
    log = _log(lake, dataset)
    found = _of_the_log(log) if log.is_dir() else []
    table = None if found else lake.table(dataset)
    if table is None:
        return found
    if not members.is_pointer(table):
        return _of_the_rows(table, table.version(), partition_column)
    return _of_the_pointer(table, log) or [
        damage
        for member in members.members_of(table).visible
        for damage in _of_a_member(lake, dataset, member, table.version())
    ]


def mend(lake: Lake, events: EventLog, contract: Contract, damages: Sequence[Damage]) -> Sequence[str]:
    """Repair a table from its other files; mark what they do not contain to be computed again.

    Args:
        lake: The tables' root; a local one.
        events: The event log.
        contract: Contract of the table.
        damages: What :func:`inspect` found.

    Returns:
        The repairs made, one sentence each.

    Raises:
        LogDamaged: The content of the damaged file cannot be derived from the rest of the table.
        ConcurrentRepair: Another run published the dataset meanwhile; transient.
    """
    log, done, lost = _log(lake, contract.dataset), [], []
    # The log is read again only after all of its files are repaired, so lost versions are handled below.
    for damage in damages:
        if damage.partition is not None:
            continue
        if damage.kind is Kind.CHECKPOINT:
            _without_checkpoint(contract.dataset, log, damage)
            done.append(f"{damage.file.name} was put aside: the commits tell the same")
        elif damage.kind is Kind.COMMIT and (versions := _versions_in_checkpoints(log, damage.version)):
            _put_aside(damage.file, placeholder=damage.version in versions)
            done.append(f"{damage.file.name} was put aside: a checkpoint tells the newest version")
        elif damage.kind is Kind.POINTER and damage.version == 0:
            done.append(_emptied(lake, events, contract))
        else:
            _without_commit(contract.dataset, log, damage)
            lost.append(damage.version)
    done += [_taken_back(events, contract, version) for version in lost]
    partitions = dict.fromkeys(damage.partition for damage in damages if damage.partition is not None)
    if not partitions:
        return done
    if contract.executed is not None:
        events.take_back(contract.dataset)
        return [*done, "all executions are to be computed again, from the first one on: they build on one another"]
    for dataset in {contract.dataset, contract.appears_with or contract.dataset}:
        events.take_back(dataset, partitions=partitions)
    return [*done, *(f"{f'partition {key!r}' if key else 'all of it'} is to be computed again" for key in partitions)]


def _taken_back(events: EventLog, contract: Contract, version: int) -> str:
    taken_back = ", ".join(key or "all of it" for key in events.take_back(contract.dataset, lost=version))
    if contract.appears_with and not taken_back:
        return (
            f"version {version} now is what version {version - 1} was; {contract.appears_with} has told the rest again"
        )
    missing = "whatever the next run finds missing; what was run again on purpose, ask for it once more"
    return f"version {version} now is what version {version - 1} was; to be computed again: {taken_back or missing}"


def _emptied(lake: Lake, events: EventLog, contract: Contract) -> str:
    """Empty a pointer of which no version can be read."""
    table = lake.table(contract.dataset)
    assert table is not None
    state = Members(version=table.version(), all=())
    if members.commit(lake, contract.dataset, state, [], {"commit_id": f"{contract.dataset}/repair"}) is None:
        raise ConcurrentRepair(
            what="the dataset was published while its pointer was about to be mended",
            where=contract.dataset,
            next_step=Remedy("look at it again: ", Repair()),
        )
    events.take_back(contract.dataset)
    return "the pointer names no table now: all of it is to be computed again"


def _log(lake: Lake, table: str) -> Path:
    return _folder(lake, table) / "_delta_log"


def _folder(lake: Lake, dataset: str) -> Path:
    path = lake.path(dataset).removeprefix("file://")
    if "://" in path:
        raise ConfigurationError(
            what="files in an object store are not looked at one by one",
            where=lake.root,
            next_step="the store keeps checksums of its objects; restore an earlier version of the object there",
        )
    return Path(path)


def _of_the_log(log: Path, until: int | None = None) -> list[Damage]:
    """Check a log's files up to a version; later ones are not needed to read that version."""
    checkpoints = {file: version for file, version in _versions(log, _CHECKPOINT) if until is None or version <= until}
    commits = {file: version for file, version in _versions(log, _COMMIT) if until is None or version <= until}
    found = [
        Damage(kind=Kind.CHECKPOINT, file=file, problem=problem, version=version)
        for file, version in checkpoints.items()
        if (problem := _not_parquet(file))
    ]
    hinted = _hinted(log, until)
    if not found and hinted is not None and hinted not in checkpoints.values():
        file = log / f"{hinted:020}.checkpoint.parquet"
        found = [Damage(kind=Kind.CHECKPOINT, file=file, problem=GONE, version=hinted)]
    # The checkpoints determine which commits are needed.
    first = max(checkpoints.values(), default=-1) + 1
    last = max(commits.values(), default=-1) if until is None else until
    needed = [] if found else [log / f"{version:020}.json" for version in range(first, last + 1)]
    # Newest first: no later commit builds on it.
    for file in sorted({*commits, *needed}, reverse=True):
        if problem := _not_a_commit(file):
            found.append(Damage(kind=Kind.COMMIT, file=file, problem=problem, version=int(file.stem)))
    return found


def _versions(log: Path, kind: re.Pattern[str]) -> list[tuple[Path, int]]:
    return [(file, int(match[1])) for file in sorted(log.glob("*")) if (match := kind.match(file.name))]


def _hinted(log: Path, until: int | None) -> int | None:
    """Return the version of the checkpoint that readers start from; None if they search for one."""
    try:
        version = int(json.loads((log / "_last_checkpoint").read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError):
        return None
    return version if until is None or version <= until else None


def _not_parquet(file: Path) -> str | None:
    try:
        pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        return str(error).splitlines()[0]
    return None


def _not_a_commit(file: Path) -> str | None:
    if not file.exists():
        return GONE
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines:
        return "it is empty"
    for number, line in enumerate(lines, 1):
        try:
            json.loads(line)
        except json.JSONDecodeError as error:
            return f"line {number} is not JSON: {error}"
    return None


def _of_the_pointer(table: DeltaTable, log: Path) -> list[Damage]:
    """Check the one data file of a pointer; if it is damaged, its commit cannot be restored."""
    found = []
    for damage in _of_the_rows(table, table.version(), None):
        added = [version for file, version in _versions(log, _COMMIT) if damage.file.name in file.read_text("utf-8")]
        found.append(replace(damage, kind=Kind.POINTER, partition=None, version=max(added, default=damage.version)))
    return found


def _of_a_member(lake: Lake, dataset: str, member: Member, version: int) -> list[Damage]:
    log = _log(lake, members.table_of(dataset, member.location))
    if found := _of_the_log(log, member.version):
        # A member is never written again: a new one will take its place.
        return [replace(damage, partition=key) for damage in found for key in member.partitions]
    part = lake.part(dataset, member)
    found = _of_the_rows(part.table, version, member.partition_column)
    return [damage for damage in found if damage.partition in member.partitions]


def _of_the_rows(table: DeltaTable, version: int, partition_column: str | None) -> list[Damage]:
    folder = Path(unquote(urlparse(table.table_uri).path))
    found, keys = [], set()
    for action in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        key = WHOLE_TABLE if partition_column is None else str(action[f"partition.{partition_column}"])
        keys.add(key)
        file = folder / action["path"]
        there = file.stat().st_size if file.exists() else None
        if there != action["size_bytes"]:
            problem = GONE if there is None else f"it has {there} of {action['size_bytes']} bytes"
            found.append(Damage(kind=Kind.DATA, file=file, problem=problem, version=version, partition=key))
    if marks_rows(table):
        try:
            # Deletion vectors are not listed, so reading them is the check; the error names only the first bad file.
            table.deletion_vectors()
        except DeltaError as error:
            file = Path(store_faults.file_in(str(error)))
            problem = "it is cut off or garbled" if file.exists() else GONE
            found += [
                Damage(kind=Kind.DATA, file=file, problem=problem, version=version, partition=key)
                for key in sorted(keys)
            ]
    return found


def _without_checkpoint(dataset: str, log: Path, damage: Damage) -> None:
    older = [version for _, version in _versions(log, _CHECKPOINT) if version < damage.version]
    _must_have_commits(dataset, log, max(older, default=-1) + 1, damage.version)
    _put_aside(damage.file)
    # This file names the newest checkpoint; without it readers search for one.
    (log / "_last_checkpoint").unlink(missing_ok=True)


def _versions_in_checkpoints(log: Path, version: int) -> list[int]:
    return [covered for _, covered in _versions(log, _CHECKPOINT) if covered >= version]


def _without_commit(dataset: str, log: Path, damage: Damage) -> None:
    file = log / f"{damage.version:020}.json"
    later = [other for other, version in _versions(log, _COMMIT) if version > damage.version]
    if damage.version == 0 or any(_REPAIR not in other.read_text("utf-8") for other in later):
        why = "it is the first one" if damage.version == 0 else "later versions are built upon it"
        raise _beyond_mending(dataset, damage.file, why)
    for checkpoint, version in _versions(log, _CHECKPOINT):
        if version >= damage.version:
            _without_checkpoint(dataset, log, replace(damage, file=checkpoint))
    _put_aside(file, placeholder=True)


def _must_have_commits(dataset: str, log: Path, first: int, last: int) -> None:
    for version in range(first, last + 1):
        file = log / f"{version:020}.json"
        if not file.exists():
            raise _beyond_mending(dataset, file, "the commits before the checkpoint are not there any more")


def _put_aside(file: Path, *, placeholder: bool = False) -> None:
    if file.exists():
        file.rename(file.with_name(file.name + DAMAGED_SUFFIX))
    # Hadoop's checksum of the original file, and Delta's checksum of the version.
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    file.with_suffix(".crc").unlink(missing_ok=True)
    if placeholder:
        # The version stays in use, so that no later publication is taken for the lost one.
        now = int(time.time() * 1000)
        file.write_text(f'{{"commitInfo": {{"timestamp": {now}, {_REPAIR}, "operationParameters": {{}}}}}}\n', "utf-8")


def _beyond_mending(dataset: str, file: Path, why: str) -> LogDamaged:
    return LogDamaged(
        what=f"the table cannot be told from the rest of its log: {why}",
        where=f"{dataset}, {file}",
        next_step=Remedy(
            "bring the file back from a backup; or move the whole lake away and run: ",
            Run(),
            ", which computes everything from the landing zone (of the table alone, ops.events would still say it is "
            "published)",
        ),
    )
