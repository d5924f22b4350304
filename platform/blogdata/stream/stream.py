"""Runs streams: each micro-batch is audited and published exactly once, even if it is interrupted and retried.

Spark processes a micro-batch in a Python worker process on the server's host: the project has to be installed there.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Account, Commit, FileFigures
from blogdata.errors import PlatformError, TransientError, foreign
from blogdata.errors.remedies import Remedy, RunStream
from blogdata.landing.lines import Bounds, LineReader
from blogdata.landing.streamed_files import BatchFile, StreamedFiles
from blogdata.landing.suppression_list import erase_by_home
from blogdata.ledger.claims import Claims
from blogdata.ledger.events import EventLog, appended
from blogdata.patterns.error_management.checkpointer import Checkpoint, StreamSpec, open_checkpoint
from blogdata.runs import lost_tables, turns
from blogdata.table import kept_rows
from blogdata.table.audit import Violation
from blogdata.table.faults import AuditFailed
from blogdata.table.lake import Lake
from blogdata.table.publish import publish
from blogdata.table.target import READ, AppendBatch, Provenance, RunContext, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GRACE_SECONDS = 60.0
_FAULT = "[BLOGDATA_FAULT]"
_WORKER_LATE = "Python worker failed to connect back"


class StreamFailed(PlatformError):
    """Raised when a batch of a stream failed."""


class StreamBusy(PlatformError):
    """Raised when another process is running the stream, or has taken it over."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a stream publishes, and for which run; it is sent to the worker process.

    `probe` has a folder `dataset/number` for each publication that a test steps through; `home` is the deployment's.
    """

    lake: Lake
    landing: Path
    run: RunContext
    probe: str | None = None
    bounds: Bounds = field(default_factory=Bounds)
    home: Path | None = None

    def commits(self, dataset: str) -> list[Commit]:
        """List what the run has appended to a dataset, the newest first."""
        newest = appended(self.lake, dataset)
        return [*takewhile(lambda commit: commit.info["run"]["run_id"] == self.run.run_id, newest)]


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    lines: DataFrame
    number: int
    checkpoint: Checkpoint
    sources: tuple[StreamedFiles, ...]
    place: Place
    events: EventLog

    @property
    def spark(self) -> SparkSession:
        return self.lines.sparkSession

    @property
    def label(self) -> str:
        """Value of the column `batch` in its rows."""
        return f"{self.checkpoint.writer}/{self.number}"

    @cached_property
    def files(self) -> Sequence[BatchFile]:
        """The files of the batch, as the checkpoint records them."""
        landing, bounds = self.place.landing, self.place.bounds
        return [
            file
            for at, source in enumerate(self.sources)
            for file in source.batch_files(
                self.checkpoint.files(self.number, at), landing, bounds, stream=self.checkpoint.stream
            )
        ]

    def erase_known(self) -> None:
        """Take the lines of forgotten persons out of the files of the batch, which nothing has read yet."""
        if self.place.home is not None:
            paths = (path for at in range(len(self.sources)) for path in self.checkpoint.files(self.number, at))
            erase_by_home(self.place.home, self.place.landing, map(Path, paths))

    def newest(self, dataset: str) -> Commit | None:
        """Find the newest commit that appended another batch to a dataset; None if there is none."""
        this = (self.checkpoint.writer, self.number)
        commits = ((commit, commit.info["appended"]) for commit in appended(self.place.lake, dataset))
        return next((commit for commit, of in commits if (of["stream"], of["batch"]) != this), None)

    def append(
        self,
        frame: DataFrame,
        contract: Contract,
        *,
        accounts: Mapping[str, Account],
        turn: int,
        files: Mapping[str, Mapping[str, FileFigures]] | None = None,
        **notes: object,
    ) -> Commit:
        """Audit and publish rows of the batch, and record the commit in the event log.

        `turn` is what :func:`next_turn` returned before the table was read. `files` maps a partition to its landed
        files with the lines and bytes that its rows must have.
        """
        from pyspark.sql import functions as F

        place = self.place
        probe = Path(place.probe, contract.dataset, str(self.number)) if place.probe else None
        steps = str(probe) if probe and probe.is_dir() else None
        commit = publish(
            frame.withColumn("batch", F.lit(self.label)),
            Target(lake=place.lake, contract=contract, run=place.run, probe=steps),
            change=AppendBatch(
                stream=self.checkpoint.writer,
                batch=self.number,
                turn=turn,
                notes={READ: f"landing.{self.sources[0].table}", **notes},
            ),
            partitions=sorted(accounts),
            provenance=Provenance(inputs={}, accounts=accounts, files=files or {}),
        )
        self.events.record(commit)
        return commit


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Definition of a stream, from sources in the order in which the checkpoint counts them.

    `watermark` describes how event time advances, and must change whenever the rule does. `query` computes the rows of
    a batch from the lines of the sources. `process` is idempotent: a retry does not change what is published; if the
    query keeps state, it computes the rows exactly once.
    """

    name: str
    sources: tuple[StreamedFiles, ...]
    readers: tuple[LineReader, ...]
    schema: str
    key: tuple[str, ...]
    watermark: str
    contracts: tuple[Contract, ...]
    process: Callable[[MicroBatch], None]
    query: Callable[[Sequence[DataFrame]], DataFrame] | None = None

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(contract.dataset for contract in self.contracts)

    def spec(self, landing: Path) -> StreamSpec:
        """Return the facts that a checkpoint must match to be resumed."""
        properties = {
            f"{name}{at or ''}": value
            for at, source in enumerate(self.sources)
            for name, value in source.checkpoint_properties(landing).items()
        }
        return StreamSpec(name=self.name, source=properties, schema=self.schema, key=self.key, watermark=self.watermark)


