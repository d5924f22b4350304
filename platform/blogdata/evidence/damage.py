"""Finds the files of a table that a failing disk has damaged: every byte of its log and of its newest rows is read.

Delta trusts its files: a checkpoint that is cut off stops every reader although the commits beside it have the same
content, a commit that is cut off stops every reader although all versions before it are whole, and a flipped byte of a
data file may give other values. The checksum files beside the files show all of that (:mod:`blogdata.lake.checksums`).
Files without them, of earlier releases or of other writers, are parsed, which shows most of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from blogdata.errors import ConfigurationError
from blogdata.lake import members, store_faults
from blogdata.lake.checksums import GONE, Mismatch, file_of, local_folder, mismatch, missing, sums_of
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.lake.lake import Lake, marks_rows
from blogdata.lake.members import Member

COMMIT = re.compile(r"^(\d{20})\.json$")
CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint(\..+)?\.parquet$")
_COMMIT_SUMS = re.compile(r"^\.(\d{20})\.json\.crc$")
_DERIVED = re.compile(r"^(_last_checkpoint|\d{20}\.crc)$")
"""What Delta derives from the commits and does without: the newest checkpoint's version, and digests of versions."""


class DamageKind(str, Enum):
    """Kind of a damaged file."""

    CHECKPOINT = "checkpoint"
    COMMIT = "commit"
    POINTER = "pointer"
    DATA = "data file"
    DERIVED = "derived file"
    CHECKSUMS = "checksum file"


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One damaged file of a table.

    Args:
        version: Table version of the commit or checkpoint; for a pointer's file the one that added it; otherwise the
            newest one.
        partition: Partition that is lost with it; "" for a table that is written whole. None if the log, the pointer or
            the checksum file is repaired instead.
    """

    kind: DamageKind
    file: Path
    problem: str
    version: int
    partition: str | None = None


def inspect(lake: Lake, dataset: str, partition_column: str | None, *, recorded: int = -1) -> Sequence[Damage]:
    """Check every file of a table's log and the files that its newest version needs, members included.

    Args:
        recorded: Newest version that the event log knows: later ones may exist, earlier ones must.

    Returns:
        The damaged files: those of the log; if it is whole, of the pointer; if that is whole, of the rows.

    Raises:
        ConfigurationError: The lake is in an object store, which checks its objects itself.
    """
    log = log_of(lake, dataset)
    if not log.is_dir():
        return [Damage(kind=DamageKind.COMMIT, file=log, problem=GONE, version=0)] if recorded >= 0 else []
    found = of_the_log(log, recorded=recorded)
    table = None if found else lake.table(dataset)
    if table is None:
        return found
    if not members.is_pointer(table):
        return of_the_rows(table, table.version(), partition_column)
    return _of_the_pointer(table, log) or [
        damage
        for member in members.members_of(table).visible
        for damage in _of_a_member(lake, dataset, member, table.version())
    ]


def log_of(lake: Lake, table: str) -> Path:
    """Return the folder of a table's log.

    Raises:
        ConfigurationError: The lake is in an object store.
    """
    folder = lake.folder(table)
    if folder is None:
        raise ConfigurationError(
            what="files in an object store are not looked at one by one",
            where=lake.root,
            next_step="the store keeps checksums of its objects; restore an earlier version of the object there",
        )
    return folder / "_delta_log"


def of_the_log(log: Path, until: int | None = None, *, recorded: int = -1) -> list[Damage]:
    """Check a log's files.

    Args:
        until: The newest version to read, for which later files are not needed; None: the newest there is.
        recorded: A version that must exist.
    """
    derived = [file for file in sorted(log.glob("*")) if _DERIVED.match(file.name)] if until is None else []
    garbled = [fault for file in derived if (fault := damage_of(file))]
    checkpoints = {file: version for file, version in versions(log, CHECKPOINT) if until is None or version <= until}
    commits = {file: version for file, version in versions(log, COMMIT) if until is None or version <= until}
    found = [
        _damage(DamageKind.CHECKPOINT, fault, version)
        for file, version in checkpoints.items()
        if (fault := damage_of(file))
    ]
    hinted = None if garbled else _hinted(log, until)
    if not found and hinted is not None and hinted not in checkpoints.values():
        file = log / f"{hinted:020}.checkpoint.parquet"
        found = [Damage(kind=DamageKind.CHECKPOINT, file=file, problem=GONE, version=hinted)]
    # The checkpoints determine which commits are needed. A commit that is gone leaves its checksum file.
    first = max(checkpoints.values(), default=-1) + 1
    seen = [recorded, *commits.values(), *(version for _, version in versions(log, _COMMIT_SUMS))]
    last = max(seen) if until is None else until
    lost = any(damage.kind is DamageKind.CHECKPOINT for damage in found)
    needed = [] if lost else [log / f"{version:020}.json" for version in range(first, last + 1)]
    # Newest first: no later commit builds on it.
    for file in sorted({*commits, *needed}, reverse=True):
        if fault := damage_of(file):
            found.append(_damage(DamageKind.COMMIT, fault, int(file.stem)))
    return found + [_damage(DamageKind.DERIVED, fault, last) for fault in garbled]


def versions(log: Path, kind: re.Pattern[str]) -> list[tuple[Path, int]]:
    """List a log's files of a kind, each with its version, in the order of their names."""
    return [(file, int(match[1])) for file in sorted(log.glob("*")) if (match := kind.match(file.name))]


