"""Runs streams: each micro-batch is audited and published exactly once, even if it is interrupted and retried.

Spark processes a micro-batch in a Python worker process on the server's host, so the project has to be installed
there. An error raised in the worker is raised again in the client with its original type.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.evidence.claims import Claims
from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Account, Commit
from blogdata.lake.lake import Lake
from blogdata.orchestration import lost_tables, owners, stream_faults, streamed_tables
from blogdata.patterns.error_management.checkpointer import Checkpoint, StreamSpec, open_checkpoint
from blogdata.patterns.error_management.streamed_files import BatchFile, StreamedFiles
from blogdata.patterns.ingestion.landed_lines import Bounds
from blogdata.patterns.ingestion.landed_links import leading_out
from blogdata.publish import kept_rows
from blogdata.publish.audit import FileFigures, lifted_audits
from blogdata.publish.changes import AppendBatch
from blogdata.publish.contract import Contract
from blogdata.publish.publish import publish
from blogdata.publish.run import RunContext
from blogdata.publish.target import Engine, Provenance, Target
from blogdata.services import config
from blogdata.suppression.entry import erase_known
from blogdata.suppression.suppression_list import SuppressionList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GRACE_SECONDS = 60.0


class StreamBusy(PlatformError):
    """Raised when another process is running the stream."""


class StreamLost(PlatformError):
    """Raised when another process has taken the stream over."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a stream publishes, and for which run; it is sent to the worker process.

    Args:
        probe: Folder with a folder `dataset/number` for each publication that a test steps through; None in
            production.
        home: Home of the deployment, which knows who was forgotten; None: nobody was.
    """

    lake: Lake
    landing: Path
    run: RunContext
    engine: Engine = Engine.TRANSACTION
    probe: str | None = None
    accepted: frozenset[str] = frozenset()
    bounds: Bounds = field(default_factory=Bounds)
    home: Path | None = None

    def settings(self) -> config.Settings | None:
        """Read the settings of the deployment; they have secrets, so they are not kept here, but read where needed."""
        return None if self.home is None else config.load(overrides={"BLOGDATA_HOME": str(self.home)})


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """One micro-batch, as the worker process handles it."""

    lines: DataFrame
    number: int
    checkpoint: Checkpoint
    source: StreamedFiles
    place: Place
    others: tuple[StreamedFiles, ...] = ()

    @property
    def spark(self) -> SparkSession:
        """Spark session of the batch."""
        return self.lines.sparkSession

    @cached_property
    def writer(self) -> str:
        """Writer name under which the checkpoint's batches are published."""
        return self.checkpoint.writer

    @cached_property
    def files(self) -> Sequence[BatchFile]:
        """The files of the batch, as the checkpoint records them."""
        sources = enumerate((self.source, *self.others))
        landing, bounds = self.place.landing, self.place.bounds
        return [
            file
            for at, one in sources
            for file in one.batch_files(self.checkpoint, self.number, landing, bounds, at=at)
        ]

    def erase_known(self) -> None:
        """Take the lines of forgotten persons out of the files of the batch, which nothing has read yet."""
        settings, landing = self.place.settings(), self.place.landing
        if settings is not None and SuppressionList.of(settings).suppressed() is not None:
            found = (path for at in range(1 + len(self.others)) for path in self.checkpoint.files(self.number, at))
            files = [file for path in found if leading_out(file := Path(path), landing) is None and file.is_file()]
            erase_known(settings, landing, files)

    def append(
        self,
        frame: DataFrame,
        contract: Contract,
        once: AppendBatch,
        *,
        accounts: Mapping[str, Account],
        files: Mapping[str, Mapping[str, FileFigures]] | None = None,
        inputs: Mapping[str, int] | None = None,
    ) -> Commit:
        """Audit and publish rows of the batch, and record the commit in the event log.

        Args:
            files: Partition to landed file to its lines and bytes, which its rows must have.

        Raises:
            PlatformError: As `publish`.
        """
        place, events = self.place, EventLog(self.place.lake)
        lost_tables.begin_anew(self.spark, place.lake, events, (contract,), place.engine)
        probe = Path(place.probe, contract.dataset, str(once.batch)) if place.probe else None
        target = Target(
            lake=place.lake,
            contract=contract,
            run=place.run,
            engine=place.engine,
            probe=str(probe) if probe and probe.is_dir() else None,
            lifted=lifted_audits(place.accepted, contract.dataset),
        )
        provenance = Provenance(inputs=inputs or {}, accounts=accounts, files=files or {})
        commit = publish(frame, target, change=once, partitions=sorted(accounts), provenance=provenance)
        events.record(commit)
        return commit


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Definition of a stream.

    Args:
        watermark: Text that describes how event time advances; it must change whenever the rule does.
        datasets: Names of the published datasets, in order.
        process: Processes a micro-batch. Must be idempotent: a retry must not change what is already published.
        query: Computes the rows of a batch from the lines of the sources, in their order; None: the lines themselves.
            If it keeps state, `process` has to compute its rows exactly once.
        prepare: Makes files of the source, before each look for them; returns a fault, which is raised at the end.
    """

    name: str
    source: StreamedFiles
    schema: str
    key: tuple[str, ...]
    watermark: str
    datasets: tuple[str, ...]
    without_late: tuple[str, ...] = ()
    process: Callable[[MicroBatch], None]
    others: tuple[StreamedFiles, ...] = ()
    query: Callable[[Sequence[DataFrame]], DataFrame] | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Place], PlatformError | None] = lambda _: None

    @property
    def sources(self) -> tuple[StreamedFiles, ...]:
        """All sources, in the order in which the checkpoint counts them."""
        return (self.source, *self.others)

    def spec(self, landing: Path) -> StreamSpec:
        """Return the facts that a checkpoint must match to be resumed."""
        return StreamSpec(
            name=self.name,
            source={
                f"{name}{at or ''}": value
                for at, one in enumerate(self.sources)
                for name, value in one.checkpoint_properties(landing).items()
            },
            schema=self.schema,
            key=self.key,
            watermark=self.watermark,
        )


@dataclass(frozen=True)
class _Work:
    """The callable that Spark runs in the worker process for each micro-batch."""

    stream: Stream
    checkpoint: Checkpoint
    place: Place
    claim: _Claim

    def __call__(self, lines: DataFrame, number: int) -> None:
        batch = MicroBatch(
            lines=lines,
            number=number,
            checkpoint=self.checkpoint,
            source=self.stream.source,
            place=self.place,
            others=self.stream.others,
        )
        try:
            # The server keeps running a query whose client was killed; this ends it once another run has the claim.
            self.claim.require()
            lake, stream = self.place.lake, self.stream
            streamed_tables.require(self.checkpoint.folder.parents[1], stream.name, lake, stream.datasets)
            batch.erase_known()
            stream.process(batch)
            streamed_tables.note(self.checkpoint, lake, stream.datasets)
        except PlatformError as error:
            raise RuntimeError(stream_faults.packed(error)) from error
        except Exception as error:
            unforeseen = stream_faults.unforeseen(self.stream.name, error, f"batch {number}: ")
            raise RuntimeError(stream_faults.packed(unforeseen)) from error
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
    """Run a stream: process all available input and end, or poll until stopped.

    Args:
        every_seconds: Trigger interval; None: process the available input and end.

    Raises:
        ConfigurationError: Without the engine's jar landed lines cannot be streamed.
        StreamBusy, StreamLost: Another process is running the stream, or has taken it over.
        LakeBehind: The lake lacks what the newest checkpoint has published.
        IncompatibleCheckpoint, CheckpointDamaged: Its checkpoint cannot be resumed.
        StreamWorkerLate: The worker process did not connect in time; transient.
        PlatformError: An error of one of its batches, or of what it was prepared from.
    """
    if place.engine is not Engine.TRANSACTION:
        raise ConfigurationError(
            what="without the engine's jar landed lines cannot be streamed",
            where=stream.name,
            next_step="run it where Spark may load the jar; the batch datasets have the same rows",
        )
    with _alone(place.lake, stream.name) as claim, stream_faults.unpacked(stream.name):
        streamed_tables.require(checkpoints, stream.name, place.lake, stream.datasets, renew=new_checkpoint)
        checkpoint = open_checkpoint(checkpoints, stream.spec(place.landing), renew=new_checkpoint)
        lines = [source.lines(spark, place.landing, place.bounds) for source in stream.sources]
        rows = stream.query(lines) if stream.query else lines[0]
        writer = rows.writeStream.queryName(stream.name).option("checkpointLocation", checkpoint.location)
        writer = writer.foreachBatch(_Work(stream, checkpoint, place, claim))
        often: dict[str, Any] = {"processingTime": f"{every_seconds:g} seconds"} if every_seconds is not None else {}
        writer = writer.trigger(**(often or {"availableNow": True}))
        fault, prepared_at = stream.prepare(place), time.monotonic()
        with _configured(spark, stream.configuration):
            query = writer.start()
        try:
            while not query.awaitTermination(1):
                claim.keep()
                if stop is not None and stop.is_set():
                    _let_finish(query)
                    break
                if every_seconds is not None and time.monotonic() - prepared_at >= every_seconds:
                    fault, prepared_at = stream.prepare(place), time.monotonic()
        finally:
            # Also when this process is interrupted: the query runs in the server, not here.
            if query.isActive:
                query.stop()
        if fault is not None:
            raise fault


@contextmanager
def _configured(spark: SparkSession, configuration: Mapping[str, str]) -> Iterator[None]:
    """Have settings inside the block; a query keeps those that it was started with."""
    for name, value in configuration.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in configuration:
            spark.conf.unset(name)


def _let_finish(query: Any) -> None:
    deadline = time.monotonic() + _GRACE_SECONDS
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.2)


class _Claim:
    """Claim on a stream, renewed while the stream runs."""

    def __init__(self, lake: Lake, name: str) -> None:
        self._lake = lake
        self._claims = Claims(lake, f"stream {name}", alive=owners.alive)
        self._name = name
        self._owner = owners.this_run()
        self._renewed = 0.0

    def take(self) -> None:
        self._renewed = time.time()
        if not self._claims.take([self._name], self._owner):
            raise StreamBusy(
                what=f"the stream '{self._name}' is being run already",
                where=self._holder(),
                next_step="nothing has to be done: what has landed is taken in there; or end that process first",
            )

    def keep(self) -> None:
        """Renew the claim when it is due; uses wall-clock time, which also advances while the machine sleeps."""
        now = time.time()
        if now - self._renewed < owners.RENEWAL.total_seconds():
            return
        if not self._claims.renew([self._name], self._owner):
            raise self._lost()
        self._renewed = now

    def require(self) -> None:
        """Raise :class:`StreamLost` unless this run has the claim; no liveness check, which another host cannot do."""
        noted = Claims(self._lake, f"stream {self._name}", alive=lambda claim: True).held().get(self._name)
        if noted is None or noted.owner != self._owner:
            raise self._lost()

    def release(self) -> None:
        self._claims.release([self._name], self._owner)

    def _lost(self) -> StreamLost:
        return StreamLost(
            what=f"the stream '{self._name}' was taken over, because its claim had lapsed",
            where=self._holder(),
            next_step="nothing has to be done: what has landed is taken in there; if this machine slept, or its "
            "clock was changed, see that it does not happen again",
        )

    def _holder(self) -> str:
        held = self._claims.held().get(self._name)
        return f"by {held.owner.rsplit(' ', 2)[0]} (machine and process)" if held else self._name


@contextmanager
def _alone(lake: Lake, name: str) -> Iterator[_Claim]:
    """Hold the stream's claim inside the block: two queries on one checkpoint would stop each other."""
    claim = _Claim(lake, name)
    claim.take()
    try:
        yield claim
    finally:
        claim.release()


def is_running(lake: Lake, name: str) -> bool:
    """Return whether a live process holds the claim on a stream."""
    return name in Claims(lake, f"stream {name}", alive=owners.alive).held()
