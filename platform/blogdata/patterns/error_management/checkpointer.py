"""Checkpointer: a stream continues where it stopped, and its position can be read.

Problem: a stream that fails midway must neither start over nor skip the input it was processing.
How it works: Structured Streaming logs the input of a batch before processing it, and its completion afterwards, so a
batch that was cut off is retried with the same input. Publications are keyed by checkpoint and batch (``AppendBatch``),
so a retry changes nothing: together this is exactly once. A :class:`Checkpoint` reads Spark's log without a JVM: the
files of a batch, so that its account does not depend on what the job read, and the whole log as a table
(``ops.stream_offsets``). The :class:`StreamSpec` of the checkpoint is stored beside the log.
The trap: after a change of the source, the identity or the watermark, Spark resumes from a log that no longer means the
same; a changed spec is refused before Spark sees it. And a deleted checkpoint: batch numbers restart at zero, and a
writer that remembers numbers takes those batches for done. So a new checkpoint is a new writer (its identity is Spark's
query id), and rows that the table already has are skipped by source file. A query may outlive its client and run beside
its successor, so batches take turns: of two that have seen the same table version, the second is refused
(:func:`next_turn`).
When not to use it: where a batch job can be given its input, as for all partitioned datasets here.
Source: "Data Engineering Design Patterns", ch. 3.
"""

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, RunStream
from blogdata.files import write_atomically
from blogdata.table.lake import Lake
from blogdata.table.store import mismatch

STREAM_OFFSETS = "ops.stream_offsets"
OFFSETS_DDL = (
    "stream STRING, checkpoint INT, batch BIGINT, source INT, position STRING, files ARRAY<STRING>, committed BOOLEAN,"
    " planned_at TIMESTAMP"
)
"""Columns of :data:`STREAM_OFFSETS`: one row per source of each batch that Spark still retains."""
_SPEC = "stream.json"
_PUBLISHED = "published.json"
_NUMBERED = re.compile(r"v([1-9][0-9]*)")


@dataclass(frozen=True, kw_only=True)
class StreamSpec:
    """The definition of a stream that its checkpoint depends on; after any change the checkpoint no longer fits."""

    name: str
    source: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""
    key: tuple[str, ...] = ()
    watermark: str = ""


