"""The one commit: files are added to a table and removed from it by compare-and-set on its version.

delta-rs writes the commit of the version after the one that was opened, or fails. If another commit came first, what it
touched decides: partitions that this one replaces or reads, the schema, the protocol or the same batch refuse this one
as transient; anything else is harmless, and the commit is tried on top. delta-rs enforces no constraints, and commits a
known transaction identifier again: the rows are audited before, and the identifier is looked up here.
"""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from blogdata.errors import PlatformError
from blogdata.table import arrow
from blogdata.table.actions import DataFile, is_removable
from blogdata.table.faults import TRIES, ConcurrentWrite, LogDamaged, contended, typed_errors
from blogdata.table.store import Store, local_folder, sums_of

_log = logging.getLogger(__name__)
NEVER = 2**63 - 1
"""Expiry of a transaction identifier that outlives every retention. Without a time it would never expire for delta-rs,
and is expired at once for Spark."""
CHECKPOINT_EVERY = 10
"""Versions between two checkpoints of a log, unless the table says otherwise; delta-rs itself would take 100."""
_INTERVAL = "delta.checkpointInterval"
_SUMMED = {"metaData": "metadata", "protocol": "protocol"}
"""Actions that a checksum repeats, and their names in it."""
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""What follows a commit must not make it look failed."""
_SEARCHED = 20
"""Versions in which a checksum is looked for whose schema and protocol still hold."""
_WRITABLE = frozenset(
    "appendOnly changeDataFeed checkConstraints deletionVectors generatedColumns invariants timestampNtz variantType "
    "variantType-preview vacuumProtocolCheck".split()
)
"""Features of a table under which files may be added as plain Parquet: their rules are audited, or concern no file."""
_MAPPED = (5, 6)
"""Protocols of writers from before there were features, with mapped columns and identity columns."""
_APPEND_ONLY = "delta.appendOnly"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A batch of a writer, by which a repetition is recognised; the batches of a writer come in order."""

    writer: str
    batch: int
    lasts: bool = False
    """Whether it is remembered for ever, not only for the table's retention of such marks."""


class Whole(Enum):
    """All partitions of a table, as what a commit replaces or reads."""

    TABLE = "table"


Partitions = Collection[str] | Whole