def of_the_rows(table: DeltaTable, version: int, partition_column: str | None) -> list[Damage]:
    """Read the data files and deletion vectors of a table, and compare them with what was written.

    Args:
        partition_column: Column it is partitioned by; None if it is written whole.
    """
    folder = local_folder(table)
    assert folder is not None
    found, keys = [], set()
    for action in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        key = WHOLE_TABLE if partition_column is None else str(action[f"partition.{partition_column}"])
        keys.add(key)
        file = file_of(folder, action["path"])
        if fault := missing(file, action["size_bytes"]) or damage_of(file):
            found.append(_damage(DamageKind.DATA, fault, version, key))
    return found + _of_the_marks(table, folder, version, sorted(keys))


def _damage(kind: DamageKind, fault: Mismatch, version: int, partition: str | None = None) -> Damage:
    if fault.sums:
        kind, partition = DamageKind.CHECKSUMS, None
    return Damage(kind=kind, file=fault.file, problem=fault.problem, version=version, partition=partition)


def damage_of(file: Path) -> Mismatch | None:
    """Read a file, and return what is wrong with it or with its checksum file; None if it is whole."""
    if not file.exists():
        return Mismatch(file=file, problem=GONE)
    found = mismatch(file)
    if sums_of(file).exists() and (found is None or not found.sums):
        return found
    # Without checksums only the content tells.
    problem = _not_parquet(file) if file.suffix == ".parquet" else _not_json(file)
    return Mismatch(file=file, problem=problem) if problem else found


def _not_parquet(file: Path) -> str | None:
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as opened:
            for _ in opened.iter_batches():
                pass
    except (pa.ArrowException, OSError) as error:
        return str(error).splitlines()[0]
    return None


def _not_json(file: Path) -> str | None:
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines:
        return "it is empty"
    for number, line in enumerate(lines, 1):
        try:
            json.loads(line)
        except json.JSONDecodeError as error:
            return f"line {number} is not JSON: {error}"
    return None


def _hinted(log: Path, until: int | None) -> int | None:
    """Return the version of the checkpoint that readers start from; None if they search for one."""
    try:
        version = int(json.loads((log / "_last_checkpoint").read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return version if until is None or version <= until else None


def _of_the_pointer(table: DeltaTable, log: Path) -> list[Damage]:
    """Check the one data file of a pointer; if it is damaged, its commit cannot be restored."""
    found = []
    for damage in of_the_rows(table, table.version(), None):
        added = [version for file, version in versions(log, COMMIT) if damage.file.name in file.read_text("utf-8")]
        lost = replace(damage, kind=DamageKind.POINTER, partition=None, version=max(added, default=damage.version))
        found.append(damage if damage.kind is DamageKind.CHECKSUMS else lost)
    return found


def _of_a_member(lake: Lake, dataset: str, member: Member, version: int) -> list[Damage]:
    log = log_of(lake, members.table_of(dataset, member.location))
    if found := of_the_log(log, member.version):
        # A member is never written again: a new one will take its place.
        lost = [damage for damage in found if damage.kind is not DamageKind.CHECKSUMS]
        return [replace(damage, partition=key) for damage in lost for key in member.partitions] or found
    part = lake.part(dataset, member)
    found = of_the_rows(part.table, version, member.partition_column)
    return [damage for damage in found if damage.partition is None or damage.partition in member.partitions]


def _of_the_marks(table: DeltaTable, folder: Path, version: int, keys: Sequence[str]) -> list[Damage]:
    """Check the deletion vectors; a damaged one costs the whole table, because nothing tells whose it is."""
    if not marks_rows(table):
        return []
    # Of older versions too: they are not listed.
    faults = [fault for file in sorted(folder.glob("deletion_vector_*.bin")) if (fault := mismatch(file))]
    if not any(not fault.sums for fault in faults):
        try:
            table.deletion_vectors()
        except DeltaError as error:
            # It names the first bad file only.
            file = Path(store_faults.file_in(str(error)))
            faults.append(Mismatch(file=file, problem="it is cut off or garbled" if file.exists() else GONE))
    return [
        _damage(DamageKind.DATA, fault, version, key) for fault in faults for key in (keys[:1] if fault.sums else keys)
    ]
