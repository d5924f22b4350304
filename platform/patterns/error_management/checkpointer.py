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
has is left out by its source file.
When not to use it: where a batch job can be told its input, as all partitioned datasets here can.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from patterns.core.commit import Commit, entries_of, parse
from patterns.core.errors import PlatformError
from patterns.core.lake import Lake

STREAM_OFFSETS = "ops.stream_offsets"
OFFSETS_DDL = (
    "stream STRING, checkpoint INT, batch BIGINT, source INT, position STRING, files ARRAY<STRING>, committed BOOLEAN,"
    " planned_at TIMESTAMP"
)
"""The columns of :data:`STREAM_OFFSETS`: one row per batch that Spark still remembers, and source."""
_SPEC = "stream.json"
_QUERY = "query"


class IncompatibleCheckpoint(PlatformError):
    """The stream is not the one its checkpoint was made by."""


class CheckpointDamaged(PlatformError):
    """A file of the checkpoint cannot be what Spark wrote."""


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
            return str(uuid.UUID(_parsed(file, _text(file))["id"]))
        except (KeyError, ValueError) as error:
            raise _damaged(file, "has no identity") from error

    @property
    def writer(self) -> str:
        """Name under which batches of this checkpoint are published; it has been used.

        Raises:
            CheckpointDamaged: Spark has not written its identity, or something else is there.
        """
        identity = self.identity
        if identity is None:
            raise _damaged(self._notes("metadata"), "is not there")
        return f"{self.stream}-{identity[:8]}"

    def batches(self) -> list[PlannedBatch]:
        """Read what Spark still remembers: the newest hundred batches, oldest first.

        Raises:
            CheckpointDamaged: A file is not what Spark wrote.
        """
        done = set()
        for number, lines in self._read("commits"):
            _parsed(self._notes("commits", str(number)), lines[0])
            done.add(number)
        found = []
        for number, (head, *positions) in self._read("offsets"):
            file = self._notes("offsets", str(number))
            planned = _parsed(file, head)["batchTimestampMs"]
            for position in positions:
                if position != "-":
                    _parsed(file, position)
            found.append(
                PlannedBatch(
                    number=number,
                    positions=tuple(None if position == "-" else position for position in positions),
                    planned_at=datetime.fromtimestamp(planned / 1000, tz=timezone.utc),
                    committed=number in done,
                )
            )
        return found

    def files(self, batch: int, source: int = 0) -> tuple[str, ...]:
        """Give the paths of the files a batch is made of, by the source's own log.

        Args:
            batch: Its number; Spark still remembers it.
            source: Which source, which is one of files.

        Raises:
            CheckpointDamaged: The batch is not there, or a file is not what Spark wrote.
        """
        ends = {planned.number: _log_offset(planned.positions[source]) for planned in self.batches()}
        if batch not in ends:
            raise _damaged(self._notes("offsets", str(batch)), "is not there")
        after = ends.get(batch - 1, -1)
        taken = {entry["path"]: entry["batchId"] for entry in self._source_log(source)}
        return tuple(sorted(_path(address) for address, at in taken.items() if after < at <= ends[batch]))

    def every_file(self, source: int = 0) -> frozenset[str]:
        """Give the paths of all files that a source has ever put into a batch.

        Raises:
            CheckpointDamaged: A file is not what Spark wrote.
        """
        return frozenset(_path(entry["path"]) for entry in self._source_log(source))

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
        return [(number, _lines(file)) for number, file in _numbered(self._notes(kind))]

    def _source_log(self, source: int) -> list[dict[str, Any]]:
        folder = self._notes("sources", str(source))
        compacted = sorted((int(file.name.split(".")[0]), file) for file in folder.glob("[0-9]*.compact"))
        files = [file for _, file in compacted[-1:]]
        # A compacted file has everything up to its own number.
        files += [file for number, file in _numbered(folder) if not compacted or number > compacted[-1][0]]
        return [_parsed(file, line) for file in files for line in _lines(file)]


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
        Checkpoint(stream=file.parent.parent.name, number=int(file.parent.name[1:]), folder=file.parent)
        for file in root.glob(f"*/v*/{_SPEC}")
    ]
    kept = [checkpoint for checkpoint in found if stream in (None, checkpoint.stream)]
    return sorted(kept, key=lambda checkpoint: (checkpoint.stream, checkpoint.number))


