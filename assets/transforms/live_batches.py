"""Publishes the landed lines of a micro-batch, judged, before what is computed from them: what two streams share.

Every part can be retried for the same batch, after a failure at any point: each table appends a batch once, and a batch
that was interrupted between two tables is finished before the next one, under another checkpoint too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms import live_lines
from blogdata.errors.remedies import Remedy, RunStream
from blogdata.evidence.appended import appended
from blogdata.lake import arrow
from blogdata.lake.checksums import require_whole
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration.landing import ERASED
from blogdata.orchestration.stream import MicroBatch
from blogdata.patterns.error_management.checkpointer import next_turn
from blogdata.patterns.error_management.streamed_files import by_hour, figures_by_hour, left_out_notes, without
from blogdata.publish.changes import READ, AppendBatch
from blogdata.publish.contract import Contract
from quality.contracts.live import TOLERANCE

DEAD_LETTERS = "dead_letters"
"""Name of the guard against too many dead letters."""
CORRECTIONS = "corrections"
"""Note in a batch's commit: the number of its files that are corrected dead letters."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The batch of a commit: that of the running query, or an earlier interrupted one."""

    writer: str
    number: int

    @property
    def label(self) -> str:
        """Value of the column `batch` in its rows."""
        return f"{self.writer}/{self.number}"

    def once(self, *, turn: int | None = None, **notes: object) -> AppendBatch:
        """Return the change that appends rows of the batch once."""
        return AppendBatch(stream=self.writer, batch=self.number, turn=turn, notes=notes)

    @classmethod
    def of(cls, commit: Commit) -> Batch:
        """Return the batch of a commit."""
        once = commit.info["appended"]
        return cls(writer=once["stream"], number=once["batch"])


Judge = Callable[[MicroBatch, DataFrame, Collection[str]], DataFrame]
Refine = Callable[[MicroBatch, Batch, Commit], None]


@dataclass(frozen=True, kw_only=True)
class LinesFirst:
    """How a stream publishes lines, and then what is computed from them.

    Args:
        judge: Judges lines (raw, source_offset, source_file, arrival_hour) of the named files; returns the columns of
            `lines` but `batch`.
        refine: Publishes what is computed from the lines of a batch, given the commit of these; may be retried.
    """

    lines: Contract
    refined: Contract
    judge: Judge
    refine: Refine

    def take_in(self, batch: MicroBatch) -> None:
        """Publish a micro-batch: its lines, then what is computed from them.

        Raises:
            TooManyDeadLetters: Too many of the newest lines are rejected; the batch is published all the same.
            PlatformError: As raised by `publish`.
        """
        this = Batch(writer=batch.writer, number=batch.number)
        # Read first: lines are committed only if none were committed since, so each batch finds the previous one done.
        turn = next_turn(batch.place.lake, self.lines.dataset)
        self._finish_what_was_cut_off(batch, this)
        self.refine(batch, this, self._land(batch, this, turn))
        if DEAD_LETTERS not in batch.place.accepted:
            _require_few_dead_letters(batch, self.lines.dataset)

    def _land(self, batch: MicroBatch, this: Batch, turn: int) -> Commit:
        """Publish the lines of the batch, except those of files already ingested under an earlier checkpoint."""
        dataset = self.lines.dataset
        earlier = newest(batch, dataset, not_of=this)
        if earlier is None:
            # The first batch, or the first one after the table's history was cleaned up.
            renewed = batch.place.lake.caught_up(dataset) is not None
        else:
            renewed = Batch.of(earlier).writer != this.writer or bool(earlier.info["appended"]["notes"]["renewed"])
        sizes = by_hour(batch.files)
        known = _taken_in_before(batch, this, dataset, sizes) if renewed else frozenset()
        old = by_hour([file for file in batch.files if file.name in known])
        accounts = {}
        new = [file for file in batch.files if file.name not in known]
        erased = {key: size.erased for key, size in by_hour(new).items() if size.erased}
        for key, size in sizes.items():
            before = {"taken_in_before": old[key].lines} if key in old else {}
            gone = {ERASED: erased[key]} if key in erased else {}
            accounts[key] = Account(rows_in=size.lines, reasons={**before, **gone})
        notes = {
            READ: f"landing.{batch.source.table}",
            "renewed": renewed,
            "files": len(batch.files),
            CORRECTIONS: sum(file.is_replay for file in batch.files),
            **left_out_notes(batch.files),
        }
        left_out = {file.name for file in batch.files if file.hour is None}
        lines = live_lines.with_hour(without(batch.lines, known | left_out))
        judged = self.judge(batch, lines, {file.name for file in new} - left_out)
        return batch.append(
            judged.withColumn("batch", F.lit(this.label)),
            self.lines,
            this.once(turn=turn, **notes),
            accounts=accounts,
            files=figures_by_hour(new),
        )

    def _finish_what_was_cut_off(self, batch: MicroBatch, this: Batch) -> None:
        """Refine the lines of the last batch if it was interrupted before, under a checkpoint no longer resumed."""
        landed = newest(batch, self.lines.dataset, not_of=this)
        if landed is None:
            return
        last = Batch.of(landed)
        refined = newest(batch, self.refined.dataset, not_of=this)
        if refined is None or Batch.of(refined) != last:
            self.refine(batch, last, landed)


