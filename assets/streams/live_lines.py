"""What the streams share: judged lines, rows that came too late for a state, and the publication of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.bronze.ad_lines import AdLines
from assets.bronze.visit_lines import VisitLines
from assets.silver.arrival_hours import hour_of
from blogdata.contract.contract import Contract
from blogdata.contract.publication import Account
from blogdata.landing.lines import LineReader, read
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.stream.stream import MicroBatch
from quality.contracts.live import LATE

VISITS, ADS = VisitLines(), AdLines()
"""What reads the lines of the sources."""
LEFT_OUT = (Verdict.DUPLICATE.value, Verdict.CONFLICT.value, LATE)


def received(lines: DataFrame) -> DataFrame:
    return lines.withColumnRenamed("partition", "arrival_hour")


def events(lines: DataFrame) -> DataFrame:
    return received(lines).where((F.size("reasons") == 0) & F.col("filtered_by").isNull())


def displays(lines: DataFrame) -> DataFrame:
    return received(lines).where(F.size("reasons") == 0)


Side = tuple[LineReader, Callable[[DataFrame], DataFrame], str, timedelta]
"""What reads the lines of a source, which of them are rows, their time, and how long after it they count."""


def late(batch: MicroBatch, sides: Sequence[Side]) -> Counter[str]:
    """Count the rows of the batch's files that were behind the watermark, by hour of their time."""
    marks = {planned.number: planned.watermark for planned in batch.checkpoint.batches()}
    # Those are late that the batch before had no place for any more.
    mark = marks.get(batch.number - 1)
    late_rows, place = Counter[str](), batch.place
    if mark is None:
        return late_rows
    for source, (reader, rows_of, time, counts_for) in zip(batch.sources, sides, strict=True):
        paths: dict[str, list[Path]] = {}
        for file in batch.files:
            if file.name.startswith(f"{source.table}/"):
                paths.setdefault(file.hour, []).append(place.landing / file.name)
        rows = rows_of(read(batch.spark, place.landing, paths, reader, place.bounds))
        behind = rows.where(F.col(time) <= F.lit(mark - counts_for))
        counts = behind.groupBy(hour_of(F.col(time)).alias("hour")).count().collect()
        late_rows.update({row["hour"]: int(row["count"]) for row in counts})
    return late_rows


def publish(
    batch: MicroBatch, rows: DataFrame, contract: Contract, accounts: Mapping[str, Account], *, turn: int
) -> None:
    """Publish the rows of a batch that are the first of their kind; the accounts tell the others."""
    if accounts:
        first = rows.where(F.col("verdict") == Verdict.FIRST.value)
        batch.append(first, contract, accounts=accounts, turn=turn)


def published(batch: MicroBatch, contract: Contract) -> DataFrame:
    """Read what is published of a dataset; nothing if it has no table yet."""
    table = batch.place.lake.caught_up(contract.dataset)
    if table is None:
        return batch.spark.createDataFrame([], contract.ddl)
    return batch.place.lake.read(batch.spark, contract.dataset, table.version())


def accounts(by_verdict: Iterable[Sequence[Any]], late: Mapping[str, int]) -> dict[str, Account]:
    """Account for rows by hour, from hour, verdict and number; `late` has those that came too late for a state."""
    verdicts = {hour: Counter({LATE: rows}) for hour, rows in late.items()}
    for hour, verdict, count in by_verdict:
        verdicts.setdefault(hour, Counter())[verdict] += count
    return {
        hour: Account(rows_in=rows.total(), reasons={name: rows[name] for name in LEFT_OUT})
        for hour, rows in sorted(verdicts.items())
    }
