"""Checkpointer: a stream goes on where it was, and says where that is.

Problem: a stream that dies in its middle must neither begin again nor leave out what it was at.
How it works: Structured Streaming writes down which input makes up a batch before it works on it, and that it is done
afterwards; so a batch that is cut off is done again with the very same input. Publications are keyed by checkpoint
and batch (``Append``), so doing it again changes nothing: the two together are exactly once. A :class:`Checkpoint`
reads these notes without a JVM: which files a batch is made of, so that its account does not rest on what the job
read, and all of it as a table (``ops.stream_offsets``). Beside the notes lies the :class:`StreamSpec` they were made
with.
The trap: a checkpoint belongs to one query. After a change of the source, the identity or the watermark Spark goes on
with notes that mean something else, or fails in its depths; a changed spec is refused here, before Spark sees it. The
opposite trap is a deleted checkpoint: batches are counted from zero again, and to a writer that remembers numbers they
have all been done. A new checkpoint is therefore another writer (its identity is Spark's), and what the table already
has is left out by its source file. A query may outlive its client, in the server, and go on beside the one that
followed it: what is left out holds only until another batch comes, so batches take turns, and of two that have seen
the same table the second is refused (:func:`turn_of`).
When not to use it: where a batch job can be told its input, as all partitioned datasets here can.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from errors import PlatformError
from lake.commit import Commit, entries_of, parse
from lake.lake import Lake
from patterns.error_management.checkpoint_files import damaged, numbered, parsed, read_lines, read_text

STREAM_OFFSETS = "ops.stream_offsets"
OFFSETS_DDL = (
    "stream STRING, checkpoint INT, batch BIGINT, source INT, position STRING, files ARRAY<STRING>, committed BOOLEAN,"
    " planned_at TIMESTAMP"
)
"""The columns of :data:`STREAM_OFFSETS`: one row per batch that Spark still remembers, and source."""
_SPEC = "stream.json"
_QUERY = "query"
_SOURCE = 0
"""Number of the source of files among those of a stream: its only one."""
_NUMBERED = re.compile(r"v([1-9][0-9]*)")


class IncompatibleCheckpoint(PlatformError):
    """The stream is not the one its checkpoint was made by."""


@dataclass(frozen=True, kw_only=True)
class StreamSpec:
    """What a checkpoint's notes rest on; when any of it changes they no longer mean the same.

    Args:
        name: Of the stream; names its folder.
        source: What is read: kind, place, options that decide what is input.
        schema: What the source gives, as Spark SQL column definitions.
        key: Columns of the identity that rows are deduplicated by.
        watermark: How event time advances: allowed lateness, and how sources are combined.
    """

    name: str
    source: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""
    key: tuple[str, ...] = ()
    watermark: str = ""

    def as_json(self) -> dict[str, Any]:
        """Give it as plain values, as they are kept beside the checkpoint."""
        return {**asdict(self), "source": dict(self.source), "key": list(self.key)}

    @property
    def fingerprint(self) -> str:
        """A digest that changes when the checkpoint would no longer fit."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class PlannedBatch:
    """A batch as the checkpoint has it.

    Args:
        number: Counted from zero.
        positions: Up to where it reads, by source, as the source says it; None for a source that had nothing yet.
        planned_at: When its input was written down.
        committed: Whether it is done; if not, it is done again.
    """

    number: int
    positions: tuple[str | None, ...]
    planned_at: datetime
    committed: bool


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One checkpoint of a stream, on a file system of this machine.

    Args:
        stream: Name of the stream.
        number: 1 for the stream's first checkpoint, 2 for the one that follows it.
        folder: Where it lies.
    """

    stream: str
    number: int
    folder: Path

    @property
    def location(self) -> str:
        """What Spark is told."""
        return str(self.folder / _QUERY)

    @property
    def identity(self) -> str | None:
        """What tells this checkpoint from every other one, also one that bore its name before; None before it is used.

        Raises:
            CheckpointDamaged: It is not what Spark wrote.
        """
        file = self._notes("metadata")
        if not file.exists():
            return None
        try:
            return str(uuid.UUID(parsed(file, read_text(file))["id"]))
        except (KeyError, ValueError) as error:
            raise damaged(file, "has no identity") from error

    @property
    def writer(self) -> str:
        """Name under which batches of this checkpoint are published; it has been used.

        Raises:
            CheckpointDamaged: Spark has not written its identity, or something else is there.
        """
        identity = self.identity
        if identity is None:
            raise damaged(self._notes("metadata"), "is not there")
        return f"{self.stream}-{identity[:8]}"

    def batches(self) -> list[PlannedBatch]:
        """Read what Spark still remembers: the newest hundred batches, oldest first.

        Raises:
            CheckpointDamaged: A file is not what Spark wrote.
        """
        done = set()
        for number, lines in self._read("commits"):
            parsed(self._notes("commits", str(number)), lines[0])
            done.add(number)
        found = []
        for number, (head, *positions) in self._read("offsets"):
            file = self._notes("offsets", str(number))
            planned = parsed(file, head)["batchTimestampMs"]
            for position in positions:
                if position != "-":
                    parsed(file, position)
            found.append(
                PlannedBatch(
                    number=number,
                    positions=tuple(None if position == "-" else position for position in positions),
                    planned_at=datetime.fromtimestamp(planned / 1000, tz=timezone.utc),
                    committed=number in done,
                )
            )
        return found

    def files(self, batch: int) -> tuple[str, ...]:
        """Give the paths of the files a batch is made of, by the own log of the stream's source.

        Args:
            batch: Its number; Spark still remembers it.

        Raises:
            CheckpointDamaged: The batch is not there, or a file is not what Spark wrote.
        """
        ends = {planned.number: _log_offset(planned.positions[_SOURCE]) for planned in self.batches()}
        if batch not in ends:
            raise damaged(self._notes("offsets", str(batch)), "is not there")
        after = ends.get(batch - 1, -1)
        taken = {entry["path"]: entry["batchId"] for entry in self._source_log(_SOURCE)}
        return tuple(sorted(_path(address) for address, at in taken.items() if after < at <= ends[batch]))

    def every_file(self) -> frozenset[str]:
        """Give the paths of all files that the stream's source has ever put into a batch.

        Raises:
            CheckpointDamaged: A file is not what Spark wrote.
        """
        return frozenset(_path(entry["path"]) for entry in self._source_log(_SOURCE))

    def unfinished(self) -> tuple[str, ...]:
        """Give the paths of the files that the source has put into a batch which is not done, or not even planned.

        Raises:
            CheckpointDamaged: A file is not what Spark wrote.
        """
        # A source notes its files before the batch is planned: whoever dies in between leaves files of no batch.
        done = max((_log_offset(batch.positions[_SOURCE]) for batch in self.batches() if batch.committed), default=-1)
        return tuple(sorted(_path(entry["path"]) for entry in self._source_log(_SOURCE) if entry["batchId"] > done))

    def rows(self) -> list[tuple[Any, ...]]:
        """Give the rows of :data:`STREAM_OFFSETS` of this checkpoint, in the order of :data:`OFFSETS_DDL`.

        Raises:
            CheckpointDamaged: A file is not what Spark wrote.
        """
        planned = self.batches()
        logs = {
            source: [(entry["batchId"], _path(entry["path"])) for entry in self._source_log(source)]
            for source in range(max((len(batch.positions) for batch in planned), default=0))
        }
        before: dict[int, int] = {}
        found = []
        for batch in planned:
            for source, position in enumerate(batch.positions):
                end = _log_offset(position)
                # The oldest batch that is remembered begins where one ended that is not.
                begin = before.get(source, -1 if batch.number == 0 else end - 1)
                files = sorted({path for at, path in logs[source] if begin < at <= end})
                before[source] = end
                row = (self.stream, self.number, batch.number, source, position, files)
                found.append((*row, batch.committed, batch.planned_at))
        return found

    def verify(self) -> None:
        """Look through all files that Spark would read.

        Raises:
            CheckpointDamaged: One is not what Spark wrote.
        """
        if self.identity is None:
            return
        for source in range(max((len(batch.positions) for batch in self.batches()), default=0)):
            self._source_log(source)

    def _notes(self, *parts: str) -> Path:
        return self.folder.joinpath(_QUERY, *parts)

    def _read(self, kind: str) -> list[tuple[int, list[str]]]:
        return [(number, read_lines(file)) for number, file in numbered(self._notes(kind))]

    def _source_log(self, source: int) -> list[dict[str, Any]]:
        folder = self._notes("sources", str(source))
        compacted = sorted((int(file.name.split(".")[0]), file) for file in folder.glob("[0-9]*.compact"))
        files = [file for _, file in compacted[-1:]]
        # A compacted file has everything up to its own number.
        files += [file for number, file in numbered(folder) if not compacted or number > compacted[-1][0]]
        return [parsed(file, line) for file in files for line in read_lines(file)]


def open_checkpoint(root: Path, spec: StreamSpec, *, renew: bool = False) -> Checkpoint:
    """Give the checkpoint a stream goes on with: its newest one, a first one, or on demand one that follows.

    Args:
        root: Folder of all checkpoints.
        spec: The stream as it is now.
        renew: Begin a new checkpoint. The old one is left as it is; what is published already is not published again.

    Returns:
        A checkpoint that fits and is whole.

    Raises:
        IncompatibleCheckpoint: The newest one was made by another stream of that name.
        CheckpointDamaged: It cannot be gone on with.
    """
    there = checkpoints(root, spec.name)
    if renew or not there:
        number = there[-1].number + 1 if there else 1
        made = Checkpoint(stream=spec.name, number=number, folder=root / spec.name / f"v{number}")
        made.folder.mkdir(parents=True, exist_ok=True)
        _keep(made.folder / _SPEC, spec)
        return made
    newest = there[-1]
    _refuse_another(newest, spec)
    newest.verify()
    return newest


def checkpoints(root: Path, stream: str | None = None) -> list[Checkpoint]:
    """List the checkpoints there are, by stream and number.

    Args:
        root: Folder of all checkpoints.
        stream: Only those of one stream.
    """
    found = [
        Checkpoint(stream=file.parent.parent.name, number=int(named[1]), folder=file.parent)
        for file in root.glob(f"*/v*/{_SPEC}")
        # A person may keep a copy beside it, like `v1.bak`.
        if (named := _NUMBERED.fullmatch(file.parent.name))
    ]
    kept = [checkpoint for checkpoint in found if stream in (None, checkpoint.stream)]
    return sorted(kept, key=lambda checkpoint: (checkpoint.stream, checkpoint.number))


def appended(lake: Lake, dataset: str) -> Iterator[Commit]:
    """Give the commits that appended batches to a table, the newest first.

    Args:
        lake: The tables' root.
        dataset: Name as `layer.table`.
    """
    table = lake.caught_up(dataset)
    for version, entry in lake.commits(table) if table is not None else []:
        info = parse(entry.get("userMetadata"))
        if info is not None and "appended" in info:
            yield Commit(dataset=dataset, version=version, entries=entries_of(dataset, version, info), info=info)


def turn_of(lake: Lake, dataset: str) -> int:
    """Give the number of the next batch among all that a table has been given by turns, whichever checkpoint's.

    Args:
        lake: The tables' root.
        dataset: Name as `layer.table`.
    """
    table = lake.caught_up(dataset)
    last = None if table is None else table.transaction_version(dataset)
    return 0 if last is None else last + 1


def _refuse_another(checkpoint: Checkpoint, spec: StreamSpec) -> None:
    file = checkpoint.folder / _SPEC
    made_by = parsed(file, file.read_text(encoding="utf-8"))
    now = spec.as_json()
    changed = sorted(name for name in {**made_by, **now} if made_by.get(name) != now.get(name))
    if changed:
        told = "; ".join(f"{name} was {_short(made_by.get(name))} and is {_short(now.get(name))}" for name in changed)
        raise IncompatibleCheckpoint(
            what=f"the stream '{spec.name}' has changed since its checkpoint was made: {told}",
            where=str(checkpoint.folder),
            next_step=f"undo the change, or begin a new checkpoint: blogdata stream {spec.name} --new-checkpoint "
            "(it goes on with the watermark, and what is published already is not published again)",
        )


def _keep(file: Path, spec: StreamSpec) -> None:
    part = file.with_suffix(".part")
    part.write_text(json.dumps(spec.as_json(), indent=1, sort_keys=True), encoding="utf-8")
    part.replace(file)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _log_offset(position: str | None) -> int:
    if position is None:
        return -1
    value = json.loads(position)
    return int(value["logOffset"]) if isinstance(value, dict) and "logOffset" in value else -1


def _path(address: str) -> str:
    return unquote(urlsplit(address).path)


def kept_rows(root: Path) -> Sequence[tuple[Any, ...]]:
    """Give all rows of :data:`STREAM_OFFSETS`.

    Args:
        root: Folder of all checkpoints.

    Raises:
        CheckpointDamaged: A file is not what Spark wrote.
    """
    return [row for checkpoint in checkpoints(root) if checkpoint.identity for row in checkpoint.rows()]