def newest(batch: MicroBatch, dataset: str, *, not_of: Batch) -> Commit | None:
    """Find the newest commit that appended another batch to a dataset; None if there is none."""
    commits: Iterable[Commit] = appended(batch.place.lake, dataset)
    return next((commit for commit in commits if Batch.of(commit) != not_of), None)


def lines_of(batch: MicroBatch, this: Batch, landed: Commit) -> DataFrame:
    """Read the published lines of a batch.

    The newest version: that of the batch may be gone, if the stream was cut off and starts again a long time later.
    """
    return batch.place.lake.read(batch.spark, landed.dataset).where(
        F.col("arrival_hour").isin(*landed.entries) & (F.col("batch") == this.label)
    )


def _taken_in_before(batch: MicroBatch, this: Batch, dataset: str, hours: Iterable[str]) -> frozenset[str]:
    """Find the files of the batch that another batch has published, from the table: a checkpoint may be lost."""
    table = batch.place.lake.caught_up(dataset)
    if table is None:
        return frozenset()
    require_whole(table, dataset, f"arrival_hour IN ({', '.join(map(arrow.text, sorted(hours)))})")
    of_others = ds.field("arrival_hour").isin(pa.array(sorted(hours), pa.string())) & (ds.field("batch") != this.label)
    rows = table.to_pyarrow_dataset().to_table(columns=["source_file"], filter=of_others)
    return frozenset(rows["source_file"].unique().to_pylist()) & {file.name for file in batch.files}


def _require_few_dead_letters(batch: MicroBatch, dataset: str) -> None:
    measured = (_figures(commit) for commit in appended(batch.place.lake, dataset))
    fault = TOLERANCE.error_for_stream(
        measured,
        dataset=dataset,
        part=f"(the newest {TOLERANCE.over_rows} lines)",
        rows_of=lambda count: _rejected_in(islice(appended(batch.place.lake, dataset), count)),
        then=Remedy(
            "go on until newer lines have taken their place: ",
            RunStream(name=batch.checkpoint.stream, accept=DEAD_LETTERS),
        ),
    )
    if fault is not None:
        raise fault


def _figures(landed: Commit) -> tuple[int, int]:
    entries = landed.entries.values()
    return sum(int(entry.measures["dead"]) for entry in entries), sum(entry.rows_out for entry in entries)


def _rejected_in(commits: Iterable[Commit]) -> str:
    """Build the SQL condition on a dataset of lines that selects the dead letters of some consecutive batches."""
    numbers: dict[str, list[int]] = {}
    for commit in commits:
        this = Batch.of(commit)
        numbers.setdefault(this.writer, []).append(this.number)
    batches = " OR ".join(
        f"split_part(batch, '/', 1) = '{writer}' AND cast(split_part(batch, '/', 2) AS INT)"
        f" BETWEEN {min(found)} AND {max(found)}"
        for writer, found in numbers.items()
    )
    return f"size(reasons) > 0 AND ({batches})"