@dataclass(frozen=True)
class _Work:
    """What Spark calls in the worker process for each micro-batch."""

    stream: Stream
    checkpoint: Checkpoint
    place: Place
    claim: _Claim

    def __call__(self, lines: DataFrame, number: int) -> None:
        stream, place = self.stream, self.place
        events = EventLog(place.lake)
        batch = MicroBatch(
            lines=lines, number=number, checkpoint=self.checkpoint, sources=stream.sources, place=place, events=events
        )
        try:
            # The server goes on with a query whose client was killed; this ends it once another process has the claim.
            self.claim.require()
            _require_published(self.checkpoint, stream, events)
            for contract in stream.contracts:
                lost_tables.begin_anew(batch.spark, events, (contract,))
            batch.erase_known()
            stream.process(batch)
            _note_published(self.checkpoint, stream, place.lake)
        except PlatformError as error:
            raise RuntimeError(packed(error)) from error
        except Exception as error:
            raise RuntimeError(packed(_unforeseen(stream.name, error, f"batch {number}: "))) from error
        finally:
            kept_rows.let_go(lines)


def run(
    spark: SparkSession,
    stream: Stream,
    place: Place,
    *,
    checkpoints: Path,
    every_seconds: float | None = None,
    new_checkpoint: bool = False,
    stop: threading.Event | None = None,
) -> None:
    """Run a stream: process all available input and end, or poll every so many seconds until stopped."""
    with closing(_Claim(place.lake, stream.name)) as claim, unpacked(stream.name):
        checkpoint = open_checkpoint(checkpoints, stream.spec(place.landing), renew=new_checkpoint)
        _require_published(checkpoint, stream, EventLog(place.lake))
        lines = [
            source.lines(spark, place.landing, reader, place.bounds)
            for source, reader in zip(stream.sources, stream.readers, strict=True)
        ]
        rows = stream.query(lines) if stream.query else lines[0]
        writer = rows.writeStream.queryName(stream.name).option("checkpointLocation", checkpoint.location)
        writer = writer.foreachBatch(_Work(stream, checkpoint, place, claim))
        often: dict[str, Any] = {"processingTime": f"{every_seconds:g} seconds"} if every_seconds is not None else {}
        query = writer.trigger(**(often or {"availableNow": True})).start()
        try:
            while not query.awaitTermination(1):
                claim.keep()
                if stop is not None and stop.is_set():
                    deadline = time.monotonic() + _GRACE_SECONDS
                    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
                        time.sleep(0.2)
                    break
        finally:
            # Also when this process is interrupted: the query runs in the server, not here.
            if query.isActive:
                query.stop()


def _note_published(checkpoint: Checkpoint, stream: Stream, lake: Lake) -> None:
    """Note the identity and the version of the tables that have all batches of a checkpoint so far."""
    tables = {name: table for name in stream.datasets if (table := lake.caught_up(name)) is not None}
    noted = {name: {"id": str(table.metadata().id), "version": table.version()} for name, table in tables.items()}
    checkpoint.note_published(noted)