@dataclass(frozen=True, kw_only=True)
class PlannedBatch:
    number: int
    positions: tuple[str | None, ...]
    """End offset of each source, in the source's own format; None for a source without data yet."""
    ends: tuple[int, ...]
    """Last entry of each source's own log that belongs to the batch; -1 for none."""
    planned_at: datetime
    watermark: datetime | None
    """Event time up to which a query that keeps state has let its rows go; None: it has none yet."""
    committed: bool


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint of a stream; reading it raises :class:`PlatformError` where a file is not what Spark wrote."""

    stream: str
    number: int
    folder: Path

    @property
    def location(self) -> str:
        return str(self.folder / "query")

    @property
    def identity(self) -> str | None:
        """Spark's query id, unique even if an earlier checkpoint had the same name; None before the first use."""
        file = self._notes("metadata")
        try:
            return str(uuid.UUID(parsed(file, _text(file))["id"])) if file.exists() else None
        except (KeyError, ValueError) as error:
            raise _damaged(file, "has no identity") from error

    @property
    def writer(self) -> str:
        """Name under which the batches of this checkpoint are published; the checkpoint must have been used."""
        assert self.identity is not None, "Spark has not used this checkpoint yet"
        return f"{self.stream}-{self.identity[:8]}"

    def batches(self) -> list[PlannedBatch]:
        """Read the batches that Spark still retains (the newest hundred), oldest first."""
        commits = {number: parsed(file, _lines(file)[0]) for number, file in _numbered(self._notes("commits"))}
        planned = []
        for number, file in _numbered(self._notes("offsets")):
            head, *positions = _lines(file)
            notes = parsed(file, head)
            mark = notes.get("batchWatermarkMs") or None
            batch = PlannedBatch(
                number=number,
                positions=tuple(None if position == "-" else position for position in positions),
                ends=tuple(-1 if it == "-" else int(parsed(file, it).get("logOffset", -1)) for it in positions),
                planned_at=_instant(notes["batchTimestampMs"]),
                watermark=mark and _instant(mark),
                committed=number in commits,
            )
            planned.append(batch)
        return planned

    def files(self, batch: int, source: int = 0) -> tuple[str, ...]:
        """List the paths of the files of a batch that Spark still retains, from the source's own log."""
        files = self._batch_files(source)
        if batch not in files:
            raise _damaged(self._notes("offsets", str(batch)), "is not there")
        return files[batch]

    def every_file(self) -> frozenset[str]:
        """Return the paths of all files that the stream's sources have ever assigned to a batch."""
        return frozenset(path for source in self._sources() for _, path in self._source_log(source))

    def finished(self) -> frozenset[str]:
        """Return the paths of all files of committed batches."""
        return self.every_file() - set(self.unfinished())

    def unfinished(self) -> tuple[str, ...]:
        """List the paths of the files that a source assigned to a batch that is not committed, or not even planned."""
        # A source logs its files before the batch is planned: a crash in between leaves files without a batch.
        planned, paths = self.batches(), list[str]()
        for source in self._sources():
            last = max((batch.ends[source] for batch in planned if batch.committed), default=-1)
            paths += [path for at, path in self._source_log(source) if at > last]
        return tuple(sorted(paths))

    def published(self) -> Mapping[str, Any]:
        """Return what was last noted of the tables that have all batches so far; empty before the first note."""
        file = self.folder / _PUBLISHED
        return parsed(file, file.read_text(encoding="utf-8")) if file.exists() else {}

    def note_published(self, tables: Mapping[str, Any]) -> None:
        write_atomically(self.folder / _PUBLISHED, json.dumps(tables, indent=1, sort_keys=True).encode())

    def rows(self) -> list[tuple[Any, ...]]:
        """Give the rows of :data:`STREAM_OFFSETS`."""
        of, files = (self.stream, self.number), [self._batch_files(source) for source in self._sources()]
        return [
            (*of, batch.number, source, position, [*files[source][batch.number]], batch.committed, batch.planned_at)
            for batch in self.batches()
            for source, position in enumerate(batch.positions)
        ]

    def _notes(self, *parts: str) -> Path:
        return self.folder.joinpath("query", *parts)

    def _sources(self) -> range:
        """Numbers of the stream's sources; that of the first one is known before a batch is planned."""
        return range(max((len(batch.positions) for batch in self.batches()), default=1))

    def _batch_files(self, source: int) -> dict[int, tuple[str, ...]]:
        log, planned = self._source_log(source), self.batches()
        ends = [batch.ends[source] for batch in planned]
        # The batch before the oldest retained one is gone: assume that it ended one offset earlier.
        begins = [-1 if batch.number == 0 else batch.ends[source] - 1 for batch in planned[:1]] + ends
        return {
            batch.number: tuple(sorted({path for at, path in log if begin < at <= end}))
            for batch, begin, end in zip(planned, begins, ends, strict=False)
        }

    def _source_log(self, source: int) -> list[tuple[int, str]]:
        folder = self._notes("sources", str(source))
        compacted = sorted((int(file.name.split(".")[0]), file) for file in folder.glob("[0-9]*.compact"))
        files = [file for _, file in compacted[-1:]]
        # A compacted file contains all entries up to its own number.
        files += [file for number, file in _numbered(folder) if not compacted or number > compacted[-1][0]]
        entries = [parsed(file, line) for file in files for line in _lines(file)]
        return [(entry["batchId"], unquote(urlsplit(entry["path"]).path)) for entry in entries]