class OpenCommit:
    """A commit of a table that has begun: what other writers commit from now on is compared with what it touches."""

    def __init__(self, store: Store, dataset: str, mark: Mark, *, turn: Mark | None = None) -> None:
        self._store, self._dataset = store, dataset
        self._marks = (mark,) if turn is None else (mark, turn)
        with typed_errors(dataset):
            self.table = DeltaTable(store.path(dataset), storage_options=dict(store.storage_options))
        _refuse_features(self.table, dataset)
        if turn is not None and not self.repeated:
            done = self.table.transaction_version(turn.writer)
            if turn.batch != (-1 if done is None else done) + 1:
                raise self._lost(f"another batch of the table has taken the number {turn.batch}")

    @property
    def repeated(self) -> bool:
        done = self.table.transaction_version(self._marks[0].writer)
        return done is not None and done >= self._marks[0].batch

    def require(self, version: int) -> None:
        """Refuse the commit unless the table is at the version for which its rows were computed."""
        if self.table.version() != version:
            raise self._lost(f"the rows are for version {version}, the table is at {self.table.version()}")

    def files(self, partitions: Partitions) -> list[dict[str, Any]]:
        files = arrow.rows_of(self.table.get_add_actions(flatten=True))
        if isinstance(partitions, Whole):
            return files
        columns = self.table.metadata().partition_columns
        return [file for file in files if any(_text(file, column) in partitions for column in columns)]

    def replace(
        self, partitions: Partitions, by: Sequence[DataFile], info: Mapping[str, Any], *, kept: Collection[str] = ()
    ) -> int:
        """Replace all rows of some partitions, but not of `kept` ones, by new files; return the commit's version."""
        gone = partitions if isinstance(partitions, Whole) else sorted({*partitions} - {*kept})
        return self._committed(by, info, replaced=gone, reads=partitions)

    def append(self, files: Sequence[DataFile], info: Mapping[str, Any]) -> int:
        return self._committed(files, info, replaced=(), reads=())

    def exchange(
        self,
        old: Sequence[Mapping[str, Any]],
        new: Sequence[DataFile],
        info: Mapping[str, Any],
        *,
        reads: Partitions,
        data_change: bool = True,
    ) -> int:
        """Exchange single files, as listed by :meth:`files`, for others; return the version of the commit.

        A change to any other row of the partitions that it `reads` refuses it; a compaction changes no data.
        """
        if "deletionVectors" in (self.table.protocol().reader_features or []):
            vectors = arrow.rows_of(self.table.deletion_vectors().read_all(), ["filepath"])
            marked = tuple(unquote(vector["filepath"]) for vector in vectors)
            if any(path.endswith("/" + unquote(file["path"])) for file in old for path in marked):
                raise PlatformError(
                    what="a file with rows that are marked as removed cannot be exchanged by itself: they would return",
                    where=self._dataset,
                    next_step="replace the whole partition, or the whole table",
                )
        return self._committed(new, info, replaced=(), reads=reads, exchanged=old, data_change=data_change)

    def _committed(
        self,
        added: Sequence[DataFile],
        info: Mapping[str, Any],
        *,
        replaced: Partitions,
        reads: Partitions,
        exchanged: Sequence[Mapping[str, Any]] = (),
        data_change: bool = True,
    ) -> int:
        table, overwrites = self.table, isinstance(replaced, Whole) or bool(replaced)
        if (overwrites or exchanged) and (table.metadata().configuration.get(_APPEND_ONLY) or "").lower() == "true":
            raise PlatformError(
                what="the table only takes additional rows", where=self._dataset, next_step="write to another table"
            )
        columns = table.metadata().partition_columns
        filters = [(columns[0], "in", sorted(replaced))] if overwrites and not isinstance(replaced, Whole) else None
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [file.add(data_change=data_change) for file in added]
        actions += [_removal(file, columns, now, data_change=data_change) for file in exchanged]
        gone = {unquote(file["path"]) for file in exchanged}
        for _ in range(TRIES):
            _refuse_unremovable([*self.files(replaced), *exchanged], self._dataset)
            base = table.version()
            try:
                with typed_errors(self._dataset):
                    table.create_write_transaction(
                        actions,
                        mode="overwrite" if overwrites else "append",
                        schema=table.schema(),
                        partition_by=columns or None,
                        partition_filters=filters,
                        commit_properties=self._properties(added, info, now),
                        post_commithook_properties=_NO_HOOKS,
                    )
            except CommitFailedError as error:
                with typed_errors(self._dataset):
                    table.update_incremental()
                if table.version() == base:
                    # Whether it stands is not known, for an object store; a repetition is recognised by its mark.
                    raise self._lost(f"the commit failed: {error}") from error
                for version in range(base + 1, table.version() + 1):
                    self._refuse_conflict(self._actions(version), reads, gone)
                time.sleep(random.uniform(0.001, 0.02))
                continue
            self.follow_up(base + 1)
            return base + 1
        raise contended(self._dataset, "commit")

    def _properties(self, added: Sequence[DataFile], info: Mapping[str, Any], now: int) -> CommitProperties:
        metrics = {
            "numFiles": str(len(added)),
            "numOutputRows": str(sum(file.rows for file in added)),
            "numOutputBytes": str(sum(file.size for file in added)),
        }
        notes = {"userMetadata": json.dumps(info, default=str), "isBlindAppend": False, "operationMetrics": metrics}
        marks = [Transaction(mark.writer, mark.batch, NEVER if mark.lasts else now) for mark in self._marks]
        # With retries of its own, delta-rs commits two overwrites of one empty partition.
        return CommitProperties(custom_metadata=notes, max_commit_retries=0, app_transactions=marks)

    def _refuse_conflict(self, actions: Sequence[Mapping[str, Any]], reads: Partitions, gone: Collection[str]) -> None:
        writers = {mark.writer for mark in self._marks}
        for action in actions:
            if "metaData" in action or "protocol" in action:
                raise self._lost("another run created or altered the table while this one was about to write it")
            if "txn" in action and action["txn"]["appId"] in writers:
                raise self._lost("another run published the same batch while this one was writing")
            for file in (action[kind] for kind in ("add", "remove") if kind in action):
                values = set((file.get("partitionValues") or {}).values())
                touches = isinstance(reads, Whole) or not values.isdisjoint(reads)
                # A file without its partition values could be of any.
                touches = touches or (bool(reads) and not values)
                if (file.get("dataChange", True) and touches) or unquote(file["path"]) in gone:
                    raise ConcurrentWrite(where=self._dataset)

    def _actions(self, version: int) -> list[dict[str, Any]]:
        name = f"_delta_log/{version:020d}.json"
        try:
            with self._store.files(self.table.table_uri).open_input_stream(name) as stream:
                return [json.loads(line) for line in stream.read().splitlines() if line.strip()]
        except FileNotFoundError as error:
            raise self._lost("the log no longer tells what others committed meanwhile") from error
        except ValueError as error:
            raise LogDamaged(self._dataset, name) from error

    def follow_up(self, version: int) -> None:
        """Write what spares readers work; the commit stands without it."""
        every = int(self.table.metadata().configuration.get(_INTERVAL) or CHECKPOINT_EVERY)
        try:
            self.table.update_incremental()
            if self.table.version() == version:
                # Else others have committed on top, and write theirs.
                self._write_checksum(version)
            if version and version % every == 0:
                if (folder := local_folder(self.table)) is not None:
                    # Spark's checksum of the file that is replaced: its next reader would find it damaged.
                    sums_of(folder / "_delta_log" / "_last_checkpoint").unlink(missing_ok=True)
                self.table.create_checkpoint()
        except (DeltaError, OSError, ValueError, PlatformError) as error:
            _log.warning("No checksum or checkpoint of %s at version %d: %s", self._dataset, version, error)

    def _write_checksum(self, version: int) -> None:
        """Write the version's checksum (Delta's protocol, "Version Checksum File"): without it Spark counts the files.

        Schema and protocol are copied to the letter: Spark takes a difference for damage.
        """
        folder = local_folder(self.table)
        if folder is None:
            return
        log = folder / "_delta_log"
        summed: dict[str, Any] = {}
        for earlier in range(version, max(-1, version - _SEARCHED), -1):
            file = log / f"{earlier:020d}.crc"
            if earlier < version and file.exists():
                known = json.loads(file.read_bytes())
                if known.get("numDeletionVectorsOpt"):
                    return
                summed = {**{name: known[name] for name in _SUMMED.values() if name in known}, **summed}
                break
            actions = self._actions(earlier)
            if any("domainMetadata" in action for action in actions):
                return
            names = {name: action[name] for action in actions for name in _SUMMED.keys() & action}
            summed = {**{_SUMMED[name]: content for name, content in names.items()}, **summed}
        if not {*_SUMMED.values()} <= summed.keys():
            return
        files = self.files(Whole.TABLE)
        size = sum(file["size_bytes"] for file in files)
        counts = {"tableSizeBytes": size, "numFiles": len(files), "numMetadata": 1, "numProtocol": 1}
        staged = log / f".{uuid.uuid4()}.crc.tmp"
        staged.write_text(json.dumps({**counts, **summed}), encoding="utf-8")
        staged.replace(log / f"{version:020d}.crc")

    def _lost(self, what: str) -> ConcurrentWrite:
        return ConcurrentWrite(what=what, where=self._dataset)