def _require_published(checkpoint: Checkpoint, stream: Stream, events: EventLog) -> None:
    """Require that the lake has what a checkpoint has published.

    A checkpoint passes over the input that it has published. Beside a lake that lacks these rows (put back from a copy,
    or emptied) the stream would leave them out for ever, and what is published would still add up.
    """
    lake, noted, behind = events.lake, checkpoint.published(), []
    for name in stream.datasets:
        table, known = lake.caught_up(name), noted.get(name)
        if known and (table is None or str(table.metadata().id) != known["id"] or table.version() < known["version"]):
            behind.append(name)
    if behind:
        raise PlatformError(
            what=f"the lake lacks what the stream '{stream.name}' has published: {', '.join(behind)} gone or older",
            where=lake.root,
            next_step=Remedy(
                "bring back the lake that has it; or begin a new checkpoint: ",
                RunStream(name=stream.name, new_checkpoint=True),
                " (it reads again what is in the landing zone, and publishes what the lake lacks)",
            ),
        )


class _Claim:
    """Claim on a stream, renewed while it runs: two queries on one checkpoint would stop each other."""

    def __init__(self, lake: Lake, name: str) -> None:
        self._lake, self._name, self._owner = lake, name, turns.this_run()
        self._claims = turns.claims(lake, f"stream {name}")
        self._renewed = time.time()
        if not self._claims.take([name], self._owner):
            raise self._busy("is being run already")

    def keep(self) -> None:
        """Renew the claim when it is due; uses wall-clock time, which also advances while the machine sleeps."""
        now = time.time()
        if now - self._renewed < turns.RENEWAL.total_seconds():
            return
        if not self._claims.renew([self._name], self._owner):
            raise self._busy("was taken over, because its claim had lapsed")
        self._renewed = now

    def require(self) -> None:
        """Refuse to go on without the claim; whether its owner lives is not asked, which another host cannot see."""
        noted = Claims(self._lake, f"stream {self._name}", alive=lambda claim: True).held().get(self._name)
        if noted is None or noted.owner != self._owner:
            raise self._busy("was taken over, because its claim had lapsed")

    def close(self) -> None:
        self._claims.release([self._name], self._owner)

    def _busy(self, what: str) -> StreamBusy:
        held = self._claims.held().get(self._name)
        return StreamBusy(
            what=f"the stream '{self._name}' {what}",
            where=f"by {held.owner.rsplit(' ', 2)[0]} (machine and process)" if held else self._name,
            next_step="nothing has to be done: what has landed is taken in there; or end that process first",
        )


def packed(error: PlatformError) -> str:
    """Write a fault as JSON into an error text: of an error in the worker process, Spark passes on only its text."""
    violations = [vars(item) for item in error.violations] if isinstance(error, AuditFailed) else []
    texts = {"what": error.what, "where": error.where, "next_step": error.next_step}
    fields = {**texts, "transient": error.transient, "violations": violations}
    return f"{_FAULT} {json.dumps(fields, default=str)}"


@contextmanager
def unpacked(name: str) -> Iterator[None]:
    """Raise an error of a stream's batch: a refused publication, a transient one, or another one."""
    try:
        yield
    except PySparkException as error:
        text = str(error)
        try:
            fields, _ = json.JSONDecoder().raw_decode(text.partition(_FAULT)[2].lstrip())
        except json.JSONDecodeError:
            # No marker, or the message was truncated in transit.
            late = _WORKER_LATE in text
            if not late and "STREAM_FAILED" not in text:
                raise error from None
            raise _unforeseen(name, error, kind=TransientError if late else StreamFailed) from error
        if violations := [Violation(**item) for item in fields.pop("violations")]:
            raise AuditFailed(fields["where"], violations) from error
        kind = TransientError if fields.pop("transient") else StreamFailed
        raise kind(**fields) from error


def _unforeseen(
    name: str, error: Exception, batch: str = "", kind: type[PlatformError] = StreamFailed
) -> PlatformError:
    return kind(
        what=f"the stream '{name}' ended: {batch}{foreign.unquoted(error)}",
        where=name,
        next_step="run it again: a batch that was cut off is done again and published once; when it repeats, the "
        "server's log, in services/spark of the deployment's folder, has more",
    )
