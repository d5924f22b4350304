"""Runs streams: each micro-batch is published like every batch, once, wherever it is cut off.

A micro-batch is worked on beside the server, in a Python process that Spark starts there; the project has to be
installed where the server runs. What it raises comes back as what it was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errors import ConfigurationError, PlatformError
from evidence.claims import Claims
from evidence.events import EventLog
from lake.commit import Account, Commit
from lake.lake import Lake
from orchestration import owners, stream_faults
from patterns.error_management.checkpointer import Checkpoint, StreamSpec, open_checkpoint
from patterns.error_management.streamed_files import LandedFile, StreamedFiles
from patterns.quality.audit_write_audit_publish import publish
from publish import kept_rows
from publish.changes import Append
from publish.contract import Contract
from publish.run import RunContext
from publish.target import Engine, Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GRACE_SECONDS = 60.0


class StreamBusy(PlatformError):
    """Somebody else is running the stream."""


class StreamLost(PlatformError):
    """Somebody else has taken the stream over."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a stream publishes, and as whom; it travels to the process that works on the batches.

    Args:
        lake: The tables' root.
        landing: The landing zone.
        run: Who runs it.
        engine: How writes are audited.
        probe: Folder with a folder `dataset/number` for each publication that a test steps through; None in real use.
        accepted: The guards a person has lifted.
    """

    lake: Lake
    landing: Path
    run: RunContext
    engine: Engine = Engine.TRANSACTION
    probe: str | None = None
    accepted: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """One micro-batch at work.

    Args:
        lines: Its rows, as the source gives them.
        number: Its number in the checkpoint.
        checkpoint: Of the stream.
        source: What it is read from.
        place: Where it is published.
    """

    lines: DataFrame
    number: int
    checkpoint: Checkpoint
    source: StreamedFiles
    place: Place

    @property
    def spark(self) -> SparkSession:
        """The session of the batch."""
        return self.lines.sparkSession

    @cached_property
    def writer(self) -> str:
        """Under which name the checkpoint's batches are published."""
        return self.checkpoint.writer

    @cached_property
    def files(self) -> Sequence[LandedFile]:
        """What it is made of, by the checkpoint's own notes."""
        return self.source.taken(self.checkpoint, self.number, self.place.landing)

    def append(
        self,
        frame: DataFrame,
        contract: Contract,
        once: Append,
        *,
        accounts: Mapping[str, Account],
        expected: Mapping[str, Mapping[str, int]] | None = None,
        inputs: Mapping[str, int] | None = None,
    ) -> Commit:
        """Publish rows of a batch, audited and accounted for, and record it.

        Args:
            frame: The rows.
            contract: Of the dataset they are added to.
            once: Which batch it is.
            accounts: Partition to what the layer above has of the batch; these partitions are written.
            expected: Further figures a partition must have.
            inputs: Dataset to the table version that was read.

        Raises:
            PlatformError: As `publish`.
        """
        place = self.place
        probe = Path(place.probe, contract.dataset, str(once.batch)) if place.probe else None
        target = Target(
            lake=place.lake,
            contract=contract,
            run=place.run,
            engine=place.engine,
            probe=str(probe) if probe and probe.is_dir() else None,
        )
        provenance = Provenance(inputs=inputs or {}, accounts=accounts, expected=expected or {})
        commit = publish(frame, target, change=once, partitions=sorted(accounts), provenance=provenance)
        EventLog(place.lake).record(commit)
        return commit


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A stream, declared.

    Args:
        name: What people call it.
        source: What it reads.
        schema: What the source gives.
        key: Columns of the identity it deduplicates by.
        watermark: How event time advances, in words that change when it does.
        datasets: What it publishes, in order.
        without_late: Those of them whose accounts leave out late rows.
        process: Works on a micro-batch, as often as it is asked to: what is published already must not change.
    """

    name: str
    source: StreamedFiles
    schema: str
    key: tuple[str, ...]
    watermark: str
    datasets: tuple[str, ...]
    without_late: tuple[str, ...] = ()
    process: Callable[[MicroBatch], None]

    def spec(self, landing: Path) -> StreamSpec:
        """Give what its checkpoints rest on."""
        return StreamSpec(
            name=self.name,
            source=self.source.facts(landing),
            schema=self.schema,
            key=self.key,
            watermark=self.watermark,
        )


@dataclass(frozen=True)
class _Work:
    """What the process beside the server is handed."""

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
        )
        try:
            # The server goes on with a query whose client was killed; it ends when another one has come.
            self.claim.require()
            self.stream.process(batch)
        except PlatformError as error:
            raise RuntimeError(stream_faults.packed(error)) from error
        except Exception as error:
            unforeseen = stream_faults.unforeseen(self.stream.name, f"batch {number}: {error}")
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
    """Take in what is there and end, or go on until asked to stop.

    Args:
        spark: The session.
        stream: The stream.
        place: Where it publishes.
        checkpoints: Folder of all checkpoints.
        every_seconds: How often to look for more; None: take in what is there and end.
        new_checkpoint: Begin a new checkpoint.
        stop: Ends it when set: a batch under way is finished first, for a minute at most.

    Raises:
        StreamBusy: Somebody else is running it.
        StreamLost: Somebody else has taken it over, because this one had not been heard of for the length of a lease.
        IncompatibleCheckpoint: It has changed since its checkpoint was made.
        CheckpointDamaged: Its checkpoint cannot be gone on with.
        StreamWorkerLate: Its process beside the server was not there in time; transient.
        PlatformError: What its batches raise.
    """
    if place.engine is not Engine.TRANSACTION:
        raise ConfigurationError(
            what="without the engine's jar landed lines cannot be streamed",
            where=stream.name,
            next_step="run it where Spark may load the jar; the batch datasets have the same rows",
        )
    with _alone(place.lake, stream.name) as claim, stream_faults.unpacked(stream.name):
        checkpoint = open_checkpoint(checkpoints, stream.spec(place.landing), renew=new_checkpoint)
        lines = stream.source.lines(spark, place.landing)
        writer = lines.writeStream.queryName(stream.name).option("checkpointLocation", checkpoint.location)
        writer = writer.foreachBatch(_Work(stream, checkpoint, place, claim))
        if every_seconds is None:
            query = writer.trigger(availableNow=True).start()
        else:
            query = writer.trigger(processingTime=f"{every_seconds:g} seconds").start()
        try:
            while not query.awaitTermination(1):
                claim.keep()
                if stop is not None and stop.is_set():
                    _let_finish(query)
                    return
        finally:
            # Also when this process is interrupted: the query lives in the server, not here.
            if query.isActive:
                query.stop()


def _let_finish(query: Any) -> None:
    deadline = time.monotonic() + _GRACE_SECONDS
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.2)


class _Claim:
    """The claim of whoever runs a stream, which does not lapse while it runs."""

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
        """Renew it when it is time to; the clock goes on also while a machine sleeps."""
        now = time.time()
        if now - self._renewed < owners.RENEWAL.total_seconds():
            return
        if not self._claims.renew([self._name], self._owner):
            raise self._lost()
        self._renewed = now

    def require(self) -> None:
        """See that nobody else has it, from whichever machine: whether its owner lives is not told there."""
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
    """Two queries on one checkpoint would end each other."""
    claim = _Claim(lake, name)
    claim.take()
    try:
        yield claim
    finally:
        claim.release()


def is_running(lake: Lake, name: str) -> bool:
    """Tell whether somebody is running a stream."""
    return name in Claims(lake, f"stream {name}", alive=owners.alive).held()