def create(
    store: Store, dataset: str, schema: str, *, partition: str | None, description: str, properties: Mapping[str, str]
) -> None:
    """Create a table with its schema (as JSON), partition column and properties in one commit; a table stays as it is.

    In SQL every CHECK constraint would be a commit of its own that scans the table.
    """
    try:
        with typed_errors(dataset):
            DeltaTable.create(
                store.path(dataset),
                Schema.from_json(schema),
                mode="ignore",
                partition_by=partition,
                description=description,
                # Constraints need this version; generated columns and a change feed, too.
                configuration={"delta.minWriterVersion": "4", **properties},
                storage_options=dict(store.storage_options),
                # Constraints and the platform's own properties are none that delta-rs knows.
                raise_if_key_not_exists=False,
            )
    except CommitFailedError:
        # Another run has created it between the look and the commit.
        if store.table(dataset) is None:
            raise
    OpenCommit(store, dataset, Mark(writer=dataset, batch=-1)).follow_up(0)


def _text(file: Mapping[str, Any], column: str) -> str | None:
    value = file[f"partition.{column}"]
    return None if value is None else str(value)


def _removal(file: Mapping[str, Any], columns: Sequence[str], now: int, *, data_change: bool) -> RemoveAction:
    values = {column: _text(file, column) for column in columns}
    # Decoded: delta-rs encodes it again.
    return RemoveAction(unquote(file["path"]), data_change, now, file["size_bytes"], values)


def _refuse_features(table: DeltaTable, dataset: str) -> None:
    protocol = table.protocol()
    unknown = sorted(set(protocol.writer_features or []) - _WRITABLE)
    if unknown or protocol.min_writer_version in _MAPPED:
        features = ", ".join(unknown) or f"those of writers of version {protocol.min_writer_version}"
        raise PlatformError(
            what=f"the table has features that its plain files cannot have: {features}",
            where=dataset,
            next_step="write it with Spark's own Delta writer, or have it computed into a new table",
        )


def _refuse_unremovable(files: Sequence[Mapping[str, Any]], dataset: str) -> None:
    fixed = [file["path"] for file in files if not is_removable(file["path"])]
    if fixed:
        raise PlatformError(
            what=f"{len(fixed)} files cannot be removed without Spark, and their rows would stay, such as {fixed[0]}",
            where=dataset,
            next_step="delete the rows of this partition with Spark's DELETE FROM, and run it again",
        )