def appended(lake: Lake, dataset: str) -> Iterator[Commit]:
    """Give the commits that appended batches to a table, the newest first.

    Args:
        lake: The tables' root.
        dataset: Name as `layer.table`.
    """
    table = lake.table(dataset)
    looked = 0
    limit: int | None = 20
    while table is not None:
        history = table.history(limit)
        for entry in history[looked:]:
            info = parse(entry.get("userMetadata"))
            if info is not None and "appended" in info:
                version = int(entry["version"])
                yield Commit(dataset=dataset, version=version, entries=entries_of(dataset, version, info), info=info)
        if limit is None or len(history) < limit:
            return
        # Nearly always the newest few will do.
        looked, limit = len(history), None


def _refuse_another(checkpoint: Checkpoint, spec: StreamSpec) -> None:
    file = checkpoint.folder / _SPEC
    made_by = _parsed(file, file.read_text(encoding="utf-8"))
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


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    files = [(int(file.name), file) for file in folder.glob("[0-9]*") if file.name.isdecimal()]
    return sorted(files)


def _lines(file: Path) -> list[str]:
    version, *lines = _text(file).split("\n")
    if not version.startswith("v") or not version[1:].isdecimal():
        raise _damaged(file, "does not begin with a version")
    if not any(lines):
        raise _damaged(file, "ends after its first line")
    return [line for line in lines if line]


def _text(file: Path) -> str:
    try:
        content = file.read_bytes()
    except FileNotFoundError as error:
        raise _damaged(file, "is not there") from error
    sums = file.with_name(f".{file.name}.crc")
    if sums.exists() and not _sums_up(content, sums.read_bytes()):
        raise _damaged(file, "does not match its checksum")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _damaged(file, "is not text") from error


def _sums_up(content: bytes, sums: bytes) -> bool:
    """Check a file against the sums Hadoop keeps beside it: `crc`, a zero, the chunk's length, a CRC-32 a chunk."""
    length = struct.unpack(">i", sums[4:8])[0] if len(sums) >= 8 else 0
    if sums[:4] != b"crc\0" or length <= 0:
        return False
    chunks = range(0, len(content), length)
    return sums[8:] == b"".join(struct.pack(">I", zlib.crc32(content[at : at + length])) for at in chunks)


def _parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise _damaged(file, "has a line that is not JSON") from error
    if not isinstance(value, dict):
        raise _damaged(file, "has a line that is not an object")
    return value


def _log_offset(position: str | None) -> int:
    if position is None:
        return -1
    value = json.loads(position)
    return int(value["logOffset"]) if isinstance(value, dict) and "logOffset" in value else -1


def _path(address: str) -> str:
    return unquote(urlsplit(address).path)


def _damaged(file: Path, problem: str) -> CheckpointDamaged:
    named = re.search(r"([^/]+)/v\d+/", file.as_posix())
    stream = named.group(1) if named else "NAME"
    return CheckpointDamaged(
        what=f"a file of the checkpoint {problem}",
        where=str(file),
        next_step="put it back from a copy, or begin a new checkpoint: "
        f"blogdata stream {stream} --new-checkpoint (what is published already is not published again); do not delete "
        "single files: a batch that is planned anew under its old number would be taken for done",
    )


def kept_rows(root: Path) -> Sequence[tuple[Any, ...]]:
    """Give all rows of :data:`STREAM_OFFSETS`.

    Args:
        root: Folder of all checkpoints.

    Raises:
        CheckpointDamaged: A file is not what Spark wrote.
    """
    return [row for checkpoint in checkpoints(root) if checkpoint.identity for row in checkpoint.rows()]