def open_checkpoint(root: Path, spec: StreamSpec, *, renew: bool = False) -> Checkpoint:
    """Open the newest checkpoint of a stream; create one if there is none, or `renew` is set."""
    newest = next(reversed(checkpoints(root, spec.name)), None)
    if renew or newest is None:
        number = newest.number + 1 if newest else 1
        checkpoint = Checkpoint(stream=spec.name, number=number, folder=root / spec.name / f"v{number}")
        checkpoint.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(checkpoint.folder / _SPEC, json.dumps(asdict(spec), indent=1, sort_keys=True).encode())
        return checkpoint
    _refuse_another(newest, spec)
    if newest.identity is not None:
        # Spark reads the same files, and fails deep inside where one is damaged.
        newest.every_file()
    return newest


def checkpoints(root: Path, stream: str | None = None) -> list[Checkpoint]:
    used = [
        Checkpoint(stream=file.parent.parent.name, number=int(match[1]), folder=file.parent)
        for file in root.glob(f"{stream or '*'}/v*/{_SPEC}")
        # A person may keep a copy beside it, like `v1.bak`.
        if (match := _NUMBERED.fullmatch(file.parent.name))
    ]
    return sorted(used, key=lambda checkpoint: (checkpoint.stream, checkpoint.number))


def next_turn(lake: Lake, dataset: str) -> int:
    """Return the turn of the next batch that is appended to a table; all checkpoints share one sequence, from zero."""
    table = lake.caught_up(dataset)
    last = None if table is None else table.transaction_version(dataset)
    return 0 if last is None else last + 1


def _refuse_another(checkpoint: Checkpoint, spec: StreamSpec) -> None:
    file = checkpoint.folder / _SPEC
    made_by = parsed(file, file.read_text(encoding="utf-8"))
    now = json.loads(json.dumps(asdict(spec)))
    changed = [name for name in sorted(now) if made_by.get(name) != now[name]]
    if changed:
        was, new = ([json.dumps(facts.get(name)) for name in changed] for facts in (made_by, now))
        diff = "; ".join(f"{name} was {a} and is {b}" for name, a, b in zip(changed, was, new, strict=True))
        raise PlatformError(
            what=f"the stream '{spec.name}' has changed since its checkpoint was made: {diff}",
            where=str(checkpoint.folder),
            next_step=Remedy(
                "undo the change, or begin a new checkpoint: ",
                RunStream(name=spec.name, new_checkpoint=True),
                " (what is published already is not published again)",
            ),
        )


def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=timezone.utc)


def stream_offset_rows(root: Path) -> Sequence[tuple[Any, ...]]:
    return [row for checkpoint in checkpoints(root) if checkpoint.identity for row in checkpoint.rows()]


def parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise _damaged(file, "has a line that is not JSON") from error
    if not isinstance(value, dict):
        raise _damaged(file, "has a line that is not an object")
    return value


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    return sorted((int(file.name), file) for file in folder.glob("[0-9]*") if file.name.isdecimal())


def _lines(file: Path) -> list[str]:
    """Read the lines after the version line, without empty ones."""
    version, *lines = _text(file).split("\n")
    if not re.fullmatch(r"v\d+", version) or not any(lines):
        raise _damaged(file, "does not begin with a version, or ends after it")
    return [line for line in lines if line]


def _text(file: Path) -> str:
    try:
        if mismatch(file) is not None:
            raise _damaged(file, "does not match its checksum")
        return file.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise _damaged(file, f"cannot be read: {error}") from error


def _damaged(file: Path, problem: str) -> PlatformError:
    # The greedy match finds the last such folder: a parent of the checkpoints may be named like `v1`, too.
    match = re.match(r".*/([^/]+)/v\d+/", file.as_posix())
    return PlatformError(
        what=f"a file of the checkpoint {problem}",
        where=str(file),
        next_step=Remedy(
            "put it back from a copy, or begin a new checkpoint: ",
            RunStream(name=match[1] if match else "NAME", new_checkpoint=True),
            " (what is published already is not published again); do not delete single files",
        ),
    )
